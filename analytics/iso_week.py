"""ISO weeks: Monday to Sunday, named as `2026-W46`."""

from __future__ import annotations

from datetime import date

from analytics.days import DAY, Days
from functions.healing.nightly import is_in_reach


def days_of(week: str) -> Days:
    """Monday to Sunday of e.g. `2026-W46`. Raise ValueError where there is no such week."""
    year, separator, number = week.partition("-W")
    digits = len(year) == 4 and len(number) == 2 and (year + number).isdecimal()
    if not (separator and digits and week.isascii() and is_in_reach(int(year))):
        raise ValueError(f"{week!r} is not a week like 2026-W46")
    monday = date.fromisocalendar(int(year), int(number), 1)
    return Days(monday, monday + 6 * DAY)


def week_of(monday: date) -> str:
    year, number, _ = monday.isocalendar()
    return f"{year:04}-W{number:02}"


def weeks_before(week: str, count: int = 4) -> list[str]:
    """Oldest first."""
    monday = days_of(week).first
    return [week_of(monday - 7 * back * DAY) for back in range(count, 0, -1)]
