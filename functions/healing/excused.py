"""Calls that failed before their queue was last changed: that change may have mended it.

Where one change follows the other, no call ever says anything about the queue as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from functions.healing.plan import Refusal
from functions.healing.states import State

REMEMBERED = timedelta(days=1)
# More often than a queue is deployed; each time calls had failed just before.
MOST_CHANGES = 6


def outdated(changed_at: Iterable[datetime], now: datetime) -> list[datetime]:
    """The changes that count no more."""
    return [each for each in changed_at if now - each >= REMEMBERED]


def keeps_changing(changed_at: Iterable[datetime], now: datetime) -> Refusal | None:
    """A refusal that pages, where so many changes of a day have each excused failed calls.

    Whether the queue fails is not known, so nobody is woken where Mendq only watches.
    """
    lately = {each for each in changed_at if now - each < REMEMBERED}
    if len(lately) < MOST_CHANGES:
        return None
    reason = (
        f"the queue was changed {len(lately)} times within 24 hours, each time just after calls "
        "had failed: none of them tells whether it still fails, and Mendq leaves it alone"
    )
    return Refusal("keeps_changing", reason, State.ESCALATED, silent_in_observe=True)
