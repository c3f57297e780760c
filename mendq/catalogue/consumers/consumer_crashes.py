"""Symptom `consumer_crashes`: consumers lose messages that they work on, and finish them later.

The fault: a consumer receives a message and ends before it is done: it crashes, is killed for its
memory, or is stopped by a scale-in. Nothing is lost, but SQS hides the message until the visibility
timeout ends. With a timeout of ten minutes each crash delays its messages by ten minutes.

How it shows: some receives were followed by no delete, all through the measured time, and a message
became as old as the visibility timeout although no messages waited at some moment. All messages are
finished in the end; otherwise `consumer_failing` is the symptom. A consumer that gives messages
back makes them visible earlier, so they stay younger than the timeout.

What Mendq does: it records a case, with the number of receives and the delay. It does not page; in
mode `observe` it is only in the case and the report. It changes nothing: a shorter timeout would
have messages handled twice if their work takes as long. The failures of Lambda functions are
counted by Lambda, and other symptoms report them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.catalogue.dlq.attach import SYMPTOMS_TO_FIX_FIRST
from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    as_dlq,
    make_half_hours,
    replace_values,
    standard_queue,
)
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
from mendq.model.metrics import DATAPOINT_PERIOD, Measurement, RecentCounts
from mendq.model.plan import Refusal, Refuse
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
# SQS reports the age once a minute. So the age that shows a timeout may be lower by that.
_AGE_RESOLUTION_SECONDS = int(DATAPOINT_PERIOD.total_seconds())

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
        f"{format_duration(total_delay)} in all. The messages were finished later, and the oldest "
        f"was {measurement_of_queue.highest_oldest_age_seconds:,} s old"
    )


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
    """Return the refusal that notifies people: no attribute keeps consumers from ending early."""
    reason = (
        f"{facts.found}. Find out why consumers end early: no memory, a scale-in, a deployment "
        "that does not wait for the work. Let them give back what they hold before they end "
        "(ChangeMessageVisibility to 0), or set a short timeout and extend it while they work"
    )
    command = show_metric_command(
        facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement
    )
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


CONSUMER_CRASHES = NotifiedSymptom(
    name="consumer_crashes",
    sentence="Consumers end while they work on messages, which then wait for a whole timeout.",
    plan_in_words="Report how many receives were lost and the delay, without a page; no attribute "
    "keeps consumers from ending.",
    habit="keeps losing messages for a visibility timeout",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
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
        QueueExample("nearly half of all receives", _make_example_queue(), "consumer_crashes"),
        QueueExample(
            "a few, with a long timeout",
            _make_example_queue(
                1_800,
                sent=150,
                received=160,
                deleted=149,
                in_flight_now=1,
                highest_oldest_age_seconds=1_745,
                recent=_receive_and_delete(*((14, 12),) * 6, *((13, 13),) * 6),
            ),
            "consumer_crashes",
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
