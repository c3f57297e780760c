"""summary.json: a week of incidents and cases as the report reads it (docs/summary.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from analytics.days import Days
from analytics.deeds_of_callers import deeds_of_callers
from analytics.deeds_of_cases import deeds_of_cases
from analytics.iso_week import days_of
from analytics.lives import Life
from analytics.week_deeds import do_this_week
from analytics.week_incidents import MAXIMUM_CASES, worst
from analytics.week_names import places, with_few_labels
from analytics.week_not_seen import Reads, is_whole, not_seen
from analytics.week_people import reached_a_person, swept
from analytics.week_queues import queue_days
from analytics.week_rows import (
    Nights,
    Row,
    incidents_of,
    is_of_a_drill,
    quality_of,
    time_text,
    without_drills,
)
from analytics.week_times import times_to_heal
from analytics.week_totals import counted, day_rows, queues_named, totals
from functions.healing.nightly import week_is_over

SCHEMA = 1


@dataclass(frozen=True)
class CasesSeen:
    """The cases of the week and of the days around it; some files held none."""

    lives: Sequence[Life] = ()
    files_unreadable: int = 0


@dataclass(frozen=True)
class Seen:
    """What a week is made of: its nights that exist, and those of the weeks before, by week.

    `cases` is None where nobody looked: then the document has no word about them. `reads` is what
    nights wrote of their own reading, `began` the first day of any.
    """

    nights: Nights = field(default_factory=dict)
    earlier: Mapping[str, Nights] = field(default_factory=dict)
    cases: CasesSeen | None = None
    reads: Reads = field(default_factory=dict)
    began: date | None = None


def summary(
    week: str, seen: Seen, made_at: datetime, scheduled_at: datetime | None = None
) -> dict[str, Any]:
    """The document; what was seen gives the same one, but for `made_at`, in any order.

    Whether the week is over is asked of `scheduled_at`, or else of `made_at`. What is scheduled
    comes once: it does not wait for a night that is late.
    """
    days = days_of(week)
    nights = without_drills(seen.nights)
    incidents = incidents_of(days, nights)
    rows = [*incidents, *quality_of(days, nights)]
    of_cases = _of_cases(days, incidents, seen.cases) if seen.cases else {}
    few, labels_left_out = with_few_labels(days, nights)
    return {
        "schema": SCHEMA,
        "week": week,
        "from": str(days.first),
        "to": str(days.last),
        "made_at": time_text(made_at),
        **_places(rows),
        "totals": {**totals(incidents), "queues": queues_named(incidents)},
        "by_outcome": counted(row["outcome"] for row in incidents),
        "by_label": counted(row["label"] for row in incidents_of(days, few)),
        "labels_left_out": labels_left_out,
        "per_day": [row for day in days for row in day_rows(day, few)],
        "queue_days": queue_days(days, nights),
        "times_to_heal": times_to_heal(incidents_of(days, few)),
        "previous_weeks": _previous_weeks(seen),
        "cases": worst(incidents, _reasons(seen.cases)),
        "cases_left_out": max(0, len(incidents) - MAXIMUM_CASES),
        **of_cases,
        "not_seen": {
            **not_seen(days, nights, seen.reads),
            **_limits(days, seen, made_at, scheduled_at),
            "drill_incidents": len(incidents_of(days, seen.nights)) - len(incidents),
        },
    }


def _places(rows: Sequence[Row]) -> dict[str, Any]:
    (accounts, further_accounts), (regions, further_regions) = (
        places(rows, name) for name in ("account", "region")
    )
    return {
        "accounts": accounts,
        "accounts_left_out": further_accounts,
        "regions": regions,
        "regions_left_out": further_regions,
    }


def _previous_weeks(seen: Seen) -> list[dict[str, Any]]:
    """Those of which any night exists."""
    return [
        {
            "week": week,
            "nights": sum(is_whole(day, nights, seen.reads) for day in nights),
            **totals(incidents_of(days_of(week), without_drills(nights))),
        }
        for week, nights in sorted(seen.earlier.items())
        if nights
    ]


def _limits(
    days: Days, seen: Seen, made_at: datetime, scheduled_at: datetime | None
) -> dict[str, Any]:
    may_come = scheduled_at is None and not is_whole(days.last, seen.nights, seen.reads)
    at = scheduled_at or made_at
    unreadable = {"case_files_unreadable": seen.cases.files_unreadable} if seen.cases else {}
    return {
        **unreadable,
        "week_is_over": week_is_over(days.last, at, last_night_may_come=may_come),
        "began": str(seen.began) if seen.began else None,
    }


def _reasons(cases: CasesSeen | None) -> dict[str, object]:
    return {each.newest.case_id: each.newest.reason for each in cases.lives} if cases else {}


def _of_cases(days: Days, incidents: Sequence[Row], cases: CasesSeen) -> dict[str, Any]:
    lives = [each for each in cases.lives if not is_of_a_drill(each.newest.queue_arn)]
    deeds = [*deeds_of_cases(days, lives), *deeds_of_callers(incidents)]
    return {
        "reached_a_person": reached_a_person(days, lives),
        "swept": swept(days, lives),
        **do_this_week(deeds, incidents),
    }
