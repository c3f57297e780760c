"""summary.json: a week of incidents and cases as the report reads it (docs/summary.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from typing import Any

from analytics.cases import CaseFiles, Life, shortened
from analytics.days import Days, days_of, weeks_before
from analytics.incidents import FAILED_CALLS, SCAN
from analytics.recommendations import (
    do_this_week,
    recommendations_of_callers,
    recommendations_of_cases,
    recommendations_of_findings,
    standing,
)
from analytics.week_cases import (
    does_it_help,
    earned,
    impact,
    open_now,
    pictured,
    reached_a_person,
    urgent_notifications,
)
from analytics.week_parts import (
    MAXIMUM_CASES,
    MAXIMUM_SYMPTOMS,
    ByDay,
    Row,
    counted,
    day_rows,
    is_own_queue,
    largest,
    of_days,
    places,
    queue_days,
    queues_named,
    rows_of,
    time_text,
    times_to_heal,
    totals,
    weights,
    with_few_symptoms,
    without_own,
    worst,
)
from mendq.catalogue import CATALOGUE, UNKNOWN
from mendq.catalogue.symptom import NotifiedSymptom
from mendq.nightly.verdict import NightlyRead, judge, week_is_over

SCHEMA = 2
MAXIMUM_UNREADABLE_FILES = 20
_HABITS = {
    each.name: each.habit for each in CATALOGUE if isinstance(each, NotifiedSymptom) and each.habit
}


@dataclass(frozen=True)
class Observation:
    """What a week and those before it are made of; a day has both tables or neither.

    `cases` is None where nobody looked: then the document has no word about them. `reads` is what
    nightly runs wrote of their own reading, `began` the first day of any.
    """

    incidents: ByDay = field(default_factory=dict)
    quality: ByDay = field(default_factory=dict)
    cases: CaseFiles | None = None
    reads: Mapping[date, NightlyRead] = field(default_factory=dict)
    began: date | None = None

    def is_whole(self, day: date) -> bool:
        """Whether a day has tables, and they were written when it was over."""
        return day in self.quality and (day not in self.reads or self.reads[day].is_whole)


def summary(
    week: str,
    seen: Observation,
    made_at: datetime,
    scheduled_at: datetime | None = None,
    zone: tzinfo = UTC,
) -> dict[str, Any]:
    """The document; what was seen gives the same one, but for `made_at`, in any order.

    Whether the week is over is asked of `scheduled_at`, or else of `made_at`. What is scheduled
    comes once: it does not wait for a nightly run that is late. `zone` says when it is night.
    """
    days = days_of(week)
    every = of_days(days, seen.incidents)
    by_day = without_own(every)
    incidents = rows_of(by_day)
    few, symptoms_left_out = with_few_symptoms(by_day)
    last_may_come = scheduled_at is None and not seen.is_whole(days.last)
    at = scheduled_at or made_at
    return {
        "schema": SCHEMA,
        "week": week,
        "from": str(days.first),
        "to": str(days.last),
        "made_at": time_text(made_at),
        "time_zone": str(zone),
        **_places([*incidents, *rows_of(of_days(days, seen.quality))]),
        "totals": {**_sums(days, incidents, seen.cases, zone), "queues": queues_named(incidents)},
        **_counts(incidents, rows_of(few)),
        "symptoms_left_out": symptoms_left_out,
        "per_day": [row for day, rows in few.items() for row in day_rows(day, rows)],
        "queue_days": queue_days(by_day),
        "times_to_heal": times_to_heal(rows_of(few)),
        "previous_weeks": _previous_weeks(week, seen, zone),
        "does_it_help": does_it_help(rows_of(few), seen.incidents),
        "cases": worst(incidents, partial(_says, seen.cases)),
        "cases_left_out": max(0, len(incidents) - MAXIMUM_CASES),
        **(_of_cases(days, incidents, seen.cases) if seen.cases else {}),
        "not_seen": {
            **not_seen(days, seen),
            **_unknown_codes(incidents),
            "week_is_over": week_is_over(days.last, at, last_nightly_may_come=last_may_come),
            "own_incidents": len(rows_of(every)) - len(incidents),
        },
    }


def _counts(incidents: Sequence[Row], few: Sequence[Row]) -> dict[str, Any]:
    """`few` are the same with few symptoms."""
    found_by = [row["found_by"] for row in incidents]
    by_symptom = counted(row["symptom"] for row in few)
    return {
        "by_found_by": {each: found_by.count(each) for each in (FAILED_CALLS, SCAN)},
        "by_outcome": counted(row["outcome"] for row in incidents),
        "by_symptom": by_symptom,
        "habits": {name: _HABITS[name] for name in by_symptom if name in _HABITS},
    }


def _places(rows: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("account", "region"):
        found[f"{name}s"], found[f"{name}s_left_out"] = places(rows, name)
    return found


def _sums(
    days: Days, incidents: Sequence[Row], cases: CaseFiles | None, zone: tzinfo
) -> dict[str, Any]:
    urgent = urgent_notifications(days, _not_own(cases), zone) if cases else {}
    return {**totals(incidents), **urgent}


def _not_own(cases: CaseFiles) -> list[Life]:
    return [each for each in cases.lives if not is_own_queue(each.newest.queue_arn)]


def _previous_weeks(week: str, seen: Observation, zone: tzinfo) -> list[dict[str, Any]]:
    """Those of which any night exists."""
    found = []
    for each in weeks_before(week):
        days = [day for day in days_of(each) if day in seen.incidents]
        if days:
            incidents = rows_of(without_own(of_days(days, seen.incidents)))
            whole = sum(map(seen.is_whole, days))
            sums = _sums(days_of(each), incidents, seen.cases, zone)
            found.append({"week": each, "nightly_runs": whole, **sums})
    return found


def _says(cases: CaseFiles | None, case_id: str | None) -> dict[str, Any]:
    """What a case said last and its pictures; empty where it is not known."""
    lives = cases.lives if cases else ()
    life = next((each for each in lives if each.newest.case_id == case_id), None)
    last = life.last_said if life else None
    said = {name: shortened(getattr(last, name, "")) for name in ("reason", "code")}
    return {**said, **pictured(life)}


def _of_cases(days: Days, incidents: Sequence[Row], cases: CaseFiles) -> dict[str, Any]:
    lives = _not_own(cases)
    of_cases = recommendations_of_cases(days, lives)
    asked = [*of_cases, *recommendations_of_callers(incidents)]
    asked += recommendations_of_findings(cases.found)
    return {
        "reached_a_person": reached_a_person(days, lives),
        **open_now(lives, cases.queues),
        "impact": impact({row["case_id"] for row in incidents}, lives),
        "earned": earned(days, lives),
        **do_this_week(asked, incidents),
        **standing(of_cases, lives),
    }


def not_seen(days: Days, seen: Observation) -> dict[str, Any]:
    """How much of the week was read; the nightly runs of two weeks before say what is usual."""
    quality = rows_of(of_days(days, seen.quality))
    unreadable = [row for row in quality if row["reason"]]
    of_cases = {"case_files_unreadable": seen.cases.unreadable} if seen.cases else {}
    return {
        "nightly_runs_missing": [str(day) for day in days if day not in seen.quality],
        "files_read": len(quality) - len(unreadable),
        "files_unreadable": len(unreadable),
        "bytes_read": sum(row["bytes"] for row in quality if not row["reason"]),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable),
        "records_read": sum(row["records"] for row in quality),
        "unreadable_files": _largest_first(unreadable),
        "nightly_runs": [_nightly(day, seen) for day in days],
        **of_cases,
        "began": str(seen.began) if seen.began else None,
    }


def _unknown_codes(incidents: Sequence[Row]) -> dict[str, Any]:
    """Failed calls of each code, and of how many more."""
    found = weights((row for row in incidents if row["symptom"].startswith(UNKNOWN)), "symptom")
    calls = {symptom: each.failed_calls for symptom, each in found.items()}
    codes, left_out = largest(calls, MAXIMUM_SYMPTOMS)
    return {
        "unknown_code": codes,
        "unknown_codes_left_out": len(left_out),
        "unknown_calls_left_out": sum(left_out.values()),
    }


def _largest_first(unreadable: Sequence[Row]) -> list[dict[str, str]]:
    ranked = sorted(unreadable, key=lambda row: (-row["bytes"], row["file"]))
    return [
        {name: shortened(row[name]) for name in ("file", "reason")}
        for row in ranked[:MAXIMUM_UNREADABLE_FILES]
    ]


def _nightly(day: date, seen: Observation) -> dict[str, Any]:
    """A nightly run that wrote nothing of itself, as an older Mendq's, is known by its tables
    alone.
    """
    incidents, quality = (table.get(day, ()) for table in (seen.incidents, seen.quality))
    size, records = (sum(row[name] for row in quality) for name in ("bytes", "records"))
    read = seen.reads.get(day)
    counted = read and (read.files, read.bytes, read.records, read.incidents)
    is_torn = counted != (len(quality), size, records, len(incidents))
    judgement = judge(read, seen.reads.values(), is_torn=is_torn)
    return {
        "day": str(day),
        "records": read.records if read else records,
        "usual_records": judgement.usual_records,
        "verdict": "read" if read is None and records else str(judgement.verdict),
    }
