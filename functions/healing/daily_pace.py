"""How many queues a day are told of a fault in their configuration: people can read ten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Self

NEW_QUEUES_A_DAY = 10
# A queue that is still found after so long is news again.
REMEMBERED = timedelta(days=30)


@dataclass(frozen=True)
class DailyPace:
    """Notes of (day, queue ARN): which queues were told of, and when first."""

    notes: frozenset[tuple[date, str]] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """A note that cannot be read is no note."""
        return cls(frozenset(note for text in texts if (note := _note_of(text))))

    def admitted(self, queue_arns: Sequence[str], now: datetime) -> tuple[str, ...]:
        """Those of them that may be told of now: known ones, and new ones while the day has room.

        Known ones go on being told of, because a case stays open only while it is found again.
        """
        known = {arn for day, arn in self.notes if day > (now - REMEMBERED).date()}
        room = NEW_QUEUES_A_DAY - sum(day == now.date() for day, _ in self.notes)
        new = [each for each in dict.fromkeys(queue_arns) if each not in known]
        told = known | set(new[: max(0, room)])
        return tuple(each for each in dict.fromkeys(queue_arns) if each in told)

    def missing(self, admitted: Iterable[str], now: datetime) -> list[str]:
        """The texts to note."""
        known = {arn for day, arn in self.notes if day > (now - REMEMBERED).date()}
        return [f"{now:%Y-%m-%d} {each}" for each in sorted(set(admitted) - known)]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more."""
        oldest = (now - REMEMBERED).date()
        return [f"{day.isoformat()} {arn}" for day, arn in sorted(self.notes) if day <= oldest]


def _note_of(text: str) -> tuple[date, str] | None:
    day, _, queue_arn = text.partition(" ")
    try:
        return date.fromisoformat(day), queue_arn
    except ValueError:
        return None
