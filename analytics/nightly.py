"""Rebuild the tables of some UTC days from the trail and the cases.

Every night a Spark job finds out what failed and what Mendq did about it. From the trail's log
files and the case bucket it makes three tables for each UTC day, `failed_calls`, `quality` (a row
per log file) and `incidents`, and a small `nightly.json` with counts. A burst is the failed calls
of one queue and symptom, in one account and region, with no gap of more than 15 minutes. An
incident is a burst with its case, or with the reason why it has none; it belongs to the day of its
first call. A case that a scan opened is an incident of its own unless failed calls join it.

`NightlyRun.write` gets the requested days. It loads calls and cases, joins them, decides which days
to write, and writes them. `analytics/trail.py` reads the trail, `analytics/incidents.py` and
`analytics/cases.py` compute bursts and outcomes, `analytics/tables.py` writes objects.

Rules:

1. All tables of a day are computed anew and replaced. They depend on the trail, the cases and the
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

from analytics.cases import CaseFiles, is_on_days, is_valid_count, load_case_files
from analytics.days import ONE_DAY, Days, microseconds_to_day, to_microseconds
from analytics.incidents import (
    MAXIMUM_GAP_SECONDS,
    ListedMute,
    ScanListing,
    collect_bursts,
    collect_first_evidence,
    group_into_bursts,
    join_cases,
    select_bursts_of_scan_cases,
)
from analytics.own_incidents import count_incidents
from analytics.storage import Storage
from analytics.tables import Tables
from analytics.trail import Reader, TrailReader, find_first_publish_day
from analytics.week_parts import Row, RowsByDay
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.json_text import to_json
from mendq.nightly.verdict import (
    NightlyCounts,
    make_nightly_counts_key,
    parse_day,
    read_nightly_counts,
)
from mendq.notifications.text import format_count

MAXIMUM_GAP_MICROSECONDS = MAXIMUM_GAP_SECONDS * 1_000_000
FINDINGS_FOLDER = "findings"
# The largest scan file that is read.
_MAXIMUM_SCAN_FILE_BYTES = 20_000_000
# The number of days after an incident whose scans are also read. They show if the queue was tagged
# only later.
_SCAN_DAYS_AFTER_INCIDENT = 7


@dataclass(frozen=True)
class NightlyRunResult:
    """The result of a nightly run: the days that it wrote, and the days that it left unchanged.

    Attributes:
        counts_of_written_days: The counts of each day whose tables were written.
        unchanged_days: The days whose tables were not changed, because log files were deleted
            (rule 5).
        evidence_by_incident: The first failed calls that were enough evidence for heal, by incident
            id. Empty unless the caller asked for them.
    """

    counts_of_written_days: tuple[NightlyCounts, ...] = ()
    unchanged_days: tuple[date, ...] = ()
    evidence_by_incident: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedDays:
    """The input for the tables, loaded for the days to write and some days around them.

    Attributes:
        days_to_write: The days to write.
        case_files: The cases that may belong to incidents of these days.
        calls: The failed calls of these days and around them.
        bursts: These calls, grouped into bursts (`group_into_bursts`).
    """

    days_to_write: Days
    case_files: CaseFiles
    calls: DataFrame
    bursts: Sequence[Row]


@dataclass(frozen=True)
class NightlyRun:
    """A run of the nightly job.

    Attributes:
        tables: The tables to write. Its `say` prints the run's progress.
        trail_storage: The folder that contains `AWSLogs`.
        case_storage: The cases in the case bucket.
        scan_storage: The scans in the case bucket; None if their place is not known.
        made_at: The time of the run.
        reader: The reader of log files.
        account_and_region: The account and region whose records are read; None for all.
    """

    tables: Tables
    trail_storage: Storage
    case_storage: Storage
    scan_storage: Storage | None
    made_at: datetime
    reader: Reader
    account_and_region: AccountAndRegion | None = None

    def write(self, requested_days: Days, *, with_evidence: bool = False) -> NightlyRunResult:
        """Write the tables of the requested days, and of other days that their bursts touch.

        Args:
            requested_days: The days to write.
            with_evidence: Also return the first failed calls of each incident that were enough
                evidence for heal.

        Returns:
            The days that were written, and the days that were left unchanged (rule 5).

        Raises:
            RootUnusable: The trail, the case bucket or the output cannot be read or written.
        """
        reader_reason_text = (
            f" ({self.reader.why_not_native})" if self.reader.why_not_native else ""
        )
        self.tables.say(f"reader: {self.reader.name}{reader_reason_text}")
        with (
            self.tables.table_storage.staging() as staging,
            closing(
                TrailReader(
                    self.tables.spark,
                    self.trail_storage,
                    self.reader,
                    staging,
                    self.account_and_region,
                )
            ) as trail_reader,
        ):
            loaded_days = self._load_days(trail_reader, requested_days)
            incident_rows = self._join_cases(loaded_days)
            dated_quality_rows = [
                (row["published"], row) for row in trail_reader.make_quality_rows()
            ]
            dated_incident_rows = [
                (microseconds_to_day(row["first_failure"]), row) for row in incident_rows
            ]
            rows_by_table = {
                "quality": _group_rows_by_day(dated_quality_rows, loaded_days.days_to_write),
                "incidents": _group_rows_by_day(dated_incident_rows, loaded_days.days_to_write),
            }
            listed_files = frozenset(file.file for file in trail_reader.listed_files)
            lost_count_by_day = self.count_lost_files(loaded_days.days_to_write, listed_files)
            result = self._write_days(loaded_days, rows_by_table, lost_count_by_day)
            if with_evidence:
                result = replace(
                    result, evidence_by_incident=collect_first_evidence(loaded_days.calls)
                )
            loaded_days.calls.unpersist()
        return result

    def _load_days(self, trail_reader: TrailReader, requested_days: Days) -> LoadedDays:
        """Load failed calls and cases. Add days until no burst of calls is cut (rule 2)."""
        days = requested_days.widen(1, 1)
        while True:
            self.tables.say(f"reading the trail for {days.first_day} to {days.last_day}")
            calls = trail_reader.load_failed_calls(days).persist()
            bursts = collect_bursts(group_into_bursts(calls))
            days_to_write, case_files = self._find_days_to_write(bursts, requested_days)
            needed_spans = [
                _find_span_of_bursts(bursts, days_to_write),
                *_list_spans_near_scans(case_files, days_to_write),
            ]
            first_microseconds, last_microseconds = _cover_spans(needed_spans)
            needed_days = days_to_write | Days.between(
                first_microseconds - MAXIMUM_GAP_MICROSECONDS,
                last_microseconds + MAXIMUM_GAP_MICROSECONDS,
            )
            if needed_days in days:
                return LoadedDays(days_to_write, case_files, calls, bursts)
            days = days.extend_to(needed_days, requested_days)
            calls.unpersist()

    def _find_days_to_write(
        self, bursts: Sequence[Row], requested_days: Days
    ) -> tuple[Days, CaseFiles]:
        """Return the days to write (rule 3), and the cases that may belong to their incidents.

        `bursts` are the bursts of failed calls that are known so far.
        """
        days_to_write = requested_days | Days.between(*_find_span_of_bursts(bursts, requested_days))
        case_files = load_case_files(self.case_storage, days_to_write)
        bursts_of_requested_days = [
            burst
            for burst in select_bursts_of_scan_cases(bursts, case_files.timelines)
            if burst.first_call_microseconds < requested_days.end_microseconds
            and burst.last_call_microseconds >= requested_days.start_microseconds
        ]
        opening_spans_of_joined_cases: list[tuple[int, int]] = []
        for timeline in case_files.timelines:
            if not timeline.is_opened_by_scan:
                continue
            if any(burst.joins_scan_case(timeline) for burst in bursts_of_requested_days):
                opening_spans_of_joined_cases.append(
                    (timeline.first_transition_microseconds, timeline.first_transition_microseconds)
                )
        if not opening_spans_of_joined_cases:
            return days_to_write, case_files
        days_with_joined_cases = days_to_write | Days.between(
            *_cover_spans(opening_spans_of_joined_cases)
        )
        if days_with_joined_cases == days_to_write:
            return days_to_write, case_files
        return days_with_joined_cases, load_case_files(self.case_storage, days_with_joined_cases)

    def _join_cases(self, loaded_days: LoadedDays) -> list[dict[str, Any]]:
        """Return all incidents, each with its case or the reason why it has none."""
        case_files = loaded_days.case_files
        unreadable_files_text = ""
        if case_files.unreadable_file_count:
            unreadable_files_text = (
                f", {case_files.unreadable_file_count} files there hold no transition"
            )
        first_fully_read_day = case_files.first_fully_read_day
        self.tables.say(
            f"{len(case_files.timelines)} cases since {first_fully_read_day}{unreadable_files_text}"
        )
        scan_listings = (
            read_queue_listings(self.scan_storage, loaded_days.days_to_write)
            if self.scan_storage
            else []
        )
        self.tables.say(f"scans that say which queues were managed: {len(scan_listings)}")
        return join_cases(
            loaded_days.bursts, case_files.timelines, scan_listings, self.account_and_region
        )

    def count_lost_files(self, days: Days, listed_files: frozenset[str]) -> Mapping[date, int]:
        """Return the number of deleted log files for each day that must stay unchanged (rule 5).

        Deleted files count if the day's own tables or the tables of the day before name them. A
        file that both days name counts twice. Days without deleted files, and days without tables,
        are left out, because they may be written.

        Args:
            days: The days to write.
            listed_files: The log files that this run has listed, which exist. Files of other
                folders that the tables name are looked up.
        """
        tables = replace(self.tables, say=_print_nothing)
        days_and_before = days.widen(1, 0)
        quality_files_by_day = tables.read_file_names("quality", days_and_before)
        call_files_by_day = tables.read_file_names("failed_calls", days_and_before)
        files_by_day: dict[date, set[str]] = {}
        for day in quality_files_by_day.keys() & call_files_by_day.keys():
            files_by_day[day] = quality_files_by_day[day] | call_files_by_day[day]
        lost_files = self._find_lost_files(set[str]().union(*files_by_day.values()) - listed_files)
        lost_count_by_day = {day: len(files & lost_files) for day, files in files_by_day.items()}
        lost_file_count_by_unchanged_day: dict[date, int] = {}
        for day in days:
            if day in lost_count_by_day:
                lost_count = lost_count_by_day[day] + lost_count_by_day.get(day - ONE_DAY, 0)
                if lost_count:
                    lost_file_count_by_unchanged_day[day] = lost_count
        return lost_file_count_by_unchanged_day

    def _find_lost_files(self, files: Collection[str]) -> set[str]:
        """Return the files among these that the trail no longer has."""
        existing_files: set[str] = set()
        for folder in {file.rpartition("/")[0] for file in files}:
            existing_files.update(self.trail_storage.list_file_sizes(folder))
        return set(files) - existing_files

    def _write_days(
        self,
        loaded_days: LoadedDays,
        rows_by_table: Mapping[str, RowsByDay],
        lost_count_by_day: Mapping[date, int],
    ) -> NightlyRunResult:
        """Write the tables of the loaded days, and then their `nightly.json` (rule 7).

        Days in `lost_count_by_day` stay unchanged (rule 5). Days without content get no tables
        (rule 6).
        """
        calls = loaded_days.calls.withColumn("day", sf.to_date("event_time"))
        rows_with_call_count = calls.groupBy("day").count().collect()
        call_count_by_day = {row["day"]: row["count"] for row in rows_with_call_count}
        nightly_counts_of_days: list[NightlyCounts] = []
        for day in loaded_days.days_to_write:
            incident_numbers = count_incidents(rows_by_table["incidents"][day])
            nightly_counts = NightlyCounts(
                day,
                self.made_at,
                self.reader.name,
                self.reader.why_not_native,
                failed_calls=call_count_by_day.get(day, 0),
                incidents=incident_numbers.counted,
                own_incidents=incident_numbers.own,
                **_count_files(rows_by_table["quality"][day]),
            )
            nightly_counts_of_days.append(nightly_counts)
        counts_of_empty_days = [
            nightly_counts
            for nightly_counts in nightly_counts_of_days
            if _has_no_content(nightly_counts)
        ]
        counts_of_days_with_content = [
            nightly_counts
            for nightly_counts in nightly_counts_of_days
            if not _has_no_content(nightly_counts)
        ]
        counts_of_written_days = [
            nightly_counts
            for nightly_counts in counts_of_days_with_content
            if nightly_counts.day not in lost_count_by_day
        ]
        unchanged_days = [
            nightly_counts.day
            for nightly_counts in counts_of_days_with_content
            if nightly_counts.day in lost_count_by_day
        ]
        self.tables.write(
            calls, rows_by_table, [nightly_counts.day for nightly_counts in counts_of_written_days]
        )
        for nightly_counts in nightly_counts_of_days:
            self.tables.say(
                f"{nightly_counts.day}: {_describe_outcome(nightly_counts, lost_count_by_day)}"
            )
        for nightly_counts in (
            *counts_of_written_days,
            *self._select_empty_days_to_report(counts_of_empty_days),
        ):
            document = to_json(nightly_counts.document(), indent=1)
            self.tables.table_storage.write(
                make_nightly_counts_key(nightly_counts.day), document.encode()
            )
        return NightlyRunResult(tuple(counts_of_written_days), tuple(unchanged_days))

    def _select_empty_days_to_report(
        self, counts_of_empty_days: Collection[NightlyCounts]
    ) -> Iterator[NightlyCounts]:
        """Yield the counts of empty days whose `nightly.json` must be written (rule 6)."""
        if not counts_of_empty_days:
            return
        first_day = find_first_publish_day(self.trail_storage, self.account_and_region)
        if first_day is None:
            return
        for nightly_counts in counts_of_empty_days:
            if first_day <= nightly_counts.day <= self.made_at.date():
                earlier_counts = read_nightly_counts(
                    self.tables.table_storage.read(make_nightly_counts_key(nightly_counts.day))
                    or b""
                )
                if earlier_counts is None or earlier_counts.has_read_nothing:
                    yield nightly_counts


def _has_no_content(nightly_counts: NightlyCounts) -> bool:
    """Return True if the trail has no file and no failed call of the day."""
    return not nightly_counts.files and not nightly_counts.failed_calls


def _describe_outcome(nightly_counts: NightlyCounts, lost_count_by_day: Mapping[date, int]) -> str:
    if _has_no_content(nightly_counts):
        return "nothing in the trail, nothing written"
    if nightly_counts.day in lost_count_by_day:
        return (
            f"not changed, because {lost_count_by_day[nightly_counts.day]} of its files were "
            "deleted"
        )
    incidents_text = format_count(nightly_counts.incidents, "incident")
    if nightly_counts.own_incidents:
        incidents_text += f" and {nightly_counts.own_incidents:,} of Mendq's own"
    calls_text = format_count(nightly_counts.failed_calls, "failed call")
    files_text = format_count(nightly_counts.files, "file")
    unreadable_text = f"{nightly_counts.files_unreadable:,} unreadable"
    return f"{incidents_text}; {calls_text}; {files_text}, {unreadable_text}"


def _print_nothing(_line: str) -> None:
    """Print nothing. It replaces `Tables.say` if people need not see the problems of a read."""


def _group_rows_by_day(dated_rows: Iterable[tuple[date, Row]], days: Days) -> RowsByDay:
    """Return the rows of each of these days, by day. Rows of other days are left out."""
    rows_by_day: dict[date, list[Row]] = {day: [] for day in days}
    for day, row in dated_rows:
        if day in rows_by_day:
            rows_by_day[day].append(row)
    return rows_by_day


def _count_files(quality_rows: Sequence[Row]) -> dict[str, int]:
    """Return the fields of a NightlyCounts about a day's log files, their bytes and records."""
    unreadable_rows = [row for row in quality_rows if row["reason"] is not None]
    return {
        "files": len(quality_rows),
        "files_unreadable": len(unreadable_rows),
        "bytes": sum(row["bytes"] for row in quality_rows),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable_rows),
        "records": sum(row["records"] for row in quality_rows),
    }


