"""Rebuild the tables of some UTC days from the trail and the cases.

Every night a Spark job asks what failed and what Mendq did about it. From the trail's log files and
the case bucket it makes three tables for each UTC day, `failed_calls`, `quality` (a row per log
file) and `incidents`, and a small `nightly.json` with counts. A burst is the failed calls of one
queue and symptom, in one account and region, with no gap of more than 15 minutes. An incident is a
burst with its case, or with the reason why it has none; it belongs to the day of its first call. A
case that a scan opened is an incident of its own unless failed calls join it.

`NightlyRun.write` gets the requested days. It loads calls and cases, joins them, decides which days
to write, and writes them. `analytics/trail.py` reads the trail, `analytics/incidents.py` and
`analytics/cases.py` compute bursts and outcomes, `analytics/tables.py` writes objects.

Rules:

1. A day is computed anew and replaced whole. Its tables depend on the trail, the cases and the
   scans alone, and equal rows give equal bytes. So a failed night is repaired by running it again,
   and a backfill of a year gives the same tables as 365 nights.

2. A burst is never cut. The run loads one day on each side of the requested days, and loads more
   until no burst that touches a day to write reaches the edge. Otherwise a burst over midnight
   would be two incidents. Each try computes all bursts again, so a side that falls short reaches at
   least twice as far in the next try.

3. The run also writes every other day that a burst of the requested days touches. A late file may
   show that today's burst began yesterday. Then yesterday's table must get the incident and today's
   must lose it, or it would be counted twice. For the same reason the run writes the day on which a
   scan opened a case, if such a burst joins that case.

4. A late file is seen if it is there when its day is run. The trail reader looks for it in the
   folders of the 30 following days. The schedule runs each day twice, the night after it and the
   night after that (`mendq/nightly/jobs.py`). Calls that arrive later are in no table until a
   person runs a backfill.

5. Deleted files take no rows away. The trail's bucket may delete old files. A day that has tables
   stays as it is if they, or those of the day before, name a file that does not exist any more; the
   run's output says so. Computed from the remaining files, the day would lose true rows. And
   without the files of the day before, the rest of a burst over midnight would become a second
   incident.

6. The tables of a day without a file and without a call are not written: existing tables are
   better than empty ones. But its `nightly.json` is written, with zeros, if the trail existed on
   that day and no earlier run has read anything of it. Mendq makes one failing call an hour, so a
   working trail is never empty. An empty day is a fault that the watcher must see, not a quiet day.

7. `nightly.json` is written after all tables. A run that dies before that leaves new tables with
   old counts, or without counts. The weekly job sees that they do not fit; running the day again
   repairs it.

8. A broken file affects only its own rows. A broken log file becomes a row of `quality`. A broken
   case file or scan is left out: an incident may then lack its case, or its `why` is `unknown`.

The run does not judge its own result: `analytics/job.py` turns it into an exit code, and
`mendq/nightly/verdict.py` compares the counts with those of earlier nights. Two runs at the same
time are prevented elsewhere: `mendq/nightly/jobs.py` starts no run while another one is active. The
run deletes only its own staging folder.
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

from analytics.cases import CaseFiles, is_count, is_within, load_case_files
from analytics.days import DAY, Days, day_of, to_microseconds
from analytics.incidents import (
    GAP_SECONDS,
    QueueListing,
    collect_bursts,
    collect_first_evidence,
    group_into_bursts,
    join_cases,
    select_bursts_of_scan_cases,
)
from analytics.storage import Storage
from analytics.tables import Tables
from analytics.trail import Reader, TrailReader, find_first_publish_day
from analytics.week_parts import ByDay, Row
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.json_text import to_json
from mendq.nightly.verdict import NightlyRead, nightly_key, parse_day, read_nightly

GAP_MICROSECONDS = GAP_SECONDS * 1_000_000
FINDINGS = "findings"
# The largest scan file that is read.
_MAXIMUM_SCAN_BYTES = 20_000_000
# Scans of this number of days after an incident are read too. They show if its queue was tagged
# only later.
_LATER_DAYS = 7


@dataclass(frozen=True)
class NightlyRunResult:
    """The days that a run wrote, and those that it did not change.

    Attributes:
        nightly_runs: The counts of each day that was written.
        retained: The days whose tables were not changed, because log files were deleted (rule 5).
        evidence: The first failed calls that were enough evidence for heal, by incident id. Empty
            unless the caller asked for them.
    """

    nightly_runs: tuple[NightlyRead, ...] = ()
    retained: tuple[date, ...] = ()
    evidence: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedDays:
    """The input for the tables, loaded for the days to write and some days around them.

    Attributes:
        days: The days to write.
        cases: The cases that may belong to incidents of these days.
        calls: The failed calls of these days and around them.
        bursts: These calls, grouped into bursts (`group_into_bursts`).
    """

    days: Days
    cases: CaseFiles
    calls: DataFrame
    bursts: Sequence[Row]


@dataclass(frozen=True)
class NightlyRun:
    """A run of the nightly job.

    Attributes:
        tables: The tables to write. Its `say` prints the run's progress.
        trail: The folder that contains `AWSLogs`.
        cases: The cases in the case bucket.
        findings: The scans in the case bucket. None if their place is not known.
        made_at: The time of the run.
        reader: The way to read log files.
        place: Only records of this account and region are read. None: records of all.
    """

    tables: Tables
    trail: Storage
    cases: Storage
    findings: Storage | None
    made_at: datetime
    reader: Reader
    place: AccountAndRegion | None = None

    def write(self, requested: Days, *, with_evidence: bool = False) -> NightlyRunResult:
        """Write the tables of the requested days, and of other days that their bursts touch.

        Args:
            requested: The days to write.
            with_evidence: Also return the first failed calls of each incident that were enough
                evidence for heal.

        Raises:
            RootUnusable: if the trail, the case bucket or the output cannot be read or written.
        """
        why = f" ({self.reader.why})" if self.reader.why else ""
        self.tables.say(f"reader: {self.reader.name}{why}")
        with (
            self.tables.out.staging() as stage,
            closing(
                TrailReader(self.tables.spark, self.trail, self.reader, stage, self.place)
            ) as reader,
        ):
            loaded = self._load(reader, requested)
            incident_rows = self._join_cases(loaded)
            quality = [(row["published"], row) for row in reader.make_quality_rows()]
            dated = [(day_of(row["first_failure"]), row) for row in incident_rows]
            rows = {
                "quality": _group_by_day(quality, loaded.days),
                "incidents": _group_by_day(dated, loaded.days),
            }
            listed = frozenset(file.file for file in reader.listed)
            lost_files = self.count_lost_files(loaded.days, listed)
            result = self._write_days(loaded, rows, lost_files)
            if with_evidence:
                result = replace(result, evidence=collect_first_evidence(loaded.calls))
            loaded.calls.unpersist()
        return result

    def _load(self, reader: TrailReader, requested: Days) -> LoadedDays:
        """Load failed calls and cases. Add days until no burst of calls is cut (rule 2)."""
        days = requested.widen(1, 1)
        while True:
            self.tables.say(f"reading the trail for {days.first} to {days.last}")
            calls = reader.load_failed_calls(days).persist()
            bursts = collect_bursts(group_into_bursts(calls))
            affected, cases = self._find_affected_days(bursts, requested)
            spans = [_span_of(bursts, affected), *_spans_near_scans(cases, affected)]
            first, last = _hull(spans)
            needed = affected | Days.between(first - GAP_MICROSECONDS, last + GAP_MICROSECONDS)
            if needed in days:
                return LoadedDays(affected, cases, calls, bursts)
            days = days.stretch_to(needed, requested)
            calls.unpersist()

    def _find_affected_days(self, bursts: Sequence[Row], requested: Days) -> tuple[Days, CaseFiles]:
        """Return the days to write (rule 3), and the cases that may belong to their incidents.

        `bursts` are the bursts of failed calls that are known so far.
        """
        affected = requested | Days.between(*_span_of(bursts, requested))
        cases = load_case_files(self.cases, affected)
        touching = [
            burst
            for burst in select_bursts_of_scan_cases(bursts, cases.timelines)
            if burst.first < requested.before_microseconds
            and burst.last >= requested.from_microseconds
        ]
        joined_scans: list[tuple[int, int]] = []
        for timeline in cases.timelines:
            if not timeline.is_opened_by_scan:
                continue
            if any(burst.joins_scan_case(timeline) for burst in touching):
                joined_scans.append((timeline.begin_microseconds, timeline.begin_microseconds))
        if not joined_scans:
            return affected, cases
        further = affected | Days.between(*_hull(joined_scans))
        if further == affected:
            return affected, cases
        return further, load_case_files(self.cases, further)

    def _join_cases(self, loaded: LoadedDays) -> list[dict[str, Any]]:
        """Return all incidents, each with its case or the reason why it has none."""
        cases = loaded.cases
        left_out = ""
        if cases.unreadable:
            left_out = f", {cases.unreadable} files there hold no transition"
        self.tables.say(f"{len(cases.timelines)} cases since {cases.since}{left_out}")
        listings = read_queue_listings(self.findings, loaded.days) if self.findings else []
        self.tables.say(f"scans that say which queues were managed: {len(listings)}")
        return join_cases(loaded.bursts, cases.timelines, listings, self.place)

    def count_lost_files(self, days: Days, listed: frozenset[str]) -> Mapping[date, int]:
        """Return, by day, the number of deleted log files because of which a day is kept (rule 5).

        The number is the deleted files that the day's own tables name, plus those that the tables
        of the day before name. A file that both days name counts twice. Days for which the number
        is 0, and days without tables of their own, are left out: they may be written.

        Args:
            days: The days to write.
            listed: The log files that this run has listed, which exist. The tables may also name
                files of other folders; these are looked up.
        """
        tables = replace(self.tables, say=_say_nothing)
        days_and_before = days.widen(1, 0)
        quality = tables.read_file_names("quality", days_and_before)
        failed_calls = tables.read_file_names("failed_calls", days_and_before)
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
        """Return the files among these that the trail does not have any more."""
        present: set[str] = set()
        for folder in {file.rpartition("/")[0] for file in files}:
            present.update(self.trail.files(folder))
        return set(files) - present

    def _write_days(
        self, loaded: LoadedDays, rows: Mapping[str, ByDay], lost_files: Mapping[date, int]
    ) -> NightlyRunResult:
        """Write the tables of all days, and then their `nightly.json` (rules 5, 6 and 7)."""
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
        return NightlyRunResult(tuple(written), tuple(retained))

    def _select_reported(self, silent: Collection[NightlyRead]) -> Iterator[NightlyRead]:
        """Yield the days without content whose `nightly.json` must be written (rule 6)."""
        if not silent:
            return
        first_day = find_first_publish_day(self.trail, self.place)
        if first_day is None:
            return
        for nightly in silent:
            if first_day <= nightly.day <= self.made_at.date():
                earlier = read_nightly(self.tables.out.read(nightly_key(nightly.day)) or b"")
                if earlier is None or earlier.has_read_nothing:
                    yield nightly


def _is_silent(nightly: NightlyRead) -> bool:
    """Return True if the trail has no file and no failed call of the day."""
    return not nightly.files and not nightly.failed_calls


def _outcome_line(nightly: NightlyRead, lost_files: Mapping[date, int]) -> str:
    if _is_silent(nightly):
        return "nothing in the trail, nothing written"
    if nightly.day in lost_files:
        return f"not changed, because {lost_files[nightly.day]} of its files were deleted"
    return (
        f"{nightly.incidents} incidents of {nightly.failed_calls} failed calls; "
        f"{nightly.files} files, {nightly.files_unreadable} unreadable"
    )


def _say_nothing(_line: str) -> None:
    """Print nothing. This replaces `Tables.say` if people need not see problems of a read."""


def _group_by_day(rows: Iterable[tuple[date, Row]], days: Days) -> ByDay:
    """Return the rows of each of these days, maybe none. Rows of other days are left out."""
    rows_of_day: dict[date, list[Row]] = {day: [] for day in days}
    for day, row in rows:
        if day in rows_of_day:
            rows_of_day[day].append(row)
    return rows_of_day


def _count_files(quality: Sequence[Row]) -> dict[str, int]:
    """Return the fields of a NightlyRead that count the log files of a day."""
    unreadable = [row for row in quality if row["reason"] is not None]
    return {
        "files": len(quality),
        "files_unreadable": len(unreadable),
        "bytes": sum(row["bytes"] for row in quality),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable),
        "records": sum(row["records"] for row in quality),
    }


def _span_of(bursts: Iterable[Row], days: Days) -> tuple[int, int]:
    """Return the times of the first and the last failed call of all bursts that touch `days`.

    Both times are in microseconds since 1970. If no burst touches the days, return the first and
    the last microsecond of the days.
    """
    since = days.from_microseconds
    until = days.before_microseconds - 1
    touching: list[tuple[int, int]] = []
    for burst in bursts:
        first = burst["first_failure"]
        last = burst["last_failure"]
        if first <= until and last >= since:
            touching.append((first, last))
    return _hull(touching) if touching else (since, until)


def _hull(spans: Collection[tuple[int, int]]) -> tuple[int, int]:
    """Return the shortest span of time that covers all given ones. There must be at least one."""
    return min(first for first, _ in spans), max(last for _, last in spans)


def _spans_near_scans(cases: CaseFiles, days: Days) -> Iterator[tuple[int, int]]:
    """Yield the spans of time in which failed calls belong to a case that a scan opened on `days`.

    A span is its first and last microsecond since 1970.
    """
    for timeline in cases.timelines:
        if timeline.is_opened_by_scan and is_within(timeline.transitions[0].at, days):
            yield from timeline.evidence_near_opening


def findings_root(cases: str) -> str | None:
    """Return the root of the scans in a case bucket, given the root of its cases.

    The two are next to each other: `ROOT/cases` and `ROOT/findings` (docs/case-bucket.md). Return
    None if the root of the cases is a whole bucket.
    """
    parent, slash, _ = cases.rstrip("/").rpartition("/")
    if parent in ("s3:/", "s3:"):
        return None
    return f"{parent}{slash}{FINDINGS}"


def read_queue_listings(findings: Storage, days: Days) -> list[QueueListing]:
    """Return the managed queues that each scan from a day before `days` to 8 days after listed.

    Broken scans are left out (rule 8).
    """
    around = {f"dt={day}" for day in days.widen(1, _LATER_DAYS + 1)}
    listings: list[QueueListing] = []
    for folder in findings.folders(""):
        if folder not in around:
            continue
        for path in findings.files(folder):
            content = findings.read(path, _MAXIMUM_SCAN_BYTES + 1) or b""
            listing = read_queue_listing(content)
            if listing:
                listings.append(listing)
    return listings


def read_queue_listing(content: bytes) -> QueueListing | None:
    """Return the managed queues in a scan's file, or None if the file is broken. Never raises."""
    if len(content) > _MAXIMUM_SCAN_BYTES:
        return None
    try:
        document = json.loads(content)
        at = datetime.fromisoformat(document["at"])
        listed = document["managed"]
        # An empty text or object must not count as an empty list: no queue would be managed.
        if not isinstance(listed, list):
            return None
        " ".join(listed).encode()  # raises if a name is not a text
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return QueueListing(to_microseconds(at), tuple(listed), document["managed_whole"] is True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


def read_last_findings(findings: Storage, days: Days) -> list[tuple[str, str, str]]:
    """Return queue ARN, symptom and sentence of each finding in the last scan of `days`.

    Return an empty list if there is no scan, or if the last one is broken.
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
    """Return what the newest scan measured of each queue: figures by queue ARN and name.

    The figures are whole numbers, such as the backlog. Only the last day that has scans is read.
    """
    folders = [name for name in findings.folders("") if parse_day(name.removeprefix("dt="))]
    measurements: dict[str, dict[str, int]] = {}
    for scan in _read_last_day(findings, folders):
        measurements.update(_read_measurements(scan))
    return measurements


def _read_measurements(scan: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return what a scan measured of each queue. Values that are not whole numbers are left out."""
    queues = scan.get("queues")
    measurements: dict[str, dict[str, int]] = {}
    if isinstance(queues, dict):
        for queue_arn, figures in queues.items():
            if isinstance(figures, dict):
                counts = {name: value for name, value in figures.items() if is_count(value)}
                measurements[queue_arn] = counts
    return measurements


def _read_last_day(findings: Storage, folders: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the scans in the last one of these folders that exists, oldest first. Never raises.

    A file that is not JSON is left out. One that holds no object, or is too large, is yielded as an
    empty scan.
    """
    present = set(folders).intersection(findings.folders(""))
    if not present:
        return
    for path in sorted(findings.files(max(present))):
        content = findings.read(path, _MAXIMUM_SCAN_BYTES + 1) or b""
        with suppress(ValueError, RecursionError):
            document = json.loads(content) if len(content) <= _MAXIMUM_SCAN_BYTES else None
            yield document if isinstance(document, dict) else {}
