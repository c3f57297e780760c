"""Days that stay as they were written, because trail files that they were made of are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from analytics.days import DAY, Days
from analytics.storage import Storage
from analytics.tables import Tables, TableUnreadable


@dataclass(frozen=True)
class Expired:
    """`listed` are files of the trail that are known to be there."""

    trail: Storage
    out: Storage
    tables: Tables
    listed: Collection[str]

    def kept(self, days: Days) -> dict[date, int]:
        """Those of `days` that are not to be written anew, each with how many files are gone.

        What is left of a trail that expires must not replace what was whole. The files of the day
        before count as well: a burst of it that goes on would be told as a second one.
        """
        named = {day: self._named(day) for day in days.widened(1, 0)}
        gone = {day: self._gone(files) for day, files in named.items()}
        lost = {day: gone[day] + gone[day - DAY] for day in days if named[day] is not None}
        return {day: files for day, files in lost.items() if files}

    def _named(self, day: date) -> set[str] | None:
        """The files that a day's tables name; None where it has none that can be read."""
        try:
            found = [self.tables.files(self.out, name, day) for name in ("quality", "failed_calls")]
        except TableUnreadable:
            return None
        return None if None in found else {file for files in found for file in files or ()}

    def _gone(self, files: Collection[str] | None) -> int:
        """How many are not in the trail; the run may not have listed a folder of one."""
        by_folder: dict[str, set[str]] = defaultdict(set)
        for each in files or ():
            if each not in self.listed:
                by_folder[each.rpartition("/")[0]].add(each)
        there = {folder: {each.path for each in self.trail.files(folder)} for folder in by_folder}
        return sum(len(unlisted - there[folder]) for folder, unlisted in by_folder.items())
