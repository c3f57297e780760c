"""Symptom `consumer_crashes`: consumers lose messages that they work on, and finish them later.

The fault: a consumer receives a message and ends before it is done: it crashes, is killed for its
memory, or is stopped by a scale-in. SQS hides the message until the visibility timeout ends. With a
timeout of ten minutes each crash delays its messages by ten minutes. A message that meets crash
after crash moves to the DLQ, or expires.

How it shows: some receives were followed by no delete, all through the measured time, and a message
became as old as the visibility timeout although no messages waited at some moment. Most messages
are finished in the end; otherwise `consumer_failing` is the symptom. A consumer that gives messages
back makes them visible earlier, so they stay younger than the timeout. If the messages in the DLQ
explain most of the lost receives, these messages are bad and the consumers are not: a crash hits
many messages once before it hits one as often as `maxReceiveCount` allows.

What Mendq does: it names the number of receives and the delay. It pages if messages are lost: more
than inexact counters explain moved to the DLQ or expired. Otherwise it records a case without a
page. It changes nothing: a shorter timeout would have messages handled twice if their work takes as
long. The failures of Lambda functions are counted by Lambda, and other symptoms report them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from mendq.catalogue.dlq.attach import SOME_FAIL, SYMPTOMS_TO_FIX_FIRST
from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    as_dlq,
    make_half_hours,
    queue_with_dlq,
    replace_values,
    standard_queue,
)
from mendq.catalogue.messages.messages_expire import (
    EXPIRED_SHARE_OF_RETENTION,
    may_expire_on_purpose,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.metrics import DATAPOINT_PERIOD, Measurement, RecentCounts
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import show_metric_command
from mendq.notifications.text import format_count, format_duration

# A shorter visibility timeout delays messages by too little to matter.
SHORTEST_DELAY_SECONDS = 120
# At least this many receives, and this share of all, ended in no delete. Fewer are the retries that
# every queue has at times.
LEAST_LOST_RECEIVES = 10
LEAST_LOST_SHARE_OF_RECEIVES = 0.02
# In at least this share of the half hours a receive ended in no delete. Otherwise it was a single
# event, such as a deployment.
LEAST_SHARE_OF_HALF_HOURS = 0.5
# If messages in the DLQ explain at least this share of the lost receives, they are bad messages.
LEAST_SHARE_OF_BAD_MESSAGES = 0.75
# SQS reports the age once a minute. So the age that shows a timeout may be lower by that.
_AGE_RESOLUTION_SECONDS = int(DATAPOINT_PERIOD.total_seconds())

_MESSAGES_EXPIRE = EvidenceKind(
    SeverityClass.LOSING, "messages expire because consumers crash again and again"
)
# These symptoms explain why receives end in no delete.
EXPLAINING_SYMPTOMS = SYMPTOMS_TO_FIX_FIRST | {
    "dlq_missing",
    "fifo_group_blocked",
    "visibility_timeout_too_long",
}


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose consumers lose messages for a visibility timeout, again and again.

    The counts are misleading on a DLQ, while a message movement task runs, and if messages are
    handled twice. If messages wait all the time, their age shows the backlog and no crash.
    """
    measurement_of_queue = facts.measurement
    visibility_seconds = facts.visibility_seconds
    if (
        measurement_of_queue is None
        or visibility_seconds < SHORTEST_DELAY_SECONDS
        or facts.lambda_consumers
        or facts.receives_only_dlq_messages
        or facts.move_task_running
        or EXPLAINING_SYMPTOMS & facts.open_symptoms
    ):
        return None
    if (
        not _loses_messages_steadily(measurement_of_queue)
        or measurement_of_queue.fewest_visible_messages
        or measurement_of_queue.has_surplus_deletes
        or _are_messages_bad(facts, measurement_of_queue)
        or measurement_of_queue.highest_oldest_age_seconds
        < visibility_seconds - _AGE_RESOLUTION_SECONDS
    ):
        return None
    lost_receive_count = measurement_of_queue.fruitless_receives
    total_delay = timedelta(seconds=lost_receive_count * visibility_seconds)
    return DetectedFault(
        f"{lost_receive_count:,} of {format_count(measurement_of_queue.received, 'receive')} in "
        f"{format_duration(measurement_of_queue.duration)} ended in no delete until the visibility "
        f"timeout of {visibility_seconds:,} s was over: each delays its message by that, "
        f"{format_duration(total_delay)} in all. "
        f"{_describe_outcome(facts, measurement_of_queue)}, and the oldest "
        f"was {measurement_of_queue.highest_oldest_age_seconds:,} s old",
        seconds_left=0.0 if _count_expired_messages(facts, measurement_of_queue) else None,
        should_page=_are_messages_lost(facts, measurement_of_queue),
        evidence_kind=(
            _MESSAGES_EXPIRE if _count_expired_messages(facts, measurement_of_queue) else SOME_FAIL
        ),
    )


