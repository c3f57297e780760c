"""One message that always fails holds up all that come behind it in its group.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagegroupid-property.html
"""

from __future__ import annotations

from dataclasses import replace

from functions.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from functions.healing import examples
from functions.healing.facts import Facts, Need
from functions.healing.limits import Limits
from functions.healing.metric_commands import metric_command
from functions.healing.plan import Refusal
from functions.healing.states import State


def detect(facts: Facts) -> Found | None:
    """One group in flight, tried again and again, while nothing gets through."""
    measured = facts.measured
    if measured is None or not is_suspect(facts) or not measured.one_group_blocks:
        return None
    return Found(
        f"its oldest message has waited {measured.oldest_age_seconds_now:,} s; in "
        f"{measured.hours:.1f} h {measured.received:,} receives ended in {measured.deleted:,} "
        f"deletes, one group is in flight, and {measured.visible_now:,} messages wait"
    )


def is_suspect(facts: Facts) -> bool:
    """A dead-letter queue would take the message after a while."""
    waits = facts.visible + facts.in_flight > 0
    return facts.is_fifo and "RedrivePolicy" not in facts.attributes and waits


def plan(facts: Facts, _limits: Limits) -> Refusal:
    command = metric_command(
        facts.queue_arn, "ApproximateAgeOfOldestMessage", "Maximum", facts.measured
    )
    return Refusal("group_blocked", facts.found, State.ESCALATED, next_command=command)


def _queue(**counted: int) -> Facts:
    blocked = {
        "sent": 40,
        "received": 720,
        "backlog_now": 60,
        "backlog_before": 20,
        "visible_now": 59,
        "in_flight_now": 1,
        "oldest_age_seconds_before": 600,
        "oldest_age_seconds_now": 22_200,
        "groups_in_flight_now": 1,
    }
    facts = examples.queue(
        ApproximateNumberOfMessages="59", ApproximateNumberOfMessagesNotVisible="1"
    )
    return replace(facts, measured=examples.measured(**{**blocked, **counted}))


_REDRIVE = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:d.fifo","maxReceiveCount":5}'

FIFO_GROUP_BLOCKED = Symptom(
    name="fifo_group_blocked",
    sentence="One message that always fails holds up all that come behind it in its group.",
    plan_in_words="Page.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "using-messagegroupid-property.html",
    needs=frozenset({Need.QUEUE}),
    plan=plan,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS}), is_suspect),
    detected=(
        Detected("the first of its group fails each time", _queue(), code="group_blocked"),
        Detected(
            "a message gets through now and then",
            _queue(deleted=36),
            code="group_blocked",
        ),
    ),
    near_misses=(
        NearMiss(
            "one message takes very long, and is received once",
            NOT_FOUND,
            facts=_queue(received=1),
        ),
        NearMiss("other groups get through", NOT_FOUND, facts=_queue(deleted=300)),
        NearMiss("several groups are tried", NOT_FOUND, facts=_queue(groups_in_flight_now=3)),
        NearMiss("the head moves on", NOT_FOUND, facts=_queue(oldest_age_seconds_now=3_600)),
        NearMiss(
            "a dead-letter queue takes it after five receives",
            NOT_FOUND,
            facts=replace(_queue(), attributes={**_queue().attributes, "RedrivePolicy": _REDRIVE}),
        ),
        NearMiss(
            "a standard queue has no groups to hold up",
            NOT_FOUND,
            facts=replace(_queue(), queue_arn=examples.STANDARD_ARN),
        ),
    ),
)
