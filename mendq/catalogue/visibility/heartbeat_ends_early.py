"""Symptom `heartbeat_ends_early`: consumers hide their messages, but not until the work ends.

The fault: a consumer works longer than the visibility timeout, so it extends the timeout while it
works (a heartbeat). But it stops too early: a library's limit such as `max_extension` is shorter
than the longest work, the heartbeat's thread ends, or SQS refuses more than 12 hours. Or it sets a
timeout of its own with each receive (`VisibilityTimeout` of ReceiveMessage), which is longer than
the queue's and shorter than the work. Then SQS returns the message to another consumer, and it is
handled twice. Metrics do not tell the two apart, so every text names both.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html

How it shows: there are more deletes than messages, so some were handled twice. And a receive keeps
its message in flight much longer than the visibility timeout, which is impossible unless consumers
set another timeout: in each call that receives, or by `ChangeMessageVisibility`.

Not found: heartbeats of FIFO queues, where a late delete fails and CloudTrail records it
(`readers_set_their_own` of `visibility_timeout_too_short`), and functions that Lambda runs.

What Mendq does: it records a case, with the time that a receive keeps a message. It does not page,
because nothing is lost; a DLQ that fills pages as usual. It changes nothing: the consumers set the
timeout, so a longer timeout of the queue may not help. While this fault shows,
`visibility_timeout_too_short` is not reported.
"""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, as_dlq, replace_values, standard_queue
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
from mendq.model.metrics import DATAPOINT_PERIOD, Measurement
from mendq.model.plan import Refusal, Refuse
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import show_metric_command
from mendq.notifications.text import format_count, format_duration

# A receive keeps its message in flight for at least this many visibility timeouts, after the
# timeout was rounded up to whole minutes. SQS reports the number in flight once a minute. So a
# message that is in flight for ten seconds may be in one report, as if it took a minute. Without an
# extension it is never in more reports than the timeout has minutes, rounded up. The rest allows
# for approximate numbers.
LEAST_TIMEOUTS_IN_FLIGHT = 1.3
# At least this many messages, and this share of those sent, were deleted twice. That is less than
# `counter_tolerance`: the time in flight already shows that the work is long.
LEAST_SURPLUS_DELETES = 10
LEAST_SURPLUS_SHARE_OF_SENDS = 0.02


def detect(facts: Facts) -> DetectedFault | None:
    """Find consumers that extend the visibility timeout, or set their own, but end it too early."""
    if not does_heartbeat_end_early(facts) or facts.measurement is None:
        return None
    measurement = facts.measurement
    seconds_in_flight = measurement.seconds_in_flight_per_receive or 0
    handled_count = measurement.deleted - measurement.surplus_deletes
    return DetectedFault(
        f"in {format_duration(measurement.duration)}, consumers made "
        f"{format_count(measurement.deleted, 'delete')} for about "
        f"{format_count(handled_count, 'message')}, so messages were handled twice. Consumers keep "
        "a message in flight for about "
        f"{format_duration(timedelta(seconds=round(seconds_in_flight)))}, although "
        f"VisibilityTimeout is {facts.visibility_seconds:,} s: they extend it or set their own, "
        "and it ends before the work does",
        should_page=False,
    )


def does_heartbeat_end_early(facts: Facts) -> bool:
    """Return True if messages are handled twice although consumers lengthen their timeout.

    The counts are misleading on a DLQ and while a message movement task runs. Lambda extends no
    timeout itself.
    """
    measurement = facts.measurement
    if (
        measurement is None
        or facts.is_fifo
        or facts.lambda_consumers
        or facts.receives_only_dlq_messages
        or facts.move_task_running
    ):
        return False
    return _are_messages_handled_twice(measurement) and _is_timeout_lengthened(
        measurement, facts.visibility_seconds
    )


def _are_messages_handled_twice(measurement: Measurement) -> bool:
    """Return True if messages were deleted twice, each time after another receive.

    As `has_consumer_race`, with a smaller margin.
    """
    surplus_deletes = measurement.surplus_deletes
    least_surplus = max(LEAST_SURPLUS_DELETES, LEAST_SURPLUS_SHARE_OF_SENDS * measurement.sent)
    return (
        least_surplus <= surplus_deletes <= measurement.deleted
        and measurement.deleted <= measurement.received + measurement.before.in_flight
    )


