"""Symptom `noisy_message_groups`: one message group keeps the messages of other groups waiting.

The fault: producers of a standard queue give their messages a group id, for example one per
customer. One group sends so many messages that they occupy all consumers. SQS's fair queues return
the messages of the other ("quiet") groups first, but there are too few consumers even for these.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html

How it shows: CloudWatch reports a noisy group, a quiet message that has waited for at least 15
minutes, and more quiet messages waiting than the consumers deleted in the last 15 minutes.

What Mendq does: it notifies people, with the numbers. It changes nothing, because no attribute of
the queue shares the consumers among groups: people can run more consumers, or give the noisy group
a queue of its own.
"""

from __future__ import annotations

from mendq.catalogue.examples import standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.metrics import COUNTER_TOLERANCE_MESSAGES, METRICS_BY_KIND, RECENT_DELETES_PERIOD
from mendq.model.plan import Escalate, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import show_metric_command
from mendq.notifications.text import format_count


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue with a noisy group whose quiet groups wait for too long.

    SQS returns quiet messages first, so a noisy group alone harms nobody. Two things must be true.
    More quiet messages wait than consumers deleted in the last 15 minutes, by more than
    COUNTER_TOLERANCE_MESSAGES; otherwise the wait may come from one slow message. And the oldest
    quiet message has waited for at least 15 minutes; otherwise quiet messages have just arrived in
    a burst.
    """
    measurement = facts.measurement
    if measurement is None:
        return None
    current_gauges = measurement.now
    tolerated_quiet_message_count = (
        measurement.deletes_of_last_15_minutes + COUNTER_TOLERANCE_MESSAGES
    )
    have_quiet_messages_waited_long = (
        current_gauges.quiet_oldest_age_seconds >= RECENT_DELETES_PERIOD.total_seconds()
    )
    if (
        not current_gauges.noisy_groups
        or not have_quiet_messages_waited_long
        or current_gauges.quiet_visible <= tolerated_quiet_message_count
    ):
        return None
    return DetectedFault(
        f"SQS counts {format_count(current_gauges.noisy_groups, 'noisy message group')}; of the "
        f"others {current_gauges.quiet_visible:,} messages wait, the oldest for "
        f"{current_gauges.quiet_oldest_age_seconds:,} s, and "
        f"{format_count(measurement.deletes_of_last_15_minutes, 'message')} in all left the queue "
        f"in the last {RECENT_DELETES_PERIOD.total_seconds() / 60:.0f} minutes"
    )


def is_possible(facts: Facts) -> bool:
    """Return True for a standard queue: SQS counts noisy groups only there."""
    return not facts.is_fifo


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: no attribute shares consumers among groups."""
    reason = (
        f"{facts.found}. SQS hands out the quiet groups' messages first, so there are too few "
        "consumers even for those, or the noisy group's messages hold them all. Let more run at "
        "once, or give that group a queue of its own; CloudWatch does not say which it is"
    )
    quiet_group_age_metric = METRICS_BY_KIND["message groups"]["quiet_age"]
    command = show_metric_command(
        facts.queue_arn,
        quiet_group_age_metric.metric,
        quiet_group_age_metric.statistic,
        facts.measurement,
    )
    return Escalate("quiet_groups_wait", reason, command)


def _make_example_queue(**overrides: int) -> Facts:
    """Return a queue with a noisy group and waiting quiet groups. `overrides` has other counts."""
    metric_counts = {
        "noisy_groups_now": 1,
        "quiet_visible_now": 900,
        "quiet_oldest_age_seconds_now": 2_700,
        "deletes_of_last_15_minutes": 300,
        **overrides,
    }
    return standard_queue(ApproximateNumberOfMessages=9_000, **metric_counts)


NOISY_MESSAGE_GROUPS = NotifiedSymptom(
    name="noisy_message_groups",
    sentence="One message group takes the consumers of a standard queue, and the others wait.",
    plan_in_words="Page with how long the quiet groups have waited; no attribute shares "
    "consumers out.",
    first_step="Slow down the noisy group's producer, or add consumers.",
    aws_page=f"{SQS_GUIDE}/sqs-fair-queues.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    plan=plan,
    detection=Detection(detect, frozenset({Need.QUEUE, Need.MEASUREMENTS}), is_possible),
    examples=lambda: (
        QueueExample(
            "one tenant's burst, and the others wait", _make_example_queue(), "quiet_groups_wait"
        ),
        QueueExample(
            "nothing is done at all",
            _make_example_queue(deletes_of_last_15_minutes=0),
            "quiet_groups_wait",
        ),
        QueueNearMiss(
            "noisy, and the quiet ones are served first", _make_example_queue(quiet_visible_now=320)
        ),
        QueueNearMiss(
            "a backlog of everybody's, or no groups", _make_example_queue(noisy_groups_now=0)
        ),
        QueueNearMiss(
            "a burst of quiet ones", _make_example_queue(quiet_oldest_age_seconds_now=60)
        ),
        QueueNearMiss("a slow message of a quiet group", _make_example_queue(quiet_visible_now=0)),
    ),
)
