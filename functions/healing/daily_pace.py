"""How many faults in configurations people are told of a day: they can read ten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Self

NEW_FAULTS_A_DAY = 10
# What is still found after so long is news again.
REMEMBERED = timedelta(days=30)


@dataclass(frozen=True)
class DailyPace:
    """Notes of (day, topic): which faults of which queues were told of, and when first."""

    notes: frozenset[tuple[date, str]] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """A note that cannot be read is no note."""
        return cls(frozenset(note for text in texts if (note := _note_of(text))))

    def admitted(self, topics: Sequence[str], now: datetime) -> tuple[str, ...]:
        """Those of them that may be told of now: known ones, and new ones while the day has room.

        Known ones go on being told of, because a case stays open only while it is found again.
        """
        known = {topic for day, topic in self.notes if day > (now - REMEMBERED).date()}
        room = NEW_FAULTS_A_DAY - sum(day == now.date() for day, _ in self.notes)
        new = [each for each in dict.fromkeys(topics) if each not in known]
        told = known | set(new[: max(0, room)])
        return tuple(each for each in dict.fromkeys(topics) if each in told)

    def missing(self, admitted: Iterable[str], now: datetime) -> list[str]:
        """The texts to note."""
        known = {topic for day, topic in self.notes if day > (now - REMEMBERED).date()}
        return [f"{now:%Y-%m-%d} {each}" for each in sorted(set(admitted) - known)]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more."""
        oldest = (now - REMEMBERED).date()
        return [f"{day.isoformat()} {topic}" for day, topic in sorted(self.notes) if day <= oldest]


def _note_of(text: str) -> tuple[date, str] | None:
    day, _, topic = text.partition(" ")
    try:
        return date.fromisoformat(day), topic
    except ValueError:
        return None
