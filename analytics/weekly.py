"""A week's summary.json, from the tables of its nightly runs, their own accounts and the case
bucket.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from analytics.cases import STANDING_DAYS, CaseFiles, case_files
from analytics.days import PREVIOUS_WEEKS, Days, days_of
from analytics.nightly import Written, last_found, last_measured
from analytics.storage import Storage
from analytics.tables import Tables
from analytics.week import Observation, summary
from analytics.week_parts import listed, rows_of, without_own
from mendq.nightly.verdict import (
    NIGHTLY_RUNS,
    NightlyRead,
    day_named,
    nightly_key,
    read_nightly,
    week_named,
)
from mendq.notifications.text import counted

# The weeks before that this one is compared with.
_DAYS_BEFORE = 7 * PREVIOUS_WEEKS


def case_bucket(cases: Storage, findings: Storage | None, week: str) -> CaseFiles:
    """What the case bucket says of the week, and of what was before it."""
    days = days_of(week)
    found = last_found(findings, days) if findings else ()
    queues = last_measured(findings) if findings else {}
    return replace(case_files(cases, days, STANDING_DAYS), found=found, queues=queues)


def write_week(  # noqa: PLR0913 - what is seen, where it goes, and three things of the clock
    cases: CaseFiles | None,
    tables: Tables,
    week: str,
    made_at: datetime,
    scheduled_at: datetime | None = None,
    *,
    zone: tzinfo = UTC,
) -> int:
    """How many nightly runs of the week exist; the document is written in any case.

    Without `cases` it says nothing about them.
    """
    days = days_of(week)
    seen = _seen(days, cases, tables)
    document = summary(week, seen, made_at, scheduled_at, zone)
    path, say = f"summary/week={week}/summary.json", tables.say
    tables.out.put(path, as_json(document))
    nightly_runs = sum(day in seen.quality for day in days)
    if seen.cases:
        say(f"{counted(len(seen.cases.lives), 'case')} since {seen.cases.since}")
    incidents = counted(document["totals"]["incidents"], "incident")
    say(f"{path}: {incidents} from {counted(nightly_runs, 'nightly run')}")
    if not document["not_seen"]["week_is_over"]:
        say(f"{week} is not over: its page will be made, and nothing sent")
    return nightly_runs


def write_incidents(tables: Tables, requested: Days, written: Written, made_at: datetime) -> None:
    """Write what `mendq backtest` reads: the weeks, and the incidents with what would be believed.

    Nobody's cases are known.
    """
    weeks = sorted({week_named(day) for day in requested})
    for week in weeks:
        write_week(None, tables, week, made_at)
    by_day = tables.rows("incidents", [each.day for each in written.nightly_runs])
    incidents = [
        listed(row) | {"evidence": written.evidence.get(row["incident_id"], [])}
        for row in rows_of(without_own(by_day))
    ]
    days = [str(each) for each in sorted(by_day)]
    content = as_json({"weeks": weeks, "days": days, "incidents": incidents})
    tables.out.put("incidents.json", content)


def _seen(days: Days, cases: CaseFiles | None, tables: Tables) -> Observation:
    reach = days.widened(_DAYS_BEFORE, 0)
    incidents, quality = (tables.rows(name, reach) for name in ("incidents", "quality"))
    both = sorted(incidents.keys() & quality.keys())
    return Observation(
        {day: incidents[day] for day in both},
        {day: quality[day] for day in both},
        cases,
        _reads(tables.out, reach),
        _began(tables.out),
    )


def _began(out: Storage) -> date | None:
    """The first day that a nightly run wrote tables of, or that it read nothing."""
    names = [*out.folders("quality"), *out.folders(NIGHTLY_RUNS)]
    return min(filter(None, (day_named(each.removeprefix("dt=")) for each in names)), default=None)


def _reads(out: Storage, days: Days) -> dict[date, NightlyRead]:
    """What nightly runs said of themselves; what tells of another day is not believed."""
    reads = {day: read_nightly(out.read(nightly_key(day)) or b"") for day in days}
    return {day: read for day, read in reads.items() if read and read.day == day}


def as_json(document: Mapping[str, Any]) -> bytes:
    """In UTF-8, which is a third of JSON's own way to spell what hostile names may hold.

    Half a character, which UTF-8 cannot spell, is spelled in that way.
    """
    return json.dumps(document, indent=1, ensure_ascii=False).encode(errors="backslashreplace")
