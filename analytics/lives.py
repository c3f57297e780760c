"""A case from its opening to the newest that is known, as a week tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from analytics.cases import by_case
from analytics.days import Days, microseconds
from analytics.outcomes import ended_at, outcome
from functions.healing.case import Case

MOST_NAME = 200
MOST_TEXT = 1_000


@dataclass(frozen=True)
class Life:
    """A case's transitions, in order; a case older than what was read lacks its first ones."""

    transitions: tuple[Case, ...]

    @property
    def newest(self) -> Case:
        return self.transitions[-1]

    @property
    def outcome(self) -> str:
        return outcome(self.transitions)

    @property
    def opening(self) -> Case | None:
        """None where it was opened before what was read."""
        return self.transitions[0] if self.transitions[0].n == 1 else None

    @property
    def opened_at(self) -> datetime:
        """Where the opening was not read, the first thing that speaks for it."""
        if self.opening:
            return self.opening.at
        first_at: str = self.transitions[0].evidence["first_at"]
        return datetime.fromisoformat(first_at).astimezone(UTC)

    @property
    def ended_at(self) -> datetime | None:
        return ended_at(self.transitions)

    @property
    def is_swept(self) -> bool:
        """Whether no failed call opened it."""
        failed_calls = self.transitions[0].evidence.get("failed_calls")
        return failed_calls == 0 and not isinstance(failed_calls, bool)

    @property
    def is_paged(self) -> bool:
        return any(each.paged is True for each in self.transitions)

    def pages(self, days: Days) -> list[Case]:
        """The transitions of `days` that paged somebody."""
        return [each for each in self.within(days) if each.paged is True]

    def within(self, days: Days) -> Iterator[Case]:
        return (each for each in self.transitions if is_within(each.at, days))


@dataclass(frozen=True)
class Step:
    """One change as a transition holds it."""

    attribute: str
    before: str
    after: str


def lives(transitions: Iterable[Case]) -> list[Life]:
    """One per case, by its id."""
    return [Life(each) for each in by_case(transitions)]


def steps_of(case: Case) -> list[Step]:
    """Its steps, without what is none: a file in the bucket may hold anything."""
    documents = [each for each in case.steps if isinstance(each, Mapping)]
    read = [[each.get(name) for name in ("attribute", "before", "after")] for each in documents]
    return [
        Step(*(text for text in texts if isinstance(text, str)))
        for texts in read
        if all(isinstance(text, str) for text in texts)
    ]


def is_within(moment: datetime, days: Days) -> bool:
    return days.from_microseconds <= microseconds(moment) < days.before_microseconds


def shortened(text: Any, most: int = MOST_TEXT) -> str:
    """`text` in at most `most` characters that every encoding can spell; empty where it is none."""
    if not isinstance(text, str):
        return ""
    spelled = text[: most + 1].encode(errors="backslashreplace").decode()
    return spelled if len(spelled) <= most else f"{spelled[: most - 3]}..."