def _find_span_of_bursts(bursts: Iterable[Row], days: Days) -> tuple[int, int]:
    """Return the times of the first and the last failed call of all bursts that touch `days`.

    Both times are in microseconds since 1970. If no burst touches the days, return the first and
    the last microsecond of the days.
    """
    days_begin_microseconds = days.start_microseconds
    days_end_microseconds = days.end_microseconds - 1
    spans_touching_days: list[tuple[int, int]] = []
    for burst in bursts:
        first_failure = burst["first_failure"]
        last_failure = burst["last_failure"]
        if first_failure <= days_end_microseconds and last_failure >= days_begin_microseconds:
            spans_touching_days.append((first_failure, last_failure))
    return (
        _cover_spans(spans_touching_days)
        if spans_touching_days
        else (days_begin_microseconds, days_end_microseconds)
    )


def _cover_spans(spans: Collection[tuple[int, int]]) -> tuple[int, int]:
    """Return the shortest span of time that covers all `spans`. There must be at least one."""
    return min(span_begin for span_begin, _ in spans), max(span_end for _, span_end in spans)


def _list_spans_near_scans(case_files: CaseFiles, days: Days) -> Iterator[tuple[int, int]]:
    """Yield the spans of time in which failed calls belong to a case that a scan opened on `days`.

    A span has its first and last time, in microseconds since 1970.
    """
    for timeline in case_files.timelines:
        if timeline.is_opened_by_scan and is_on_days(timeline.transitions[0].at, days):
            yield from timeline.evidence_spans_near_opening


