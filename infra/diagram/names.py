"""What people call the resources of a template, and which of them are no part of the picture."""

from __future__ import annotations

import re
from collections.abc import Iterable

from infra.diagram.arrows import Resources

FUNCTION, TOPIC, QUEUE = "AWS::Lambda::Function", "AWS::SNS::Topic", "AWS::SQS::Queue"
KEY, DASHBOARD = "AWS::KMS::Key", "AWS::CloudWatch::Dashboard"
ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
JOB = "AWS::EMRServerless::Application"
STORES = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")
# As cards, or in the words of other cards: what starts a part, what it parks, who is told.
DRAWN = frozenset(
    {
        *(FUNCTION, TOPIC, QUEUE, KEY, DASHBOARD, *ALARMS, JOB, *STORES),
        "AWS::CloudTrail::Trail",
        "AWS::Events::Rule",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Scheduler::Schedule",
        "AWS::SNS::Subscription",
    }
)
LEFT_OUT = {
    "AWS::IAM::Role": "roles",
    "AWS::IAM::Policy": "policies",
    "AWS::Lambda::Permission": "policies",
    "AWS::S3::BucketPolicy": "policies",
    "AWS::SNS::TopicPolicy": "policies",
    "AWS::SQS::QueuePolicy": "policies",
    "AWS::Logs::LogGroup": "logs",
}
_HASH = re.compile(r"[0-9A-F]{8}$")


def left_out(resources: Resources) -> tuple[str, ...]:
    """In words, each once. Raises ValueError of what is neither drawn nor has a word here."""
    found = {name: each["Type"] for name, each in resources.items() if each["Type"] not in DRAWN}
    if unknown := [name for name, each in found.items() if each not in LEFT_OUT]:
        raise ValueError(f"the picture of the stack says nothing of {', '.join(unknown)}")
    return tuple(dict.fromkeys(LEFT_OUT[each] for each in found.values()))


def title(name: str, resources: Resources) -> str:
    """How people call it: `heal`, `the case bucket`, `the intake queue`."""
    each = resources[name]
    if each["Type"] == FUNCTION:
        return str(each["Properties"]["Handler"]).split(".")[-2]
    if each["Type"] == JOB:
        return "the nightly job"
    named = _HASH.sub("", name)
    words = re.findall(r"[A-Z][a-z]+", named.removeprefix("Topics" * (each["Type"] == TOPIC)))
    return f"the {' '.join(dict.fromkeys(word.lower() for word in words))}"


def kinds(names: Iterable[str], resources: Resources) -> tuple[str, ...]:
    """What an alarm or a chart looks at, beside what Mendq counts of itself."""
    said = {QUEUE: "queues of ours", FUNCTION: "Lambdas"}
    return tuple(sorted({said.get(resources[each]["Type"], "others") for each in names}))


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
