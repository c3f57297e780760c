"""Which queues showed a symptom lately, to tell one queue's fault from everybody's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

WINDOW = timedelta(hours=1)
SLOT = timedelta(minutes=10)
# An item of the ledger holds 400 KB; so many queues are a mass symptom in any account.
MOST_QUEUES = 2_000


@dataclass(frozen=True)
class Spread:
    """Notes of (when, queue ARN), `when` to the ten minutes, so that repeats are one note."""

    notes: frozenset[tuple[datetime, str]] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """A note that cannot be read is no note: one bad text must not stop an account."""
        return cls(frozenset(note for text in texts if (note := _note_of(text))))

    def queues(self, now: datetime) -> frozenset[str]:
        """Those of the last hour, rounded up to the ten minutes."""
        oldest = slot_of(now) - WINDOW
        return frozenset(queue_arn for slot, queue_arn in self.notes if slot >= oldest)

    def missing(self, queue_arns: Iterable[str], now: datetime) -> list[str]:
        """The texts to note, as many as there is room for.

        A queue that goes on failing is noted anew every other slot: else the notes of a mass
        symptom that lasts would run out together, and its queues look few.
        """
        lately = {arn for slot, arn in self.notes if slot >= slot_of(now) - SLOT}
        room = max(0, MOST_QUEUES - len(self.notes) + len(self.outdated(now)))
        return [f"{slot_of(now).isoformat()} {each}" for each in sorted(set(queue_arns) - lately)][
            :room
        ]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more: too old, or noted anew since."""
        oldest = slot_of(now) - WINDOW
        newest: dict[str, datetime] = {}
        for slot, queue_arn in self.notes:
            newest[queue_arn] = max(slot, newest.get(queue_arn, slot))
        return [
            f"{slot.isoformat()} {arn}"
            for slot, arn in self.notes
            if slot < max(oldest, newest[arn])
        ]


@dataclass(frozen=True)
class Reach:
    """The queues that show a symptom now, of how many managed ones; 0: they were not counted."""

    queue_arns: frozenset[str]
    managed_queues: int = 0

    @classmethod
    def among(cls, spread: frozenset[str], managed: frozenset[str]) -> Self:
        """What was noted of queues that are gone, or not managed any more, counts for nothing."""
        return cls(spread & managed, len(managed))


def slot_of(moment: datetime) -> datetime:
    """The ten minutes that a moment lies in."""
    return moment.replace(minute=moment.minute // 10 * 10, second=0, microsecond=0)


def _note_of(text: str) -> tuple[datetime, str] | None:
    slot, _, queue_arn = text.partition(" ")
    try:
        moment = datetime.fromisoformat(slot)
    except ValueError:
        return None
    return (moment, queue_arn) if moment.tzinfo else None
