"""Numbers, times and names as the report writes them; English, whatever the machine speaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from functions.report.summary import UNRESOLVED
from functions.report.visible import MOST_PRINCIPAL, visible

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_UNIT = re.compile(r"(?<=\d) (?=(?:s|min|h|d|%|bytes?|[kMGTPE]B|points?)(?!\w))")


def together(text: str) -> str:
    """`text` for a sink that breaks lines: none between a number and its unit."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def counted(number: int, one: str, many: str = "") -> str:
    """`1 incident`, `1,204 incidents`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def duration(seconds: float) -> str:
    """Two units at most: `41 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    for size, unit, part_size, part_unit in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            part = whole % size // part_size
            return f"{whole // size:,} {unit}" + (f" {part} {part_unit}" if part else "")
    return f"{whole} s" if seconds >= 1 or not seconds else "under 1 s"


def byte_size(size_bytes: int) -> str:
    """Decimal units, one digit: `0 bytes`, `81.2 MB`."""
    size, unit = float(size_bytes), 0
    while round(size, 1) >= 1000 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_BYTE_UNITS[unit]}" if unit else counted(size_bytes, "byte")


def share(part: int, whole: int) -> str:
    """Percent of a whole above 0; never 0 % or 100 % where that would hide a part."""
    percent = round(100 * part / whole)
    if part and not percent:
        return "under 1 %"
    return "over 99 %" if part < whole and percent == 100 else f"{percent} %"


def number(value: float) -> str:
    """A median: `21`, `20.5`."""
    return f"{value:,.1f}".removesuffix(".0")


def short_day(day: date) -> str:
    return f"{_DAYS[day.weekday()]} {day.day}"


def day(each: date) -> str:
    return f"{short_day(each)} {_MONTHS[each.month - 1]}"


def moment(at: datetime) -> str:
    return f"{day(at)} {at.year} {clock(at)} UTC"


def clock(at: datetime) -> str:
    return f"{at.hour:02}:{at.minute:02}"


def span(first: datetime, last: datetime) -> str:
    """`Thu 12 14:02`, `Thu 12 14:02-14:09`, `Thu 12 23:58 - Fri 13 00:04`."""
    begin, end = f"{short_day(first)} {clock(first)}", f"{short_day(last)} {clock(last)}"
    if begin == end:
        return begin
    return f"{begin}\N{EN DASH}{clock(last)}" if begin[:-5] == end[:-5] else f"{begin} to {end}"


def days_of(first: date, last: date) -> str:
    """`9 to 15 Nov 2026`, with month and year where they differ."""
    end = f"{last.day} {_MONTHS[last.month - 1]} {last.year}"
    if first.year != last.year:
        return f"{first.day} {_MONTHS[first.month - 1]} {first.year} to {end}"
    month = f" {_MONTHS[first.month - 1]}" if first.month != last.month else ""
    return f"{first.day}{month} to {end}"


def week_name(week: str) -> str:
    """`2026-W46` as `week 46 of 2026`."""
    return f"week {int(week[6:])} of {int(week[:4])}"


def queue_name(queue_arn: str) -> str:
    """The name at an ARN's end, as it may be shown."""
    if queue_arn == UNRESOLVED:
        return "an unknown queue"
    return visible(queue_arn.rpartition(":")[2] or queue_arn)


def principal_name(principal_arn: str) -> str:
    """`role/orders` of an ARN; what is no ARN as it stands."""
    parts = principal_arn.split(":", 5)
    return visible(parts[5] if len(parts) == 6 and parts[5] else principal_arn, MOST_PRINCIPAL)