def derive_findings_root(case_root: str) -> str | None:
    """Return the root of the scans in a case bucket, from the root of its cases.

    The two are next to each other: `ROOT/cases` and `ROOT/findings` (docs/case-bucket.md). Return
    None if the root of the cases is a whole bucket.
    """
    parent_root, slash, _ = case_root.rstrip("/").rpartition("/")
    if parent_root in ("s3:/", "s3:"):
        return None
    return f"{parent_root}{slash}{FINDINGS_FOLDER}"


def read_queue_listings(scan_storage: Storage, days: Days) -> list[ScanListing]:
    """Return the managed queues that each scan listed, for the scans around `days`.

    Scans from one day before `days` to 8 days after them are read. Broken scans are left out
    (rule 8).
    """
    folders_near_days = {f"dt={day}" for day in days.widen(1, _SCAN_DAYS_AFTER_INCIDENT + 1)}
    scan_listings: list[ScanListing] = []
    for folder in scan_storage.list_folders(""):
        if folder not in folders_near_days:
            continue
        for path in scan_storage.list_file_sizes(folder):
            content = scan_storage.read(path, _MAXIMUM_SCAN_FILE_BYTES + 1) or b""
            scan_listing = read_queue_listing(content)
            if scan_listing:
                scan_listings.append(scan_listing)
    return scan_listings


