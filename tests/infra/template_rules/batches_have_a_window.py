"""More than 10 messages in a batch take a window, and a FIFO queue takes neither.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from typing import Any

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

MOST_WITHOUT = 10
MOST = 10_000
MAPPING = "AWS::Lambda::EventSourceMapping"


def findings(template: Template) -> Findings:
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        window = given.get("MaximumBatchingWindowInSeconds", 0)
        size = given.get("BatchSize", MOST_WITHOUT)
        queue = read_queue(template, given)
        if size > MOST:
            yield f"{name} has batches of {size}"
        if queue.get("FifoQueue") and (window or size > MOST_WITHOUT):
            yield f"{name} reads a FIFO queue in batches of {size} and a window of {window} s"
        elif size > MOST_WITHOUT and window < 1:
            yield f"{name} has batches of {size} and no window"
        if given.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name} gives a whole batch back for one message"


def read_queue(template: Template, mapping: dict[str, Any]) -> dict[str, Any]:
    """The properties of the queue that a mapping reads."""
    queue = template.all("AWS::SQS::Queue")[mapping["EventSourceArn"].split(":")[-1]]
    given: dict[str, Any] = queue["Properties"]
    return given


def _without_a_window(resources: Resources) -> None:
    del properties(resources, MAPPING)["MaximumBatchingWindowInSeconds"]


def _fifo(resources: Resources) -> None:
    properties(resources, "AWS::SQS::Queue", "IntakeQueue")["FifoQueue"] = True


def _whole_batches(resources: Resources) -> None:
    del properties(resources, MAPPING)["FunctionResponseTypes"]


def _too_many(resources: Resources) -> None:
    properties(resources, MAPPING)["BatchSize"] = MOST + 1


RULE = Rule(
    findings,
    {
        "no window": _without_a_window,
        "a FIFO queue": _fifo,
        "no partial answers": _whole_batches,
        "too many at once": _too_many,
    },
)
