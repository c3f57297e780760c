"""UTC days and ISO weeks, and their conversion from and to microseconds since 1970."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from mendq.nightly.verdict import is_possible_trail_year, name_of_week

ONE_DAY = timedelta(days=1)
# The number of earlier weeks with which the weekly summary is compared.
PREVIOUS_WEEKS = 7
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_PER_DAY = 86_400 * 1_000_000


@dataclass(frozen=True)
class Days:
    """Consecutive UTC days, from `first_day` to `last_day`, both included."""

    first_day: date
    last_day: date

    def __iter__(self) -> Iterator[date]:
        for offset in range((self.last_day - self.first_day).days + 1):
            yield self.first_day + offset * ONE_DAY

    def __contains__(self, other_days: Days) -> bool:
        return self.first_day <= other_days.first_day and other_days.last_day <= self.last_day

    def __or__(self, other_days: Days) -> Days:
        """Return the fewest consecutive days that cover both, with any days between them."""
        return Days(
            min(self.first_day, other_days.first_day), max(self.last_day, other_days.last_day)
        )

    def extend_to(self, needed_days: Days, original_days: Days) -> Days:
        """Return these days, extended until they include `needed_days`.

        `original_days` are the days before the first extension. If a side must be extended, its
        distance from `original_days` at least doubles, so that few extensions are needed.
        """
        first_day = self.first_day
        last_day = self.last_day
        if needed_days.first_day < first_day:
            days_before = original_days.first_day - first_day
            first_day = min(needed_days.first_day, original_days.first_day - 2 * days_before)
        if needed_days.last_day > last_day:
            days_after = last_day - original_days.last_day
            last_day = max(needed_days.last_day, original_days.last_day + 2 * days_after)
        return Days(first_day, last_day)

    def widen(self, days_before: int, days_after: int) -> Days:
        """Return the days with `days_before` days added before and `days_after` added after."""
        return Days(self.first_day - days_before * ONE_DAY, self.last_day + days_after * ONE_DAY)

    @property
    def start_microseconds(self) -> int:
        """The start of the first day, in microseconds since 1970."""
        return (self.first_day - _EPOCH_DAY).days * _MICROSECONDS_PER_DAY

    @property
    def end_microseconds(self) -> int:
        """The end of the last day (the start of the next day), in microseconds since 1970."""
        return ((self.last_day - _EPOCH_DAY).days + 1) * _MICROSECONDS_PER_DAY

    @classmethod
    def between(cls, first_microseconds: int, last_microseconds: int) -> Days:
        """Return the days from the day of one time to the day of another, both included.

        Both times are in microseconds since 1970.
        """
        return cls(microseconds_to_day(first_microseconds), microseconds_to_day(last_microseconds))


def microseconds_to_day(microseconds: int) -> date:
    """Return the UTC day of a time that is given in microseconds since 1970."""
    return _EPOCH_DAY + (microseconds // _MICROSECONDS_PER_DAY) * ONE_DAY


def to_microseconds(aware_time: datetime) -> int:
    """Return a time with a time zone in microseconds since 1970, without rounding.

    Use this instead of Spark's own conversion of Python times, which depends on the local zone.
    """
    return (aware_time - _EPOCH_TIME) // timedelta(microseconds=1)


def microseconds_to_time(microseconds: int) -> datetime:
    """Return a time in UTC, from its microseconds since 1970."""
    return _EPOCH_TIME + timedelta(microseconds=microseconds)


def parse_week_days(week: str) -> Days:
    """Return Monday to Sunday of an ISO week such as `2026-W46`.

    Raises:
        ValueError: `week` is not the name of a week, or `is_possible_trail_year` excludes its year.
    """
    monday = date.fromisoformat(week)
    if name_of_week(monday) != week or not is_possible_trail_year(int(week[:4])):
        raise ValueError(f"{week!r} is not a week like 2026-W46")
    return Days(monday, monday + 6 * ONE_DAY)


def list_weeks_before(week: str, number_of_weeks: int = PREVIOUS_WEEKS) -> list[str]:
    """Return the names of the `number_of_weeks` weeks before `week`, the oldest first."""
    monday = parse_week_days(week).first_day
    return [
        name_of_week(monday - 7 * weeks_back * ONE_DAY)
        for weeks_back in range(number_of_weeks, 0, -1)
    ]