def read_queue_listing(content: bytes) -> ScanListing | None:
    """Return the managed queues in a scan's file. Never raise an error.

    Return None if the file is broken, or larger than _MAXIMUM_SCAN_FILE_BYTES.
    """
    if len(content) > _MAXIMUM_SCAN_FILE_BYTES:
        return None
    try:
        document = json.loads(content)
        scanned_at = datetime.fromisoformat(document["at"])
        queue_arns = document["managed"]
        # An empty text or object must not count as an empty list, or no queue would be managed.
        if not isinstance(queue_arns, list):
            return None
        " ".join(queue_arns).encode()  # raises if a name is not a text
        scanned_at = scanned_at.replace(tzinfo=UTC) if scanned_at.tzinfo is None else scanned_at
        return ScanListing(
            to_microseconds(scanned_at),
            tuple(queue_arns),
            document["managed_whole"] is True,
            _read_listed_mutes(document.get("mutes", [])),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


def _read_listed_mutes(mutes: Any) -> tuple[ListedMute, ...]:
    """Return the mutes in a scan's document. If one of them is broken, return none.

    Documents of older versions have none.
    """
    try:
        listed_mutes = [
            ListedMute(mute["queue"], mute["symptom"], date.fromisoformat(mute["until"]))
            for mute in mutes
        ]
    except (TypeError, LookupError, ValueError):
        return ()
    if not all(isinstance(mute.queue, str) for mute in listed_mutes):
        return ()
    if not all(isinstance(mute.symptom, str) for mute in listed_mutes):
        return ()
    return tuple(sorted(listed_mutes))


def read_last_findings(scan_storage: Storage, days: Days) -> list[tuple[str, str, str]]:
    """Return the queue ARN, symptom and sentence of each finding in the last scan of `days`.

    Read only the last day that has scans, and skip files that are not JSON. Return an empty list if
    no scan is left, or if the last scan is too large or lacks a field.
    """
    scan_documents = list(_read_last_day(scan_storage, {f"dt={day}" for day in days}))
    if not scan_documents:
        return []
    try:
        return [
            (str(finding["queue_arn"]), str(finding["symptom"]), str(finding["because"]))
            for finding in scan_documents[-1]["findings"]
        ]
    except (TypeError, LookupError):
        return []


def read_last_measurements(scan_storage: Storage) -> dict[str, dict[str, int]]:
    """Return the last measured figures of each queue, by queue ARN and figure name.

    The figures are integers, such as the backlog. Only the last day that has scans is read. If
    several of its scans measured a queue, the last scan counts.
    """
    day_folders = [
        name for name in scan_storage.list_folders("") if parse_day(name.removeprefix("dt="))
    ]
    measured_figures_by_queue: dict[str, dict[str, int]] = {}
    for scan_document in _read_last_day(scan_storage, day_folders):
        measured_figures_by_queue.update(_read_measurements(scan_document))
    return measured_figures_by_queue


def _read_measurements(scan_document: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the figures that a scan measured of each queue, by queue ARN and figure name.

    Values that are not counts (`is_valid_count`) are left out.
    """
    queues = scan_document.get("queues")
    measured_figures_by_queue: dict[str, dict[str, int]] = {}
    if isinstance(queues, dict):
        for queue_arn, figure_by_name in queues.items():
            if isinstance(figure_by_name, dict):
                valid_figure_by_name = {
                    name: value for name, value in figure_by_name.items() if is_valid_count(value)
                }
                measured_figures_by_queue[queue_arn] = valid_figure_by_name
    return measured_figures_by_queue


def _read_last_day(scan_storage: Storage, day_folders: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the scans in the last of these folders that exists, the oldest first.

    Leave out a file that is not JSON. Yield an empty dict for a file that is too large, or whose
    JSON is not an object.
    """
    existing_day_folders = set(day_folders).intersection(scan_storage.list_folders(""))
    if not existing_day_folders:
        return
    for path in sorted(scan_storage.list_file_sizes(max(existing_day_folders))):
        content = scan_storage.read(path, _MAXIMUM_SCAN_FILE_BYTES + 1) or b""
        with suppress(ValueError, RecursionError):
            document = json.loads(content) if len(content) <= _MAXIMUM_SCAN_FILE_BYTES else None
            yield document if isinstance(document, dict) else {}
