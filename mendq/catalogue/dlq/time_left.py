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
SAFETY = 2
# With less time left than this, messages are urgent: a person may need a day to approve a plan, and
# there may be a weekend before that.
UNHURRIED = timedelta(days=3)
_NOTHING = timedelta()
Item = TypeVar("Item")


@dataclass(frozen=True)
class TimeLeft:
    """Bounds on the time until the first message expires."""

    at_least: timedelta
    at_most: timedelta

    @property
    def is_urgent(self) -> bool:
        """True if the messages may expire before people have had a day to decide and a weekend."""
        return self.at_least < UNHURRIED

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return f"in {format_duration(self.at_least)}"
        if not self.at_least:
            return f"within {format_duration(self.at_most)}, and maybe at once"
        return f"in {format_duration(self.at_least)} to {format_duration(self.at_most)}"


def time_left_of_message(sent_at: datetime, retained_seconds: int, now: datetime) -> TimeLeft:
    """Return the time left to one message, exactly.

    Args:
        sent_at: The time from which SQS counts the message's age.
        retained_seconds: The queue's retention period.
        now: The present time.
    """
    retained = timedelta(seconds=retained_seconds)
    left = min(max(sent_at + retained - now, _NOTHING), retained)
    return TimeLeft(left, left)


def time_left_by_age(
    age_seconds: float, retained_seconds: int, source_retained_seconds: int, *, is_fifo: bool
) -> TimeLeft:
    """Return bounds on the time left to a DLQ's oldest message, by its age metric.

    ApproximateAgeOfOldestMessage of a DLQ counts from the move to the DLQ. In a standard queue the
    message may have been in the source before for as long as the source keeps messages, so the
    metric gives only bounds. In a FIFO queue it is exact.

    Args:
        age_seconds: The metric's value.
        retained_seconds: The DLQ's retention period.
        source_retained_seconds: The longest retention period of a source.
        is_fifo: True for a FIFO queue.
    """
    at_most = max(timedelta(seconds=retained_seconds - age_seconds), _NOTHING)
    if is_fifo:
        return TimeLeft(at_most, at_most)
    return TimeLeft(max(at_most - timedelta(seconds=source_retained_seconds), _NOTHING), at_most)


def estimate_duration(
    messages: int, per_second: float, soak: timedelta, bounds: Bounds
) -> timedelta | None:
    """Estimate how long a redrive takes; None if it never ends, because nothing may go back.

    A redrive sends a few messages (the canary), then a growing number in each stage, and waits for
    the soak after each stage (`mendq/redrive/machine.py`).

    Args:
        messages: The messages that go back.
        per_second: The rate at which they go back.
        soak: The wait after each stage.
        bounds: The sizes and times of the stages.
    """
    if per_second <= 0:
        return None
    tick = bounds.tick_seconds
    # No stage lasts longer than `stage_seconds`, so this is the largest stage.
    largest = max(1.0, per_second * bounds.stage_seconds)
    left = float(messages)
    size = float(bounds.canary)
    seconds = 0.0
    while left > 0 and size < largest:
        seconds += tick * max(1, ceil(min(size, left) / per_second / tick))
        seconds += soak.total_seconds()
        left -= size
        size *= bounds.growth
    if left > 0:
        stages = ceil(left / largest)
        seconds += left / per_second + stages * (tick + soak.total_seconds())
    # Limited, so that `SAFETY` times the result is still a timedelta.
    return timedelta(seconds=min(seconds, timedelta.max.total_seconds() / SAFETY / 2))


def can_expire_during(left: TimeLeft, duration: timedelta | None) -> bool:
    """Return True if messages may expire before a redrive of this duration has sent them.

    The redrive may take `SAFETY` times as long, and people may need the time `UNHURRIED` before it
    starts. If `duration` is None, the redrive moves nothing and halts, so only `UNHURRIED` counts.
    """
    return left.at_least < max(SAFETY * (duration or timedelta()), UNHURRIED)


def sort_by_urgency(
    items: Iterable[Item], seconds_left: Callable[[Item], float | None]
) -> list[Item]:
    """Return the items with those first that expire first.

    Items that never expire (`seconds_left` returns None) come last, in their present order.
    """

    def find_key(item: Item) -> float:
        seconds = seconds_left(item)
        return inf if seconds is None else seconds

    return sorted(items, key=find_key)
