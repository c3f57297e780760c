"""Messages that a Lambda is at work on stay its own, and tries end before messages do.

Six times the timeout beside the window is AWS's advice:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from tests.infra.synthesized import Template
from tests.infra.template_rules.batches_have_a_window import MAPPING, read_queue
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

DEFAULT_VISIBILITY, DEFAULT_RETENTION = 30, 345_600


def findings(template: Template) -> Findings:
    functions = template.all("AWS::Lambda::Function")
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        queue = read_queue(template, given)
        timeout = functions[given["FunctionName"].removeprefix("arn:")]["Properties"]["Timeout"]
        window = given.get("MaximumBatchingWindowInSeconds", 0)
        visibility = queue.get("VisibilityTimeout", DEFAULT_VISIBILITY)
        if visibility < 6 * timeout + window:
            yield f"{name}: {visibility} s of visibility timeout for a Lambda of {timeout} s"
        tries = queue.get("RedrivePolicy", {}).get("maxReceiveCount")
        if tries is None:
            yield f"{name}: poison comes back for ever"
        elif tries * visibility >= queue.get("MessageRetentionPeriod", DEFAULT_RETENTION):
            yield f"{name}: messages end before their {tries} tries do"


def _change(resources: Resources, **changed: object) -> None:
    properties(resources, "AWS::SQS::Queue", "IntakeQueue").update(changed)


def _slower(resources: Resources) -> None:
    properties(resources, "AWS::Lambda::Function", "Heal")["Timeout"] = 61


def _without_dlq(resources: Resources) -> None:
    del properties(resources, "AWS::SQS::Queue", "IntakeQueue")["RedrivePolicy"]


RULE = Rule(
    findings,
    {
        "a short visibility timeout": lambda found: _change(found, VisibilityTimeout=360),
        "a slower Lambda": _slower,
        "retention shorter than the tries": lambda found: _change(
            found, MessageRetentionPeriod=5 * 365
        ),
        "no DLQ messages": _without_dlq,
    },
)