def _is_timeout_lengthened(measurement: Measurement, visibility_seconds: int) -> bool:
    """Return True if a receive keeps its message much longer than the queue's timeout."""
    seconds_in_flight = measurement.seconds_in_flight_per_receive
    report_seconds = DATAPOINT_PERIOD.total_seconds()
    most_reports = max(1, ceil(visibility_seconds / report_seconds))
    least_seconds = LEAST_TIMEOUTS_IN_FLIGHT * most_reports * report_seconds
    return seconds_in_flight is not None and seconds_in_flight >= least_seconds


def is_possible(facts: Facts) -> bool:
    """Return True if a standard queue has no Lambda consumers."""
    return not facts.is_fifo and not facts.lambda_consumers


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: the consumers set the timeout, not the queue."""
    reason = (
        f"{facts.found}. If they extend it, raise the limit of the heartbeat (such as "
        "max_extension) above the longest work, and let it run in a thread that the work cannot "
        "block. If they set VisibilityTimeout with each receive, raise it above the longest work, "
        "or extend it while the work goes on. Work of more than 12 hours must be split: SQS keeps "
        "no message in flight for longer"
    )
    command = show_metric_command(
        facts.queue_arn, "ApproximateNumberOfMessagesNotVisible", "Maximum", facts.measurement
    )
    return Refuse("heartbeat_ends_early", reason, command)


def _make_example_queue(**overrides: Any) -> Facts:
    """Return a queue with 250 messages handled twice, each in flight for 280 s by a receive."""
    traffic_counts = {
        "sent": 650,
        "received": 900,
        "deleted": 900,
        "in_flight_seconds": 252_000.0,
    }
    return replace_values(standard_queue(VisibilityTimeout=60), **{**traffic_counts, **overrides})


HEARTBEAT_ENDS_EARLY = NotifiedSymptom(
    name="heartbeat_ends_early",
    sentence="Consumers extend the visibility timeout, or set their own, and it ends before their "
    "work does.",
    plan_in_words="Report how long a receive keeps its message and how many were handled twice, "
    "without a page; the consumers set the timeout.",
    habit="keeps hiding its messages for too short a time",
    first_step="Make the consumer extend the timeout until its work ends.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(EvidenceKind(SeverityClass.LOSING),),
    plan=plan,
    detection=Detection(
        detect,
        frozenset(
            {
                Need.QUEUE,
                Need.MEASUREMENTS,
                Need.MOVE_TASKS,
                Need.DLQ_SOURCES,
                Need.LAMBDA_CONSUMERS,
            }
        ),
        is_possible,
    ),
    examples=lambda: (
        QueueExample(
            "the heartbeat ends after four minutes", _make_example_queue(), "heartbeat_ends_early"
        ),
        QueueExample(
            "only the longest work takes longer",
            _make_example_queue(received=670, deleted=663, in_flight_seconds=82_080.0),
            "heartbeat_ends_early",
        ),
        QueueNearMiss(
            "the heartbeat outlasts the work",
            _make_example_queue(received=650, deleted=650, in_flight_seconds=195_000.0),
        ),
        QueueNearMiss(
            "late deletes without a heartbeat",
            _make_example_queue(in_flight_seconds=54_000.0),
        ),
        QueueNearMiss(
            "each minute's messages come at once, so a short timeout looks like a minute",
            _make_example_queue(VisibilityTimeout=6, in_flight_seconds=56_160.0),
        ),
        QueueNearMiss("one handle is deleted twice", _make_example_queue(received=650)),
        QueueNearMiss("consumers hold a backlog", _make_example_queue(deleted=655)),
        QueueNearMiss(
            "Lambda reads it",
            replace_values(_make_example_queue(), lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
        QueueNearMiss(
            "DLQ messages are moved back into it",
            replace_values(_make_example_queue(), move_task_running=True),
        ),
        QueueNearMiss("people look at DLQ messages", as_dlq(_make_example_queue())),
    ),
)
