"""A week's summary.json, from the tables of its nightly runs, their own accounts and the case
bucket.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from analytics.cases import lives
from analytics.days import Days, days_of, weeks_before
from analytics.nightly import case_files
from analytics.storage import Storage
from analytics.tables import Tables
from analytics.week import CasesSeen, Observation, Reads, summary
from analytics.week_parts import NightlyRows, NightlyRuns
from mendq.nightly.verdict import NIGHTLY_RUNS, nightly_key, read_nightly


@dataclass(frozen=True)
class Weekly:
    """Where a run reads and writes; without `cases` the document says nothing about them."""

    cases: Storage | None
    tables: Tables

    def write(self, week: str, made_at: datetime, scheduled_at: datetime | None = None) -> int:
        """How many nightly runs of the week exist; the document is written in any case."""
        days = days_of(week)
        reach = Days(days_of(weeks_before(week)[0]).first, days.last)
        nightly_runs = self._nightly_runs(reach)
        by_week = {
            each: {day: nightly_runs[day] for day in days_of(each) if day in nightly_runs}
            for each in (*weeks_before(week), week)
        }
        this_week = by_week.pop(week)
        seen = Observation(this_week, by_week, self._cases(days), self._reads(reach), self._began())
        document = summary(week, seen, made_at, scheduled_at)
        path = f"summary/week={week}/summary.json"
        self.tables.out.put(path, as_json(document))
        incidents = _counted(document["totals"]["incidents"], "incident")
        self.tables.say(
            f"{path}: {incidents} from {_counted(len(seen.nightly_runs), 'nightly run')}"
        )
        if not document["not_seen"]["week_is_over"]:
            self.tables.say(f"{week} is not over: its page will be made, and nothing sent")
        return len(seen.nightly_runs)

    def _nightly_runs(self, days: Days) -> NightlyRuns:
        incidents, quality = (self.tables.rows(name, days) for name in ("incidents", "quality"))
        both = sorted(incidents.keys() & quality.keys())
        return {day: NightlyRows(incidents[day], quality[day]) for day in both}

    def _cases(self, days: Days) -> CasesSeen | None:
        if self.cases is None:
            return None
        found = case_files(self.cases, days)
        seen = CasesSeen(lives(found.transitions), found.unreadable)
        self.tables.say(f"{_counted(len(seen.lives), 'case')} since {found.since}")
        return seen

    def _began(self) -> date | None:
        """The first day that a nightly run wrote tables of, or that it read nothing."""
        names = [*self.tables.out.folders("quality"), *self.tables.out.folders(NIGHTLY_RUNS)]
        days = [day for day in map(_day_of_folder, names) if day]
        return min(days, default=None)

    def _reads(self, days: Days) -> Reads:
        """Those of the four weeks before say what is usual, and of which days they were whole."""
        contents = {day: self.tables.out.read(nightly_key(day)) for day in days}
        reads = {day: read_nightly(content) for day, content in contents.items() if content}
        return {day: read for day, read in reads.items() if read and read.day == day}


def as_json(document: Mapping[str, Any]) -> bytes:
    """In UTF-8, which is a third of JSON's own way to spell what hostile names may hold.

    Half a character, which UTF-8 cannot spell, is spelled in that way.
    """
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return text.encode(errors="backslashreplace")


def _day_of_folder(name: str) -> date | None:
    try:
        return date.fromisoformat(name.removeprefix("dt="))
    except ValueError:
        return None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
