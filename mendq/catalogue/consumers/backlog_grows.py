"""Symptom `backlog_grows`: consumers finish messages, but fewer than arrive.

The fault: for hours, more messages arrive than consumers finish. Each message waits longer than the
one before. If nothing changes, the first messages expire.

How it shows: the backlog never became small again. Its smallest value grew from each third of the
measured time to the next, and consumers deleted messages in each third. A burst, a peak of an hour
and an hourly job become small again in one of the thirds. A queue that is read once a day has
thirds without a delete.

What Mendq does: it records a case, with the rate and the time until the first message expires. If
that is less than three days, the finding is sorted by it. It does not page; in mode `observe` it is
only in the case and the report. It changes nothing: no attribute of a queue makes consumers faster.
If consumers fail, are throttled or have stopped, that symptom explains the backlog, and this one
gives way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import sqrt

from mendq.catalogue.dlq.attach import SYMPTOMS_TO_FIX_FIRST
from mendq.catalogue.dlq.time_left import URGENT_BELOW_TIME_LEFT
from mendq.catalogue.examples import as_dlq, make_half_hours, replace_values, standard_queue
from mendq.catalogue.symptom import (
    NEEDS_OF_SUMS_OF_A_SOURCE,
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.metrics import Measurement, RecentCounts
from mendq.model.plan import Refusal, Refuse
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import show_metric_command
from mendq.notifications.text import format_count, format_duration

# The measured time must have at least this many half hours: three hours.
LEAST_HALF_HOURS = 6
# From each third of the time to the next, the smallest backlog grows by at least this many
# messages.
LEAST_GROWTH_PER_THIRD = 10
# A backlog that does not grow varies by chance. If messages arrive and leave independently, its
# standard deviation is the square root of its mean. That three values of it follow each other, each
# larger by this many deviations, has a chance below 1 in 10,000.
CHANCE_DEVIATIONS = 3
# SQS's gauges are approximate. A growth by less than this share of the backlog may be none.
INEXACT_SHARE_OF_BACKLOG = 0.02
# These symptoms explain why the backlog grows.
EXPLAINING_SYMPTOMS = SYMPTOMS_TO_FIX_FIRST | {
    "consumer_crashes",
    "consumer_stopped",
    "consumer_throttled",
    "dlq_missing",
    "fifo_group_blocked",
    "kms_key_unusable",
    "messages_about_to_expire",
    "messages_expire",
    "noisy_message_groups",
}


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose backlog grows for hours although consumers finish messages.

    A DLQ is not reported: its messages wait for a person. While a message movement task runs, the
    messages that it moves are the growth.
    """
    measurement_of_queue = facts.measurement
    if (
        measurement_of_queue is None
        or facts.receives_only_dlq_messages
        or facts.move_task_running
        or EXPLAINING_SYMPTOMS & facts.open_symptoms
        or not _grows_in_each_third(measurement_of_queue.recent.half_hours)
    ):
        return None
    hours = measurement_of_queue.hours
    start_backlog = measurement_of_queue.before.backlog
    growth = measurement_of_queue.now.backlog - start_backlog
    if growth <= 0:
        return None
    seconds_left = _estimate_seconds_left(measurement_of_queue, facts.retention_seconds)
    is_loss_near = (
        seconds_left is not None and seconds_left < URGENT_BELOW_TIME_LEFT.total_seconds()
    )
    return DetectedFault(
        f"the backlog grew from {start_backlog:,} to "
        f"{format_count(measurement_of_queue.now.backlog, 'message')} in "
        f"{format_duration(measurement_of_queue.duration)}, {growth / hours:,.0f} an hour: "
        f"{measurement_of_queue.sent / hours:,.0f} an hour arrive, and consumers finish "
        f"{measurement_of_queue.deleted / hours:,.0f}"
        f"{_describe_first_loss(measurement_of_queue, seconds_left)}",
        seconds_left=seconds_left if is_loss_near else None,
    )


def _grows_in_each_third(half_hours: Sequence[Measurement]) -> bool:
    """Return True if the smallest backlog grows from third to third, and each third has deletes.

    The growth is more than inexact gauges and chance explain.
    """
    if len(half_hours) < LEAST_HALF_HOURS:
        return False
    half_hours_per_third = len(half_hours) // 3
    latest_half_hours = half_hours[-3 * half_hours_per_third :]
    fewest_before: int | None = None
    for third_start in range(0, len(latest_half_hours), half_hours_per_third):
        third = latest_half_hours[third_start : third_start + half_hours_per_third]
        fewest = min(half_hour.fewest_messages or 0 for half_hour in third)
        least_growth = max(
            LEAST_GROWTH_PER_THIRD,
            INEXACT_SHARE_OF_BACKLOG * fewest,
            CHANCE_DEVIATIONS * sqrt(fewest_before or 0),
        )
        if fewest_before is not None and fewest - fewest_before < least_growth:
            return False
        if not any(half_hour.deleted for half_hour in third):
            return False
        fewest_before = fewest
    return True


