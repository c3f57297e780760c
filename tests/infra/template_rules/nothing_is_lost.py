"""What cannot be delivered is tried again within bounds, and then kept for a person.

A mapping of SQS has no on-failure destination: its queue's own DLQ messages take what it gives up.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template
from tests.infra.template_rules.batches_have_a_window import MAPPING, read_queue
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

SCHEDULE, EVENT_RULE = "AWS::Scheduler::Schedule", "AWS::Events::Rule"
INVOKED = "AWS::Lambda::EventInvokeConfig"


def findings(template: Template) -> Findings:
    parked = {
        each["Properties"]["FunctionName"].removeprefix("arn:"): each["Properties"]
        for each in template.all(INVOKED).values()
    }
    for name, target in _targets(template):
        retry = target.get("RetryPolicy", {})
        if not 1 <= retry.get("MaximumRetryAttempts", 0) <= 185:
            yield f"{name} does not say how often it tries again"
        if not 60 <= retry.get("MaximumEventAgeInSeconds", 0) <= 86_400:
            yield f"{name} does not say how long it tries"
        if _queue(template, target.get("DeadLetterConfig", {}).get("Arn")) is None:
            yield f"{name} drops what it cannot deliver"
        function = target["Arn"].removeprefix("arn:")
        if function in template.all("AWS::Lambda::Function"):
            yield from _lost_by(template, function, parked.get(function, {}))
    for name, mapping in template.all(MAPPING).items():
        given = mapping["Properties"]
        if given.get("DestinationConfig"):
            yield f"{name} has a destination, which SQS mappings do not"
        policy = read_queue(template, given).get("RedrivePolicy", {})
        if _queue(template, policy.get("deadLetterTargetArn")) is None:
            yield f"{name} never gives up what cannot be read"


def _targets(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rule in template.all(EVENT_RULE).items():
        for target in rule["Properties"]["Targets"]:
            yield name, target
    for name, schedule in template.all(SCHEDULE).items():
        yield name, schedule["Properties"]["Target"]


def _lost_by(template: Template, function: str, invoked: dict[str, Any]) -> Findings:
    """Whoever invokes it waits for no answer, so that Lambda alone can keep what fails."""
    retained = invoked.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    if _queue(template, retained) is None:
        yield f"{function} drops what fails"
    if "MaximumEventAgeInSeconds" not in invoked or "MaximumRetryAttempts" not in invoked:
        yield f"{function} tries as long as Lambda likes"


def _queue(template: Template, arn: str | None) -> Any:
    return template.all("AWS::SQS::Queue").get((arn or "").split(":")[-1])


def _without(resources: Resources, kind: str, field: str) -> None:
    given = properties(resources, kind)
    for each in given.get("Targets", [given.get("Target", given)]):
        del each[field]


def _a_destination(resources: Resources) -> None:
    queue = {"Fn::GetAtt": ["IntakeUndelivered3AD39992", "Arn"]}
    properties(resources, MAPPING)["DestinationConfig"] = {"OnFailure": {"Destination": queue}}


def _without_redrive(resources: Resources) -> None:
    del properties(resources, "AWS::SQS::Queue", "IntakeQueue")["RedrivePolicy"]


def _elsewhere(resources: Resources) -> None:
    properties(resources, EVENT_RULE)["Targets"][0]["DeadLetterConfig"]["Arn"] = (
        "arn:aws:sqs:us-east-1:111122223333:somebody-elses"
    )


RULE = Rule(
    findings,
    {
        "a rule that does not try again": lambda found: _without(found, EVENT_RULE, "RetryPolicy"),
        "a rule without DLQ messages": lambda found: _without(
            found, EVENT_RULE, "DeadLetterConfig"
        ),
        "DLQ messages that are not ours": _elsewhere,
        "a schedule that does not try again": lambda found: _without(
            found, SCHEDULE, "RetryPolicy"
        ),
        "a schedule without DLQ messages": lambda found: _without(
            found, SCHEDULE, "DeadLetterConfig"
        ),
        "a Lambda without a destination": lambda found: _without(
            found, INVOKED, "DestinationConfig"
        ),
        "a Lambda without an end": lambda found: _without(
            found, INVOKED, "MaximumEventAgeInSeconds"
        ),
        "a destination of a mapping": _a_destination,
        "an intake without DLQ messages": _without_redrive,
    },
)