def _are_messages_lost(facts: Facts, measurement_of_queue: Measurement) -> bool:
    """Return True if messages moved to the DLQ or expired, more than inexact counters explain."""
    return bool(
        _count_messages_in_dlq(facts, measurement_of_queue)
        or _count_expired_messages(facts, measurement_of_queue)
    )


def _count_messages_in_dlq(facts: Facts, measurement_of_queue: Measurement) -> int:
    """Return how many messages moved to the DLQ; 0 if inexact counters explain the number."""
    return measurement_of_queue.count_dead_messages(facts.max_receive_count or 0)


def _count_expired_messages(facts: Facts, measurement_of_queue: Measurement) -> int:
    """Return how many messages expired.

    Return 0 if inexact counters, the DLQ, or a retention that is short on purpose explain the
    number, or if no message was old enough to expire.
    """
    lost_message_count = measurement_of_queue.messages_gone_undeleted
    is_old_enough = (
        measurement_of_queue.highest_oldest_age_seconds
        >= EXPIRED_SHARE_OF_RETENTION * facts.retention_seconds
    )
    if (
        not is_old_enough
        or lost_message_count <= measurement_of_queue.counter_tolerance
        or _count_messages_in_dlq(facts, measurement_of_queue)
        or may_expire_on_purpose(facts, measurement_of_queue)
    ):
        return 0
    return lost_message_count


def _are_messages_bad(facts: Facts, measurement_of_queue: Measurement) -> bool:
    """Return True if the messages in the DLQ explain most of the receives without a delete."""
    receives_of_messages_in_dlq = (facts.max_receive_count or 0) * _count_messages_in_dlq(
        facts, measurement_of_queue
    )
    least_receives = LEAST_SHARE_OF_BAD_MESSAGES * measurement_of_queue.fruitless_receives
    return 0 < least_receives <= receives_of_messages_in_dlq


def _describe_outcome(facts: Facts, measurement_of_queue: Measurement) -> str:
    """Return the begin of a sentence: what happened to the messages of the lost receives."""
    messages_in_dlq = _count_messages_in_dlq(facts, measurement_of_queue)
    if messages_in_dlq:
        return (
            f"About {format_count(messages_in_dlq, 'message')} moved to the DLQ, because they were "
            f"lost {format_count(facts.max_receive_count or 0, 'time')}"
        )
    expired_messages = _count_expired_messages(facts, measurement_of_queue)
    if expired_messages:
        return (
            f"About {format_count(expired_messages, 'message')} expired before they were finished"
        )
    return "The messages were finished later"


def _loses_messages_steadily(measurement_of_queue: Measurement) -> bool:
    """Return True if enough receives ended in no delete, and not in a few half hours only."""
    lost_receive_count = measurement_of_queue.fruitless_receives
    half_hours = measurement_of_queue.recent.half_hours
    half_hours_with_losses = [
        half_hour for half_hour in half_hours if half_hour.received > half_hour.deleted
    ]
    return (
        measurement_of_queue.deleted > 0
        and lost_receive_count >= LEAST_LOST_RECEIVES
        and lost_receive_count >= LEAST_LOST_SHARE_OF_RECEIVES * measurement_of_queue.received
        and len(half_hours_with_losses) >= LEAST_SHARE_OF_HALF_HOURS * len(half_hours)
    )


