"""summary.json: a week of incidents as the report reads it (docs/summary.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from analytics.days import DAY, Days
from analytics.labels import UNLABELLED
from analytics.outcomes import HEALED
from analytics.readings import UNRESOLVED

SCHEMA = 1
MAXIMUM_CASES = 50
MAXIMUM_UNREADABLE_FILES = 20
Row = Mapping[str, Any]
_CASE_FIELDS = (
    "incident_id",
    "queue_arn",
    "label",
    "error_codes",
    "first_failure",
    "last_failure",
    "failed_calls",
    "principals",
    "outcome",
    "why",
    "case_id",
    "seconds_to_heal",
    "paged",
)


@dataclass(frozen=True)
class NightRows:
    """The rows of one day's incidents and quality."""

    incidents: Sequence[Row]
    quality: Sequence[Row]


Nights = Mapping[date, NightRows]


def days_of(week: str) -> Days:
    """Monday to Sunday of e.g. `2026-W46`. Raise ValueError where there is no such week."""
    year, separator, number = week.partition("-W")
    digits = len(year) == 4 and len(number) == 2 and (year + number).isdecimal()
    if not (separator and digits and week.isascii() and 2004 < int(year) < 9000):
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


def summary(
    week: str, nights: Nights, earlier: Mapping[str, Nights], made_at: datetime
) -> dict[str, Any]:
    """The document; `earlier` holds the weeks before, `nights` and they only nights that exist."""
    days = days_of(week)
    incidents = [row for day in days if day in nights for row in nights[day].incidents]
    quality = [row for day in days if day in nights for row in nights[day].quality]
    cases = sorted(incidents, key=_worst_first)
    return {
        "schema": SCHEMA,
        "week": week,
        "from": str(days.first),
        "to": str(days.last),
        "made_at": _text(made_at),
        "accounts": sorted({row["account"] for row in [*incidents, *quality]}),
        "regions": sorted({row["region"] for row in [*incidents, *quality]}),
        "totals": {**_totals(incidents), "queues": _queues(incidents)},
        "by_outcome": _counted(row["outcome"] for row in incidents),
        "by_label": _counted(row["label"] for row in incidents),
        "per_day": [row for day in days for row in _per_day(day, nights)],
        "previous_weeks": [
            {"week": each, **_totals([row for night in rows.values() for row in night.incidents])}
            for each, rows in sorted(earlier.items())
            if rows
        ],
        "cases": [_case(row) for row in cases[:MAXIMUM_CASES]],
        "cases_left_out": max(0, len(cases) - MAXIMUM_CASES),
        "not_seen": _not_seen(days, nights, incidents, quality),
    }


def _totals(incidents: Sequence[Row]) -> dict[str, int]:
    return {
        "incidents": len(incidents),
        "failed_calls": sum(row["failed_calls"] for row in incidents),
        "healed": sum(row["outcome"] == HEALED for row in incidents),
        "paged": sum(row["paged"] for row in incidents),
    }


def _queues(incidents: Sequence[Row]) -> int:
    return len({row["queue_arn"] for row in incidents} - {UNRESOLVED})


def _counted(words: Any) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _per_day(day: date, nights: Nights) -> list[dict[str, Any]]:
    incidents: Counter[str] = Counter()
    failed_calls: Counter[str] = Counter()
    for row in nights[day].incidents if day in nights else ():
        incidents[row["label"]] += 1
        failed_calls[row["label"]] += row["failed_calls"]
    if not incidents:
        return [{"date": str(day), "label": None, "incidents": 0, "failed_calls": 0}]
    return [
        {
            "date": str(day),
            "label": label,
            "incidents": incidents[label],
            "failed_calls": failed_calls[label],
        }
        for label in sorted(incidents)
    ]


def _worst_first(row: Row) -> tuple[bool, int, datetime, str]:
    return row["outcome"] == HEALED, -row["failed_calls"], row["first_failure"], row["incident_id"]


def _case(row: Row) -> dict[str, Any]:
    times = {name: _text(row[name]) for name in ("first_failure", "last_failure")}
    return {name: times.get(name, row[name]) for name in _CASE_FIELDS}


def _not_seen(
    days: Days, nights: Nights, incidents: Sequence[Row], quality: Sequence[Row]
) -> dict[str, Any]:
    unreadable = [row for row in quality if row["reason"]]
    largest_first = sorted(unreadable, key=lambda row: (-row["bytes"], row["file"]))
    unlabelled: Counter[str] = Counter()
    for row in incidents:
        if row["label"].startswith(UNLABELLED):
            unlabelled[row["label"]] += row["failed_calls"]
    return {
        "nights_missing": [str(day) for day in days if day not in nights],
        "files_read": len(quality) - len(unreadable),
        "files_unreadable": len(unreadable),
        "bytes_read": sum(row["bytes"] for row in quality if not row["reason"]),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable),
        "records_read": sum(row["records"] for row in quality),
        "unlabelled": dict(sorted(unlabelled.items())),
        "unreadable_files": [
            {"file": row["file"], "reason": row["reason"]}
            for row in largest_first[:MAXIMUM_UNREADABLE_FILES]
        ],
    }


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
