"""UTC days and ISO weeks, and their conversion from and to microseconds since 1970."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from mendq.nightly.verdict import is_in_reach, name_of_week

ONE_DAY = timedelta(days=1)
# The weekly summary is compared with this number of weeks before it.
PREVIOUS_WEEKS = 7
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_PER_DAY = 86_400 * 1_000_000


@dataclass(frozen=True)
class Days:
    """An unbroken run of UTC days, from `first` to `last`, both included."""

    first: date
    last: date

    def __iter__(self) -> Iterator[date]:
        for offset in range((self.last - self.first).days + 1):
            yield self.first + offset * ONE_DAY

    def __contains__(self, other: Days) -> bool:
        return self.first <= other.first and other.last <= self.last

    def __or__(self, other: Days) -> Days:
        """Return the shortest run of days that covers both, with any days between them."""
        return Days(min(self.first, other.first), max(self.last, other.last))

    def extend_to(self, needed_days: Days, original_days: Days) -> Days:
        """Return these days, extended until they include `needed_days`.

        A side that must be extended is then at least twice as far away from `original_days` as
        before, so that few extensions are needed. `original_days` are the days before the first
        extension.
        """
        first = self.first
        last = self.last
        if needed_days.first < first:
            first = min(needed_days.first, original_days.first - 2 * (original_days.first - first))
        if needed_days.last > last:
            last = max(needed_days.last, original_days.last + 2 * (last - original_days.last))
        return Days(first, last)

    def widen(self, before: int, after: int) -> Days:
        """Return these days with `before` days added in front of them and `after` behind them."""
        return Days(self.first - before * ONE_DAY, self.last + after * ONE_DAY)

    @property
    def start_microseconds(self) -> int:
        """Start of the first day, in microseconds since 1970."""
        return (self.first - _EPOCH_DAY).days * _MICROSECONDS_PER_DAY

    @property
    def end_microseconds(self) -> int:
        """End of the last day, in microseconds since 1970: the first one that is not included."""
        return ((self.last - _EPOCH_DAY).days + 1) * _MICROSECONDS_PER_DAY

    @classmethod
    def between(cls, first_microseconds: int, last_microseconds: int) -> Days:
        """Return all days from one time to another, both in microseconds since 1970."""
        return cls(microseconds_to_day(first_microseconds), microseconds_to_day(last_microseconds))


def microseconds_to_day(microseconds: int) -> date:
    """Return the UTC day of a time that is given in microseconds since 1970."""
    return _EPOCH_DAY + (microseconds // _MICROSECONDS_PER_DAY) * ONE_DAY


def to_microseconds(moment: datetime) -> int:
    """Return an aware time in microseconds since 1970, without rounding.

    Use this instead of Spark's own conversion of Python times, which depends on the local zone.
    """
    return (moment - _EPOCH_TIME) // timedelta(microseconds=1)


def microseconds_to_time(microseconds: int) -> datetime:
    """Return a time in UTC, from its microseconds since 1970."""
    return _EPOCH_TIME + timedelta(microseconds=microseconds)


def parse_week_days(week: str) -> Days:
    """Return Monday to Sunday of an ISO week such as `2026-W46`.

    Raises:
        ValueError: if `week` is not the name of a week, or its year is not `is_in_reach`.
    """
    monday = date.fromisoformat(week)
    if name_of_week(monday) != week or not is_in_reach(int(week[:4])):
        raise ValueError(f"{week!r} is not a week like 2026-W46")
    return Days(monday, monday + 6 * ONE_DAY)


def list_weeks_before(week: str, number_of_weeks: int = PREVIOUS_WEEKS) -> list[str]:
    """Return the names of the `number_of_weeks` weeks before `week`, the oldest first."""
    monday = parse_week_days(week).first
    return [
        name_of_week(monday - 7 * weeks_back * ONE_DAY)
        for weeks_back in range(number_of_weeks, 0, -1)
    ]