def is_possible(facts: Facts) -> bool:
    """Return True if a queue without Lambda consumers has a long timeout."""
    is_long = facts.visibility_seconds >= SHORTEST_DELAY_SECONDS
    return is_long and not facts.lambda_consumers


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: a page if messages are lost.

    No attribute of a queue keeps consumers from ending early.
    """
    reason = (
        f"{facts.found}. Find out why consumers end early: no memory, a scale-in, a deployment "
        "that does not wait for the work. Let them give back what they hold before they end "
        "(ChangeMessageVisibility to 0), or set a short timeout and extend it while they work"
    )
    command = show_metric_command(
        facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement
    )
    if facts.measurement is not None and _are_messages_lost(facts, facts.measurement):
        return Escalate("consumer_crashes", reason, command)
    return Refuse("consumer_crashes", reason, command)


def _receive_and_delete(*receives_and_deletes: tuple[int, int]) -> RecentCounts:
    """Return half hours with these numbers of receives and deletes."""
    return make_half_hours(
        *({"received": received, "deleted": deleted} for received, deleted in receives_and_deletes)
    )


def _make_example_queue(visibility_seconds: int = 600, **overrides: Any) -> Facts:
    """Return a queue whose consumers end at nearly half of the receives, with other values."""
    counts = {
        "sent": 897,
        "received": 1_651,
        "deleted": 886,
        "in_flight_now": 11,
        "backlog_now": 11,
        "highest_oldest_age_seconds": 1_178,
        "recent": _receive_and_delete(*((137, 74),) * 12),
    }
    return standard_queue(
        VisibilityTimeout=visibility_seconds,
        ApproximateNumberOfMessagesNotVisible=11,
        **{**counts, **overrides},
    )


def _make_queue_with_dlq(receives: int = 3, **overrides: Any) -> Facts:
    """Return a queue whose DLQ takes 60 messages after crashes."""
    facts = _make_example_queue(sent=957, **overrides)
    return replace(
        facts,
        attributes={
            **facts.attributes,
            "RedrivePolicy": queue_with_dlq(receives).attributes["RedrivePolicy"],
        },
    )


def _add_finding(facts: Facts) -> Facts:
    """Return the queue with the sentence of its finding, as heal plans with it."""
    fault = detect(facts)
    return replace(facts, found=fault.because if fault else "")


CONSUMER_CRASHES = NotifiedSymptom(
    name="consumer_crashes",
    sentence="Consumers end while they work on messages, which then wait for a whole timeout.",
    plan_in_words="Report how many receives were lost and the delay; page if messages moved to the "
    "DLQ or expired. No attribute keeps consumers from ending.",
    habit="keeps losing messages for a visibility timeout",
    first_step="Find out why consumers end: memory, deployments, scaling in.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(SOME_FAIL, _MESSAGES_EXPIRE),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        frozenset(
            {
                Need.QUEUE,
                Need.LAMBDA_CONSUMERS,
                Need.MEASUREMENTS,
                Need.MOVE_TASKS,
                Need.DLQ_SOURCES,
                Need.OPEN_CASES,
            }
        ),
        is_possible,
    ),
    examples=lambda: (
        QueueExample("the DLQ takes 60 messages", _make_queue_with_dlq(), "consumer_crashes"),
        QueueExample(
            "86 messages expire after an hour",
            _make_example_queue(
                MessageRetentionPeriod=3_600, deleted=800, highest_oldest_age_seconds=3_590
            ),
            "consumer_crashes",
        ),
        RefusalExample(
            "nearly half of all receives, and all messages are finished",
            _add_finding(_make_example_queue()),
            "consumer_crashes",
        ),
        RefusalExample(
            "a few, with a long timeout",
            _add_finding(
                _make_example_queue(
                    1_800,
                    sent=150,
                    received=160,
                    deleted=149,
                    in_flight_now=1,
                    highest_oldest_age_seconds=1_745,
                    recent=_receive_and_delete(*((14, 12),) * 6, *((13, 13),) * 6),
                )
            ),
            "consumer_crashes",
        ),
        QueueNearMiss(
            "bad messages that the DLQ takes",
            _make_queue_with_dlq(received=1_077, deleted=886),
        ),
        QueueNearMiss(
            "consumers give messages back after seconds",
            _make_example_queue(highest_oldest_age_seconds=21),
        ),
        QueueNearMiss("a timeout of two minutes less a second", _make_example_queue(119)),
        QueueNearMiss(
            "messages are old because they wait", _make_example_queue(fewest_visible_messages=4)
        ),
        QueueNearMiss(
            "one deployment",
            _make_example_queue(
                received=1_000, recent=_receive_and_delete((190, 76), *((74, 74),) * 11)
            ),
        ),
        QueueNearMiss(
            "retries now and then",
            _make_example_queue(received=914, recent=_receive_and_delete(*((75, 74),) * 12)),
        ),
        QueueNearMiss("what was received is still at work", _make_example_queue(in_flight_now=765)),
        QueueNearMiss(
            "a Lambda function reads it", _make_example_queue(lambda_consumers=(LAMBDA_FUNCTION,))
        ),
        QueueNearMiss("messages are handled twice", _make_example_queue(deleted=1_100)),
        QueueNearMiss("nothing is finished", _make_example_queue(deleted=0)),
        QueueNearMiss(
            "DLQ messages are moved back into it",
            replace_values(_make_example_queue(), move_task_running=True),
        ),
        QueueNearMiss("people look at DLQ messages", as_dlq(_make_example_queue())),
    ),
)
