"""Which queues showed a symptom lately, to tell one queue's fault from everybody's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

WINDOW = timedelta(hours=1)
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
        """The texts to note, as many as there is room for."""
        known = self.queues(now)
        new = sorted(set(queue_arns) - known)[: max(0, MOST_QUEUES - len(known))]
        return [f"{slot_of(now).isoformat()} {each}" for each in new]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more."""
        oldest = slot_of(now) - WINDOW
        return [f"{slot.isoformat()} {each}" for slot, each in self.notes if slot < oldest]


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
