"""UTC days and ISO weeks: what a run is asked for, reads, and writes anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from mendq.nightly.verdict import is_in_reach, week_named

DAY = timedelta(days=1)
PREVIOUS_WEEKS = 7
_EPOCH = date(1970, 1, 1)
_DAY_MICROSECONDS = 86_400 * 1_000_000


@dataclass(frozen=True)
class Days:
    """From `first` to `last`, both inclusive."""

    first: date
    last: date

    def __iter__(self) -> Iterator[date]:
        for offset in range((self.last - self.first).days + 1):
            yield self.first + offset * DAY

    def __contains__(self, other: Days) -> bool:
        return self.first <= other.first and other.last <= self.last

    def __or__(self, other: Days) -> Days:
        """The shortest run of days that covers both."""
        return Days(min(self.first, other.first), max(self.last, other.last))

    def stretched(self, needed: Days, around: Days) -> Days:
        """Over `needed` too; a side that fell short reaches twice as far from `around` at least."""
        first, last = self.first, self.last
        if needed.first < first:
            first = min(needed.first, around.first - 2 * (around.first - first))
        if needed.last > last:
            last = max(needed.last, around.last + 2 * (last - around.last))
        return Days(first, last)

    def widened(self, before: int, after: int) -> Days:
        return Days(self.first - before * DAY, self.last + after * DAY)

    @property
    def from_microseconds(self) -> int:
        """The first microsecond since 1970."""
        return (self.first - _EPOCH).days * _DAY_MICROSECONDS

    @property
    def before_microseconds(self) -> int:
        """The first microsecond after these days."""
        return ((self.last - _EPOCH).days + 1) * _DAY_MICROSECONDS

    @classmethod
    def touched(cls, first_microseconds: int, last_microseconds: int) -> Days:
        """The days between two moments."""
        return cls(day_of(first_microseconds), day_of(last_microseconds))


def day_of(microseconds: int) -> date:
    """The day of a moment since 1970."""
    return _EPOCH + (microseconds // _DAY_MICROSECONDS) * DAY


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly; Spark's own converting of Python times goes through the local zone."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def time_of(microseconds: int) -> datetime:
    """The moment so long after 1970 began."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def days_of(week: str) -> Days:
    """Monday to Sunday of e.g. `2026-W46`. Raise ValueError where there is no such week."""
    monday = date.fromisoformat(week)
    if week_named(monday) != week or not is_in_reach(int(week[:4])):
        raise ValueError(f"{week!r} is not a week like 2026-W46")
    return Days(monday, monday + 6 * DAY)


def weeks_before(week: str, count: int = PREVIOUS_WEEKS) -> list[str]:
    """Oldest first."""
    monday = days_of(week).first
    return [week_named(monday - 7 * back * DAY) for back in range(count, 0, -1)]