def _estimate_seconds_left(
    measurement_of_queue: Measurement, retention_seconds: int
) -> float | None:
    """Return the seconds until the first message expires; None if its age does not grow.

    The oldest message becomes older at the pace of the measured time.
    """
    oldest_age_seconds = measurement_of_queue.now.oldest_age_seconds
    age_growth_seconds = oldest_age_seconds - measurement_of_queue.before.oldest_age_seconds
    if age_growth_seconds <= 0:
        return None
    age_growth_per_second = age_growth_seconds / measurement_of_queue.duration.total_seconds()
    return max(0, retention_seconds - oldest_age_seconds) / age_growth_per_second


def _describe_first_loss(measurement_of_queue: Measurement, seconds_left: float | None) -> str:
    """Return the end of a sentence: when the first message expires; empty if it is not known."""
    if seconds_left is None:
        return ""
    return (
        f". The oldest has waited {measurement_of_queue.now.oldest_age_seconds:,} s; at this pace "
        f"the first one expires in {format_duration(timedelta(seconds=round(seconds_left)))}"
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: no attribute makes consumers faster."""
    reason = (
        f"{facts.found}. Run more consumers at once or make them faster, if the producers are "
        "meant to send as much. Look first at what changed when the growth began: a deployment, a "
        "slower database, more senders"
    )
    command = show_metric_command(
        facts.queue_arn, "ApproximateNumberOfMessagesVisible", "Maximum", facts.measurement
    )
    return Refuse("backlog_grows", reason, command)


def _hold_and_delete(*fewest_and_deleted: tuple[int, int]) -> RecentCounts:
    """Return half hours with this smallest backlog and number of deletes."""
    return make_half_hours(
        *(
            {"fewest_messages": fewest_messages, "deleted": deleted}
            for fewest_messages, deleted in fewest_and_deleted
        )
    )


_STEADY_GROWTH = tuple((6_154 + 2_028 * half_hour, 1_721) for half_hour in range(12))
_QUEUE_WITH_GROWING_BACKLOG = standard_queue(
    ApproximateNumberOfMessages=30_498,
    sent=45_000,
    received=20_656,
    deleted=20_656,
    backlog_before=6_154,
    backlog_now=30_498,
    oldest_age_seconds_before=3_600,
    oldest_age_seconds_now=14_400,
    recent=_hold_and_delete(*_STEADY_GROWTH),
)
_READ_ONCE = ((0, 900), *((75 * half_hour, 0) for half_hour in range(1, 12)))
# From third to third, the smallest backlog grows by more than ten messages.
_VARIES_BY_CHANCE = (*((55, 140),) * 4, *((66, 150),) * 4, *((77, 145),) * 4)
_PEAK_OF_TWO_HOURS = (*((2, 50),) * 8, *((300 * half_hour, 90) for half_hour in range(1, 5)))

BACKLOG_GROWS = NotifiedSymptom(
    name="backlog_grows",
    sentence="More messages arrive than consumers finish, so the backlog grows for hours.",
    plan_in_words="Report the rate and when the first message expires, without a page; no "
    "attribute makes consumers faster.",
    habit="keeps falling behind its producers",
    first_step="Add consumers, or slow down the producers.",
    aws_page=f"{SQS_GUIDE}/sqs-available-cloudwatch-metrics.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        NEEDS_OF_SUMS_OF_A_SOURCE,
    ),
    examples=lambda: (
        QueueExample("for six hours", _QUEUE_WITH_GROWING_BACKLOG, "backlog_grows"),
        QueueExample(
            "by little, and no age is reported",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG,
                sent=546,
                received=480,
                deleted=480,
                backlog_before=12,
                backlog_now=78,
                oldest_age_seconds_now=0,
                recent=_hold_and_delete(*((12 + 6 * half_hour, 40) for half_hour in range(12))),
            ),
            "backlog_grows",
        ),
        QueueNearMiss(
            "a peak of two hours",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG, recent=_hold_and_delete(*_PEAK_OF_TWO_HOURS)
            ),
        ),
        QueueNearMiss(
            "messages are delayed, and their number varies by chance",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG,
                backlog_before=72,
                backlog_now=95,
                recent=_hold_and_delete(*_VARIES_BY_CHANCE),
            ),
        ),
        QueueNearMiss(
            "a job reads it once in six hours",
            replace_values(_QUEUE_WITH_GROWING_BACKLOG, recent=_hold_and_delete(*_READ_ONCE)),
        ),
        QueueNearMiss(
            "a large backlog that does not change",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG, recent=_hold_and_delete(*((30_000, 1_721),) * 12)
            ),
        ),
        QueueNearMiss(
            "consumers catch up after an outage",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG, recent=_hold_and_delete(*_STEADY_GROWTH[::-1])
            ),
        ),
        QueueNearMiss(
            "only two and a half hours are known",
            replace_values(
                _QUEUE_WITH_GROWING_BACKLOG, recent=_hold_and_delete(*_STEADY_GROWTH[:5])
            ),
        ),
        QueueNearMiss(
            "DLQ messages are moved back into it",
            replace_values(_QUEUE_WITH_GROWING_BACKLOG, move_task_running=True),
        ),
        QueueNearMiss("a DLQ fills", as_dlq(_QUEUE_WITH_GROWING_BACKLOG)),
    ),
)
