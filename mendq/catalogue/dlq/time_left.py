"""Calculate how long the messages of a DLQ still have before SQS deletes them.

SQS deletes a message when it is older than the retention period of the queue that it is in. On a
standard queue the age counts from the first send, also after the move to a DLQ. On a FIFO queue it
begins anew with the move.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, inf
from typing import TypeVar

from mendq.model.limits import Bounds
from mendq.notifications.text import format_duration

# A redrive may take this many times as long as estimated.
DURATION_SAFETY_FACTOR = 2
# With less time left than this, messages are urgent: a person may need a day to approve a plan, and
# there may be a weekend before that.
URGENT_BELOW_TIME_LEFT = timedelta(days=3)
_NO_TIME = timedelta()
ItemType = TypeVar("ItemType")


@dataclass(frozen=True)
class TimeLeft:
    """Bounds on the time until the first message expires."""

    lower_bound: timedelta
    upper_bound: timedelta

    @property
    def is_urgent(self) -> bool:
        """True if the first message may expire in less than URGENT_BELOW_TIME_LEFT."""
        return self.lower_bound < URGENT_BELOW_TIME_LEFT

    def __str__(self) -> str:
        if self.lower_bound == self.upper_bound:
            return f"in {format_duration(self.lower_bound)}"
        if not self.lower_bound:
            return f"within {format_duration(self.upper_bound)}, and maybe at once"
        return f"in {format_duration(self.lower_bound)} to {format_duration(self.upper_bound)}"


def compute_time_left(sent_at: datetime, retention_seconds: int, now: datetime) -> TimeLeft:
    """Return the exact time until a message expires. Both bounds are equal.

    Args:
        sent_at: The time from which SQS counts the message's age.
        retention_seconds: The queue's retention period.
        now: The present time.
    """
    retention = timedelta(seconds=retention_seconds)
    time_until_expiry = min(max(sent_at + retention - now, _NO_TIME), retention)
    return TimeLeft(time_until_expiry, time_until_expiry)


def bound_time_left_by_age(
    age_seconds: float, retention_seconds: int, source_retention_seconds: int, *, is_fifo: bool
) -> TimeLeft:
    """Return bounds on the time left to a DLQ's oldest message, by its age metric.

    ApproximateAgeOfOldestMessage of a DLQ counts from the move to the DLQ. In a standard queue the
    message may have been in the source before for as long as the source keeps messages, so the
    metric gives only bounds. In a FIFO queue it is exact.

    Args:
        age_seconds: The metric's value.
        retention_seconds: The DLQ's retention period.
        source_retention_seconds: The longest retention period of a source.
        is_fifo: True for a FIFO queue.
    """
    upper_bound = max(timedelta(seconds=retention_seconds - age_seconds), _NO_TIME)
    if is_fifo:
        return TimeLeft(upper_bound, upper_bound)
    return TimeLeft(
        max(upper_bound - timedelta(seconds=source_retention_seconds), _NO_TIME), upper_bound
    )


def estimate_duration(
    message_count: int, messages_per_second: float, soak_duration: timedelta, bounds: Bounds
) -> timedelta | None:
    """Estimate how long a redrive takes; None if no message goes back.

    A redrive sends a few messages (the canary), then a growing number in each stage, and waits for
    the soak after each stage (`mendq/redrive/machine.py`).

    Args:
        message_count: The number of messages that go back.
        messages_per_second: The rate at which they go back; 0 if none goes back.
        soak_duration: The wait after each stage.
        bounds: The sizes and times of the stages.
    """
    if messages_per_second <= 0:
        return None
    tick_seconds = bounds.tick_seconds
    # No stage lasts longer than `stage_seconds`, so this is the largest stage.
    largest_stage_size = max(1.0, messages_per_second * bounds.stage_seconds)
    remaining_messages = float(message_count)
    stage_size = float(bounds.canary)
    total_seconds = 0.0
    while remaining_messages > 0 and stage_size < largest_stage_size:
        total_seconds += tick_seconds * max(
            1, ceil(min(stage_size, remaining_messages) / messages_per_second / tick_seconds)
        )
        total_seconds += soak_duration.total_seconds()
        remaining_messages -= stage_size
        stage_size *= bounds.growth
    if remaining_messages > 0:
        stage_count = ceil(remaining_messages / largest_stage_size)
        total_seconds += remaining_messages / messages_per_second + stage_count * (
            tick_seconds + soak_duration.total_seconds()
        )
    # Limited, so that `DURATION_SAFETY_FACTOR` times the result is still a timedelta.
    return timedelta(
        seconds=min(total_seconds, timedelta.max.total_seconds() / DURATION_SAFETY_FACTOR / 2)
    )


def can_messages_expire_during(time_until_expiry: TimeLeft, duration: timedelta | None) -> bool:
    """Return True if messages may expire before a redrive of this duration has sent them.

    The redrive may take `DURATION_SAFETY_FACTOR` times as long. At least `URGENT_BELOW_TIME_LEFT`
    is always needed, because people may need it before the redrive starts. Only that time counts if
    `duration` is None: the redrive then moves nothing and halts.
    """
    return time_until_expiry.lower_bound < max(
        DURATION_SAFETY_FACTOR * (duration or timedelta()), URGENT_BELOW_TIME_LEFT
    )


def sort_by_urgency(
    items: Iterable[ItemType], seconds_left: Callable[[ItemType], float | None]
) -> list[ItemType]:
    """Return the items sorted by the time until they expire, the shortest time first.

    Items for which `seconds_left` returns None come last. Items with equal times keep their order.
    """

    def get_sort_key(item: ItemType) -> float:
        item_seconds_left = seconds_left(item)
        return inf if item_seconds_left is None else item_seconds_left

    return sorted(items, key=get_sort_key)
