"""A week's summary.json, from the tables of its nights, their own accounts and the case bucket."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from analytics.case_files import case_files
from analytics.days import Days
from analytics.iso_week import days_of, weeks_before
from analytics.lives import lives
from analytics.storage import Storage
from analytics.tables import Tables, TableUnreadable
from analytics.week import CasesSeen, Seen, summary
from analytics.week_not_seen import Reads
from analytics.week_rows import NightRows, Nights
from functions.healing.nightly import NIGHTS, night_key, read_night

Say = Callable[[str], None]
QUALITY = "quality"


@dataclass(frozen=True)
class Weekly:
    """Where a run reads and writes; without `cases` the document says nothing about them."""

    cases: Storage | None
    out: Storage
    say: Say
    tables: Tables = field(default_factory=Tables)

    def write(self, week: str, made_at: datetime, scheduled_at: datetime | None = None) -> int:
        """How many nights of the week exist; the document is written in any case."""
        days = days_of(week)
        seen = Seen(
            self._nights(days),
            {each: self._nights(days_of(each)) for each in weeks_before(week)},
            self._cases(days),
            self._reads(Days(days_of(weeks_before(week)[0]).first, days.last)),
            self._began(),
        )
        document = summary(week, seen, made_at, scheduled_at)
        path = f"summary/week={week}/summary.json"
        self.out.put(path, as_json(document))
        incidents = _counted(document["totals"]["incidents"], "incident")
        self.say(f"{path}: {incidents} from {_counted(len(seen.nights), 'night')}")
        if not document["not_seen"]["week_is_over"]:
            self.say(f"{week} is not over: its page will be made, and nothing sent")
        return len(seen.nights)

    def _nights(self, days: Days) -> Nights:
        found: dict[date, NightRows] = {}
        for day in days:
            incidents, quality = self._rows("incidents", day), self._rows(QUALITY, day)
            if incidents is not None and quality is not None:
                found[day] = NightRows(incidents, quality)
        return found

    def _rows(self, table: str, day: date) -> list[dict[str, Any]] | None:
        try:
            return self.tables.rows(self.out, table, day)
        except TableUnreadable as broken:
            self.say(f"{broken}: {day} is left out")
            return None

    def _cases(self, days: Days) -> CasesSeen | None:
        if self.cases is None:
            return None
        found = case_files(self.cases, days)
        seen = CasesSeen(lives(found.transitions), found.unreadable)
        self.say(f"{_counted(len(seen.lives), 'case')} since {found.since}")
        return seen

    def _began(self) -> date | None:
        """The first day that a night wrote tables of, or that it read nothing."""
        names = [*self.out.folders(QUALITY), *self.out.folders(NIGHTS)]
        days = [day for day in map(_day_of_folder, names) if day]
        return min(days, default=None)

    def _reads(self, days: Days) -> Reads:
        """Those of the four weeks before say what is usual, and of which days they were whole."""
        contents = {day: self.out.read(night_key(day)) for day in days}
        reads = {day: read_night(content) for day, content in contents.items() if content}
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
