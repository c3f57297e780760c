"""Rebuild the tables of some UTC days from the trail and the cases.

Every night a Spark job asks what failed and what Mendq did about it. From the trail's log files and
the case bucket it makes three tables for each UTC day, `failed_calls`, `quality` (a row per log
file) and `incidents`, and a small `nightly.json` with counts. A burst is the failed calls of one
queue and symptom, in one account and region, with no gap of more than 15 minutes. An incident is a
burst with its case, or with the reason why it has none; it belongs to the day of its first call. A
case that a scan opened is an incident of its own unless failed calls join it.

`Nightly.write` gets the requested days. It loads calls and cases, joins them, decides which days to
write, and writes them. `analytics/trail.py` reads the trail, `analytics/incidents.py` and
`analytics/cases.py` compute bursts and outcomes, `analytics/tables.py` writes objects.

Rules:

1. A day is computed anew and replaced whole. Its tables depend on the trail, the cases and the
   scans alone, and equal rows give equal bytes. So a failed night is repaired by running it again,
   and a backfill of a year gives the same tables as 365 nights.

2. A burst is never cut. The run loads one day on each side of the requested days, and loads more
   until no burst that touches a day to write reaches the edge. Otherwise a burst over midnight
   would be two incidents. Each try computes all bursts again, so a side that falls short reaches at
   least twice as far in the next try.

3. Every day that a burst of the requested days touches is written too. A late file may show that
   today's burst began yesterday. Then yesterday's table must get the incident and today's must lose
   it, or it would be counted twice. The same holds for the day of a case that a scan opened and
   that such a burst joins.

4. A late file is seen if it is there when its day is run. The trail reader looks for it in the
   folders of the 30 following days. The schedule runs each day twice, the night after it and the
   night after that (`mendq/nightly/jobs.py`). Calls that arrive later are in no table until a
   person runs a backfill.

5. Expired files take nothing away. The trail's bucket may delete old files. If a file is gone that
   a day's tables name, or those of the day before, the day is left as it is, and the run says so.
   Computed from the remaining files, the day would lose true rows; without the day before, the rest
   of its burst would become a second incident.

6. A day without a file and without a call is not written: existing tables are better than empty
   ones. Its `nightly.json` is written all the same, with zeros, if the trail existed on that day
   and no earlier run has read anything of it. A working trail holds at least the probe's calls, so
   an empty day is a fault that the watcher must see, not a quiet day.

7. `nightly.json` is written after all tables. A run that dies before that leaves new tables beside
   old counts, or beside none. The weekly job sees that they do not fit; running the day again
   repairs it.

8. An unreadable input loses only itself. A broken log file is a row of `quality`. A broken case
   file or scan is left out: an incident may then lack its case, or `why` may say `unknown`.

It does not judge itself: `analytics/job.py` turns the result into an exit code, and
`mendq/nightly/verdict.py` compares the counts with those of earlier nights. It does not guard
against a second run at the same time: `mendq/nightly/jobs.py` starts none while one is active. It
deletes nothing but its own staging folder.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.cases import CaseFiles, case_files, is_count, is_within
from analytics.days import DAY, Days, day_of, microseconds
from analytics.incidents import (
    GAP_SECONDS,
    Round,
    bursts_about,
    collected,
    first_evidence,
    incidents,
    joined,
)
from analytics.storage import Storage
from analytics.tables import Tables
from analytics.trail import Reader, TrailReader, find_first_publish_day
from analytics.week_parts import ByDay, Row
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.json_text import to_json
from mendq.nightly.verdict import NightlyRead, day_named, nightly_key, read_nightly

GAP_MICROSECONDS = GAP_SECONDS * 1_000_000
FINDINGS = "findings"
_MAXIMUM_ROUND_BYTES = 20_000_000
# For this many days after an incident, scans may still list its queue.
_LATER_DAYS = 7


@dataclass(frozen=True)
class NightlyResult:
    """The days that a run wrote, and the days that it left.

    Attributes:
        nightly_runs: The counts of each day that was written.
        retained: The days that were left as they are, because files are gone (rule 5).
        evidence: The first calls that heal would have believed, by incident, if asked for.
    """

    nightly_runs: tuple[NightlyRead, ...] = ()
    retained: tuple[date, ...] = ()
    evidence: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedDays:
    """Everything that is known about the days to write.

    Attributes:
        days: The days to write.
        cases: The cases that may belong to their incidents.
        calls: The failed calls of these days and around them.
        bursts: The bursts of these calls.
    """

    days: Days
    cases: CaseFiles
    calls: DataFrame
    bursts: Sequence[Row]


@dataclass(frozen=True)
class Nightly:
    """A run of the nightly job.

    Attributes:
        tables: The tables to write. Its `say` tells people how far the run is.
        trail: The parent of `AWSLogs`.
        cases: The cases in the case bucket.
        findings: The scans in the case bucket, if they can be found.
        made_at: The time of the run.
        reader: How log files are read.
        home: The account and region whose records are read. None: those of all.
    """

    tables: Tables
    trail: Storage
    cases: Storage
    findings: Storage | None
    made_at: datetime
    reader: Reader
    home: AccountAndRegion | None = None

    def write(self, requested: Days, *, with_evidence: bool = False) -> NightlyResult:
        """Write the tables of `requested`, and of every day that one of its bursts touches.

        Args:
            requested: The days to write.
            with_evidence: Also return the first evidence of each incident.

        Raises:
            RootUnusable: if a place cannot be read or written.
        """
        why = f" ({self.reader.why})" if self.reader.why else ""
        self.tables.say(f"reader: {self.reader.name}{why}")
        with (
            self.tables.out.staging() as stage,
            closing(
                TrailReader(self.tables.spark, self.trail, self.reader, stage, self.home)
            ) as reader,
        ):
            loaded = self._load(reader, requested)
            incident_rows = self._join_cases(loaded)
            quality = [(row["published"], row) for row in reader.quality()]
            dated = [(day_of(row["first_failure"]), row) for row in incident_rows]
            rows = {
                "quality": _group_by_day(quality, loaded.days),
                "incidents": _group_by_day(dated, loaded.days),
            }
            listed = frozenset(file.file for file in reader.listed)
            lost_files = self.count_lost_files(loaded.days, listed)
            result = self._write_days(loaded, rows, lost_files)
            if with_evidence:
                result = replace(result, evidence=first_evidence(loaded.calls))
            loaded.calls.unpersist()
        return result

    def _load(self, reader: TrailReader, requested: Days) -> LoadedDays:
        """Load calls and cases until no burst at the requested days reaches an edge (rule 2)."""
        days = requested.widened(1, 1)
        while True:
            self.tables.say(f"reading the trail for {days.first} to {days.last}")
            calls = reader.failed_calls(days).persist()
            bursts = collected(incidents(calls))
            affected, cases = self._find_affected_days(bursts, requested)
            spans = [_span_of(bursts, affected), *_spans_near_scans(cases, affected)]
            first, last = _hull(spans)
            needed = affected | Days.touched(first - GAP_MICROSECONDS, last + GAP_MICROSECONDS)
            if needed in days:
                return LoadedDays(affected, cases, calls, bursts)
            days = days.stretched(needed, requested)
            calls.unpersist()

    def _find_affected_days(self, bursts: Sequence[Row], requested: Days) -> tuple[Days, CaseFiles]:
        """Return the days to write, and the cases that may belong to their incidents (rule 3)."""
        affected = requested | Days.touched(*_span_of(bursts, requested))
        cases = case_files(self.cases, affected)
        touching = [
            burst
            for burst in bursts_about(bursts, cases.lives)
            if burst.first < requested.before_microseconds
            and burst.last >= requested.from_microseconds
        ]
        joined_scans: list[tuple[int, int]] = []
        for life in cases.lives:
            if not life.is_opened_by_scan:
                continue
            if any(burst.joins_what_a_scan_opened(life) for burst in touching):
                joined_scans.append((life.begins, life.begins))
        if not joined_scans:
            return affected, cases
        further = affected | Days.touched(*_hull(joined_scans))
        if further == affected:
            return affected, cases
        return further, case_files(self.cases, further)

    def _join_cases(self, loaded: LoadedDays) -> list[dict[str, Any]]:
        """Return the incidents with their cases, using the scans around them."""
        cases = loaded.cases
        left_out = ""
        if cases.unreadable:
            left_out = f", {cases.unreadable} files there were no transitions"
        self.tables.say(f"{len(cases.lives)} cases since {cases.since}{left_out}")
        scans = read_rounds(self.findings, loaded.days) if self.findings else []
        self.tables.say(f"scans that say which queues were managed: {len(scans)}")
        return joined(loaded.bursts, cases.lives, scans, self.home)

    def count_lost_files(self, days: Days, listed: frozenset[str]) -> Mapping[date, int]:
        """Count the gone files behind each day's tables; a day not in the result may be written.

        The files of the day before count too (rule 5).

        Args:
            days: The days to write.
            listed: Files that this run has listed. It may not have listed the folders of others.
        """
        tables = replace(self.tables, say=_say_nothing)
        days_and_before = days.widened(1, 0)
        quality = tables.files("quality", days_and_before)
        failed_calls = tables.files("failed_calls", days_and_before)
        named: dict[date, set[str]] = {}
        for day in quality.keys() & failed_calls.keys():
            named[day] = quality[day] | failed_calls[day]
        lost = self._find_lost_files(set[str]().union(*named.values()) - listed)
        lost_of_day = {day: len(files & lost) for day, files in named.items()}
        lost_files: dict[date, int] = {}
        for day in days:
            if day in lost_of_day:
                number = lost_of_day[day] + lost_of_day.get(day - DAY, 0)
                if number:
                    lost_files[day] = number
        return lost_files

    def _find_lost_files(self, files: Collection[str]) -> set[str]:
        """Return those of these files that are not in the trail any more."""
        present: set[str] = set()
        for folder in {file.rpartition("/")[0] for file in files}:
            present.update(self.trail.files(folder))
        return set(files) - present

    def _write_days(
        self, loaded: LoadedDays, rows: Mapping[str, ByDay], lost_files: Mapping[date, int]
    ) -> NightlyResult:
        """Write the tables, and then the counts (rules 5, 6 and 7)."""
        calls = loaded.calls.withColumn("day", sf.to_date("event_time"))
        counts = calls.groupBy("day").count().collect()
        calls_of_day = {row["day"]: row["count"] for row in counts}
        nights: list[NightlyRead] = []
        for day in loaded.days:
            nightly = NightlyRead(
                day,
                self.made_at,
                self.reader.name,
                self.reader.why,
                failed_calls=calls_of_day.get(day, 0),
                incidents=len(rows["incidents"][day]),
                **_count_files(rows["quality"][day]),
            )
            nights.append(nightly)
        silent = [nightly for nightly in nights if _is_silent(nightly)]
        with_content = [nightly for nightly in nights if not _is_silent(nightly)]
        written = [nightly for nightly in with_content if nightly.day not in lost_files]
        retained = [nightly.day for nightly in with_content if nightly.day in lost_files]
        self.tables.write(calls, rows, [nightly.day for nightly in written])
        for nightly in nights:
            self.tables.say(f"{nightly.day}: {_outcome_line(nightly, lost_files)}")
        for nightly in (*written, *self._select_reported(silent)):
            document = to_json(nightly.document(), indent=1)
            self.tables.out.put(nightly_key(nightly.day), document.encode())
        return NightlyResult(tuple(written), tuple(retained))

    def _select_reported(self, silent: Collection[NightlyRead]) -> Iterator[NightlyRead]:
        """Return the silent days whose counts are written (rule 6)."""
        if not silent:
            return
        first_day = find_first_publish_day(self.trail, self.home)
        if first_day is None:
            return
        for nightly in silent:
            if first_day <= nightly.day <= self.made_at.date():
                earlier = read_nightly(self.tables.out.read(nightly_key(nightly.day)) or b"")
                if earlier is None or earlier.read_nothing:
                    yield nightly


def _is_silent(nightly: NightlyRead) -> bool:
    """Return True if the trail has no file and no call of that day."""
    return not nightly.files and not nightly.failed_calls


def _outcome_line(nightly: NightlyRead, lost_files: Mapping[date, int]) -> str:
    if _is_silent(nightly):
        return "nothing in the trail, nothing written"
    if nightly.day in lost_files:
        return f"left as it is, {lost_files[nightly.day]} of its files are gone"
    return (
        f"{nightly.incidents} incidents of {nightly.failed_calls} failed calls; "
        f"{nightly.files} files, {nightly.files_unreadable} unreadable"
    )


def _say_nothing(_line: str) -> None:
    """Take the place of `say` when a person need not know."""


def _group_by_day(rows: Iterable[tuple[date, Row]], days: Days) -> ByDay:
    """Return the rows of each of these days; rows of other days are left out."""
    rows_of_day: dict[date, list[Row]] = {day: [] for day in days}
    for day, row in rows:
        if day in rows_of_day:
            rows_of_day[day].append(row)
    return rows_of_day


def _count_files(quality: Sequence[Row]) -> dict[str, int]:
    """Return the counts of a NightlyRead that are about a day's files."""
    unreadable = [row for row in quality if row["reason"] is not None]
    return {
        "files": len(quality),
        "files_unreadable": len(unreadable),
        "bytes": sum(row["bytes"] for row in quality),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable),
        "records": sum(row["records"] for row in quality),
    }


