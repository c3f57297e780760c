"""How long the messages of a DLQ still have before SQS deletes them.

A standard queue's message keeps the time at which its message was first sent; a FIFO queue's begins
anew when it is moved.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, inf
from typing import TypeVar

from mendq.model.limits import Bounds
from mendq.notifications.text import span

# A redrive may take so much longer than it should.
SAFETY = 2
# A person may take a day to approve it, and nobody a weekend to look.
UNHURRIED = timedelta(days=3)
_NOTHING = timedelta()
Each = TypeVar("Each")


@dataclass(frozen=True)
class TimeLeft:
    """Until the first message expires: no sooner than one, no later than the other."""

    at_least: timedelta
    at_most: timedelta

    @property
    def is_urgent(self) -> bool:
        """Whether a day of somebody's thinking and a weekend may be too long."""
        return self.at_least < UNHURRIED

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return f"in {span(self.at_least)}"
        if not self.at_least:
            return f"within {span(self.at_most)}, and maybe at once"
        return f"in {span(self.at_least)} to {span(self.at_most)}"


def left_of(sent_at: datetime, retained_seconds: int, now: datetime) -> TimeLeft:
    """Of one message, exactly, by when SQS took it."""
    retained = timedelta(seconds=retained_seconds)
    left = min(max(sent_at + retained - now, _NOTHING), retained)
    return TimeLeft(left, left)


def left_by_age(
    age_seconds: float, retained_seconds: int, source_retained_seconds: int, *, is_fifo: bool
) -> TimeLeft:
    """By ApproximateAgeOfOldestMessage, which on a DLQ counts from the move.

    So it is a bound: before the move a message may have been in the source for as long as that
    keeps messages.
    """
    at_most = max(timedelta(seconds=retained_seconds - age_seconds), _NOTHING)
    if is_fifo:
        return TimeLeft(at_most, at_most)
    return TimeLeft(max(at_most - timedelta(seconds=source_retained_seconds), _NOTHING), at_most)


def takes(messages: int, per_second: float, soak: timedelta, bounds: Bounds) -> timedelta | None:
    """How long a redrive of so many takes, with a soak after each stage; None: for ever."""
    if per_second <= 0:
        return None
    tick, most = bounds.tick_seconds, max(1.0, per_second * bounds.stage_seconds)
    left, size, seconds = float(messages), float(bounds.canary), 0.0
    while left > 0 and size < most:
        seconds += tick * max(1, ceil(min(size, left) / per_second / tick))
        seconds += soak.total_seconds()
        left, size = left - size, size * bounds.growth
    if left > 0:
        seconds += left / per_second + ceil(left / most) * (tick + soak.total_seconds())
    return timedelta(seconds=min(seconds, timedelta.max.total_seconds() / SAFETY / 2))


def could_lose(left: TimeLeft, lasts: timedelta | None) -> bool:
    """Whether messages might expire before a redrive that lasts so long has come to them.

    One that would last for ever moves nothing, and halts: then only haste decides.
    """
    return left.at_least < max(SAFETY * (lasts or timedelta()), UNHURRIED)


def most_urgent_first(
    items: Iterable[Each], seconds_left: Callable[[Each], float | None]
) -> list[Each]:
    """Whatever expires first, at the front; what never does stays behind, in the order it had."""
    return sorted(items, key=lambda item: inf if (left := seconds_left(item)) is None else left)
