"""A JSON document under the reader's finger: each value knows where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from functions.report.visible import visible

# Spark's long.
LARGEST = 2**63 - 1


class SummaryUnreadable(Exception):
    """A summary that this report cannot read; one line that names the place and what is wrong."""


@dataclass(frozen=True)
class At:
    """A value and its place; each reading raises SummaryUnreadable where it does not fit."""

    place: str
    value: Any

    def wrong(self, expected: str) -> SummaryUnreadable:
        shown = visible(ascii(self.value), 40)
        place = visible(self.place, 120) or "the document"
        return SummaryUnreadable(f"summary.json: {place} must be {expected}, not {shown}")

    def __getitem__(self, key: str) -> At:
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        place = f"{self.place}.{key}".lstrip(".")
        if key not in self.value:
            raise SummaryUnreadable(f"summary.json: {place} is missing")
        return At(place, self.value[key])

    def __iter__(self) -> Iterator[At]:
        if not isinstance(self.value, list | tuple):
            raise self.wrong("a list")
        return iter([At(f"{self.place}[{n}]", each) for n, each in enumerate(self.value)])

    def at_most(self, number: int) -> At:
        """Itself, a list or an object that has no more than `number` entries."""
        if isinstance(self.value, list | tuple | Mapping) and len(self.value) > number:
            raise self.wrong(f"no more than {number:,} entries")
        return self

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def text_or_none(self) -> str | None:
        return None if self.value is None else self.text()

    def texts(self) -> tuple[str, ...]:
        return tuple(each.text() for each in self)

    def whole(self) -> int:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self.wrong("a whole number from 0")
        return value

    def counts(self) -> tuple[tuple[str, int], ...]:
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        return tuple((str(key), self[str(key)].whole()) for key in self.value)

    def seconds_or_none(self) -> float | None:
        value = self.value
        if value is None:
            return None
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not 0 <= value <= LARGEST:
            raise self.wrong("seconds from 0, or null")
        return float(value)

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def day(self) -> date:
        try:
            return date.fromisoformat(self.text())
        except ValueError:
            raise self.wrong("a day such as 2026-11-09") from None

    def time(self) -> datetime:
        expected = "a time such as 2026-11-09T06:00:00Z"
        try:
            moment = datetime.fromisoformat(self.text())
            in_utc = moment.astimezone(UTC) if moment.tzinfo else None
        except (ValueError, OverflowError):
            raise self.wrong(expected) from None
        if in_utc is None:
            raise self.wrong(expected)
        return in_utc