def _span_of(bursts: Iterable[Row], days: Days) -> tuple[int, int]:
    """Return the microseconds from the first to the last call of all bursts that touch `days`.

    If none does, return the first and the last microsecond of `days`.
    """
    since = days.from_microseconds
    until = days.before_microseconds - 1
    touching: list[tuple[int, int]] = []
    for burst in bursts:
        first, last = burst["first_failure"], burst["last_failure"]
        if first <= until and last >= since:
            touching.append((first, last))
    return _hull(touching) if touching else (since, until)


def _hull(spans: Collection[tuple[int, int]]) -> tuple[int, int]:
    """Return the shortest span that covers all of these."""
    return min(first for first, _ in spans), max(last for _, last in spans)


def _spans_near_scans(cases: CaseFiles, days: Days) -> Iterator[tuple[int, int]]:
    """Return the spans in which failed calls would join a case that a scan opened on `days`."""
    for life in cases.lives:
        if life.is_opened_by_scan and is_within(life.transitions[0].at, days):
            yield from life.near_evidence


def findings_root(cases: str) -> str | None:
    """Return where the scans of a case bucket are, given the root of its cases.

    Return None if the cases are at the top of a bucket. docs/case-bucket.md has the layout.
    """
    parent, slash, _ = cases.rstrip("/").rpartition("/")
    if parent in ("s3:/", "s3:"):
        return None
    return f"{parent}{slash}{FINDINGS}"


def read_rounds(findings: Storage, days: Days) -> list[Round]:
    """Return the scans that can say something about incidents of `days` (rule 8)."""
    around = {f"dt={day}" for day in days.widened(1, _LATER_DAYS + 1)}
    result: list[Round] = []
    for folder in findings.folders(""):
        if folder in around:
            for path in findings.files(folder):
                content = findings.read(path, _MAXIMUM_ROUND_BYTES + 1) or b""
                scan = read_round(content)
                if scan:
                    result.append(scan)
    return result


def read_round(content: bytes) -> Round | None:
    """Return a scan's list of managed queues, or None if `content` has none. Never raises."""
    if len(content) > _MAXIMUM_ROUND_BYTES:
        return None
    try:
        document = json.loads(content)
        at = datetime.fromisoformat(document["at"])
        listed = document["managed"]
        # An empty text or object would say that nothing is managed.
        if not isinstance(listed, list):
            return None
        " ".join(listed).encode()  # raises if a name is not a text
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return Round(microseconds(at), tuple(listed), document["managed_whole"] is True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


def read_last_findings(findings: Storage, days: Days) -> list[tuple[str, str, str]]:
    """Return queue, symptom and sentence of each finding in the last scan of `days`.

    A broken scan has no findings and raises nothing.
    """
    scans = list(_read_last_day(findings, {f"dt={day}" for day in days}))
    if not scans:
        return []
    try:
        return [
            (str(finding["queue_arn"]), str(finding["symptom"]), str(finding["because"]))
            for finding in scans[-1]["findings"]
        ]
    except (TypeError, LookupError):
        return []


def read_last_measurements(findings: Storage) -> dict[str, dict[str, int]]:
    """Return the whole numbers that the newest scan of each queue measured, by queue and name.

    Only the last day that has scans is read.
    """
    folders = [name for name in findings.folders("") if day_named(name.removeprefix("dt="))]
    measurements: dict[str, dict[str, int]] = {}
    for scan in _read_last_day(findings, folders):
        queues = scan.get("queues")
        if isinstance(queues, dict):
            for queue_arn, figures in queues.items():
                if isinstance(figures, dict):
                    counts = {name: value for name, value in figures.items() if is_count(value)}
                    measurements[queue_arn] = counts
    return measurements


def _read_last_day(findings: Storage, folders: Collection[str]) -> Iterator[dict[str, Any]]:
    """Return the scans of the last of these folders that exists, oldest first.

    A broken scan is empty or left out, and raises nothing.
    """
    present = set(folders).intersection(findings.folders(""))
    if not present:
        return
    for path in sorted(findings.files(max(present))):
        content = findings.read(path, _MAXIMUM_ROUND_BYTES + 1) or b""
        with suppress(ValueError, RecursionError):
            document = json.loads(content) if len(content) <= _MAXIMUM_ROUND_BYTES else None
            yield document if isinstance(document, dict) else {}
