"""A nightly run, or several at once: trail files and cases in, the days of the tables out."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from analytics.trail import Reader, TrailReader, began
from analytics.week_parts import ByDay, Row
from mendq.catalogue import Home
from mendq.model.json_text import to_json
from mendq.nightly.verdict import NightlyRead, day_named, nightly_key, read_nightly

GAP_MICROSECONDS = GAP_SECONDS * 1_000_000
FINDINGS = "findings"
_MAXIMUM_ROUND_BYTES = 20_000_000
# After an incident, scans may still list its queue for so long.
_LATER_DAYS = 7


@dataclass(frozen=True)
class Written:
    """The nightly runs that a run wrote; `retained` are the days that it left as they were.

    `evidence` is what heal would first have believed, by incident, where it was asked for.
    """

    nightly_runs: tuple[NightlyRead, ...] = ()
    retained: tuple[date, ...] = ()
    evidence: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Nightly:
    """Where and when a run reads and writes; what `tables` say tells people how far it is.

    `home` is the account and region whose records are read; None: those of all.
    """

    tables: Tables
    trail: Storage
    cases: Storage
    findings: Storage | None
    made_at: datetime
    reader: Reader
    home: Home | None = None

    def write(self, requested: Days, *, with_evidence: bool = False) -> Written:
        """Write the tables of `requested` and of every day that one of its bursts touches.

        A day without a file and without a call of its own is not written: an object that is
        there already is better than an empty one; nor is one written over that was made of files
        which are gone. What each day's night read is written last, so that its counts are those of
        the tables unless a later run ended between the two.
        """
        why = f" ({self.reader.why})" if self.reader.why else ""
        self.tables.say(f"reader: {self.reader.name}{why}")
        with (
            self.tables.out.staging() as stage,
            closing(
                TrailReader(self.tables.spark, self.trail, self.reader, stage, self.home)
            ) as reader,
        ):
            affected, cases, calls, bursts = self._reach(reader, requested)
            found = self._joined(bursts, affected, cases)
            rows = {
                "quality": _by_day(reader.quality(), lambda each: each["published"], affected),
                "incidents": _by_day(found, lambda each: day_of(each["first_failure"]), affected),
            }
            listed = frozenset(each.file for each in reader.listed)
            written = self._write_days(affected, calls, rows, self._expired(affected, listed))
            if with_evidence:
                written = replace(written, evidence=first_evidence(calls))
            calls.unpersist()
        return written

    def _reach(
        self, reader: TrailReader, requested: Days
    ) -> tuple[Days, CaseFiles, DataFrame, Sequence[Row]]:
        """(days to write, cases, calls, bursts): read on until no burst crosses an edge."""
        loaded = requested.widened(1, 1)
        while True:
            self.tables.say(f"reading the trail for {loaded.first} to {loaded.last}")
            calls = reader.failed_calls(loaded).persist()
            bursts = collected(incidents(calls))
            affected, cases = self._affected(bursts, requested)
            span = _hull([_span(bursts, affected), *_near_scans(cases, affected)])
            needed = affected | Days.touched(span[0] - GAP_MICROSECONDS, span[1] + GAP_MICROSECONDS)
            if needed in loaded:
                return affected, cases, calls, bursts
            # A burst of many days is reached in few rounds: each counts everything anew.
            loaded = loaded.stretched(needed, requested)
            calls.unpersist()

    def _affected(self, bursts: Sequence[Row], requested: Days) -> tuple[Days, CaseFiles]:
        """The days to write, and the cases that may speak for them.

        What a scan found is no incident of its own any more once failed calls join it.
        """
        affected = requested | Days.touched(*_span(bursts, requested))
        cases = case_files(self.cases, affected)
        touching = [
            each
            for each in bursts_about(bursts, cases.lives)
            if each.first < requested.before_microseconds
            and each.last >= requested.from_microseconds
        ]
        begins = [
            (life.begins, life.begins)
            for life in cases.lives
            if life.is_opened_by_scan
            and any(each.joins_what_a_scan_opened(life) for each in touching)
        ]
        if begins and (further := affected | Days.touched(*_hull(begins))) != affected:
            return further, case_files(self.cases, further)
        return affected, cases

    def _joined(
        self, bursts: Sequence[Row], affected: Days, found: CaseFiles
    ) -> list[dict[str, Any]]:
        """The incidents with the cases that may speak for them, and the scans around them."""
        left_out = f", {found.unreadable} files there were no transitions" * bool(found.unreadable)
        self.tables.say(f"{len(found.lives)} cases since {found.since}{left_out}")
        scans = rounds(self.findings, affected) if self.findings else []
        self.tables.say(f"scans that say which queues were managed: {len(scans)}")
        return joined(bursts, found.lives, scans, self.home)

    def _expired(self, days: Days, listed: frozenset[str]) -> Mapping[date, int]:
        """Those of `days` that are not to be written anew, each with how many files are gone.

        What is left of a trail that expires must not replace what was whole. The files of the day
        before count as well: a burst of it that goes on would be told as a second one. `listed`
        are files that are known to be there; the run may not have listed a folder of one.
        """
        tables = replace(self.tables, say=lambda _: None)
        around = days.widened(1, 0)
        quality, calls = (tables.files(name, around) for name in ("quality", "failed_calls"))
        named = {day: quality[day] | calls[day] for day in quality.keys() & calls.keys()}
        missed = set().union(*named.values()) - listed
        folders = {each.rpartition("/")[0] for each in missed}
        lost = missed - {path for folder in folders for path in self.trail.files(folder)}
        gone = {day: len(files & lost) for day, files in named.items()}
        both = {day: gone[day] + gone.get(day - DAY, 0) for day in days if day in gone}
        return {day: files for day, files in both.items() if files}

    def _write_days(
        self,
        affected: Days,
        calls: DataFrame,
        rows: Mapping[str, ByDay],
        expired: Mapping[date, int],
    ) -> Written:
        dated, reader = calls.withColumn("day", sf.to_date("event_time")), self.reader
        counted = dated.groupBy("day").count().collect()
        of_day = {row["day"]: row["count"] for row in counted}
        reads = [
            NightlyRead(
                day,
                self.made_at,
                reader.name,
                reader.why,
                failed_calls=of_day.get(day, 0),
                incidents=len(rows["incidents"][day]),
                **_counted(rows["quality"][day]),
            )
            for day in affected
        ]
        silent = [each for each in reads if not (each.files or each.failed_calls)]
        read = [each for each in reads if each not in silent]
        nightly_runs = [each for each in read if each.day not in expired]
        self.tables.write(dated, rows, [each.day for each in nightly_runs])
        for each in reads:
            self.tables.say(f"{each.day}: {_became(each, expired)}")
        for each in (*nightly_runs, *self._to_be_said(silent)):
            document = to_json(each.document(), indent=1)
            self.tables.out.put(nightly_key(each.day), document.encode())
        retained = (each.day for each in read if each.day in expired)
        return Written(tuple(nightly_runs), tuple(retained))

    def _to_be_said(self, silent: Collection[NightlyRead]) -> Iterator[NightlyRead]:
        """The silent ones of the active trail's days, unless another run read something.

        The trail's files expire: an old night, run again, says nothing about what was there.
        """
        since = began(self.trail, self.home) if silent else None
        for nightly in silent:
            if since is not None and since <= nightly.day <= self.made_at.date():
                there = read_nightly(self.tables.out.read(nightly_key(nightly.day)) or b"")
                if there is None or there.read_nothing:
                    yield nightly


def _became(nightly: NightlyRead, expired: Mapping[date, int]) -> str:
    if not (nightly.files or nightly.failed_calls):
        return "nothing in the trail, nothing written"
    if nightly.day in expired:
        return f"left as it is, {expired[nightly.day]} of its files are gone"
    return (
        f"{nightly.incidents} incidents of {nightly.failed_calls} failed calls; "
        f"{nightly.files} files, {nightly.files_unreadable} unreadable"
    )


def _by_day(rows: Iterable[Row], day: Callable[[Row], date], days: Days) -> ByDay:
    found: dict[date, list[Row]] = {each: [] for each in days}
    for row in rows:
        if (of := day(row)) in found:
            found[of].append(row)
    return found


def _counted(quality: Sequence[Row]) -> dict[str, int]:
    """What a NightlyRead counts of a day's files."""
    unreadable = [each for each in quality if each["reason"] is not None]
    return {
        "files": len(quality),
        "files_unreadable": len(unreadable),
        "bytes": sum(each["bytes"] for each in quality),
        "bytes_unreadable": sum(each["bytes"] for each in unreadable),
        "records": sum(each["records"] for each in quality),
    }


def _span(bursts: Iterable[Row], days: Days) -> tuple[int, int]:
    """The microseconds over which `days` and the bursts that touch them reach."""
    since, until = days.from_microseconds, days.before_microseconds - 1
    every = ((each["first_failure"], each["last_failure"]) for each in bursts)
    touching = [(first, last) for first, last in every if first <= until and last >= since]
    return _hull(touching) if touching else (since, until)


def _hull(spans: Collection[tuple[int, int]]) -> tuple[int, int]:
    return min(first for first, _ in spans), max(last for _, last in spans)


def _near_scans(cases: CaseFiles, days: Days) -> Iterator[tuple[int, int]]:
    """Where failed calls would join what scans opened on `days`."""
    for life in cases.lives:
        if life.is_opened_by_scan and is_within(life.transitions[0].at, days):
            yield from life.near_evidence


def root_beside(cases: str) -> str | None:
    """Where the findings of the case bucket lie whose cases' root is `cases`, if it can have any.

    docs/case-bucket.md
    """
    parent, slash, _ = cases.rstrip("/").rpartition("/")
    return None if parent in ("s3:/", "s3:") else f"{parent}{slash}{FINDINGS}"


def rounds(findings: Storage, days: Days) -> list[Round]:
    """Those that may speak for incidents of `days`."""
    around = {f"dt={day}" for day in days.widened(1, _LATER_DAYS + 1)}
    there = [each for each in findings.folders("") if each in around]
    paths = [path for name in there for path in findings.files(name)]
    contents = (findings.read(path, _MAXIMUM_ROUND_BYTES + 1) or b"" for path in paths)
    return [each for each in map(read_round, contents) if each]


def last_found(findings: Storage, days: Days) -> list[tuple[str, str, str]]:
    """Queue, symptom and sentence of what the last round of `days` found; nothing is raised."""
    *_, last = [{}, *_last_day(findings, {f"dt={day}" for day in days})]
    try:
        return [
            (str(e["queue_arn"]), str(e["symptom"]), str(e["because"])) for e in last["findings"]
        ]
    except (TypeError, LookupError):
        return []


def last_measured(findings: Storage) -> dict[str, dict[str, int]]:
    """By queue, the whole numbers that the newest round of the last day said of it."""
    names = [each for each in findings.folders("") if day_named(each.removeprefix("dt="))]
    found: dict[str, dict[str, int]] = {}
    for each in _last_day(findings, names):
        queues = each.get("queues")
        for arn, figures in queues.items() if isinstance(queues, dict) else ():
            if isinstance(figures, dict):
                found[arn] = {name: it for name, it in figures.items() if is_count(it)}
    return found


def _last_day(findings: Storage, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """The rounds of the last of these folders that is there, oldest first; nothing is raised."""
    there = set(names).intersection(findings.folders(""))
    for path in sorted(findings.files(max(there))) if there else ():
        content = findings.read(path, _MAXIMUM_ROUND_BYTES + 1) or b""
        with suppress(ValueError, RecursionError):
            document = json.loads(content) if len(content) <= _MAXIMUM_ROUND_BYTES else None
            yield document if isinstance(document, dict) else {}


def read_round(content: bytes) -> Round | None:
    """None where `content` is no round that lists what is managed; nothing is raised."""
    if len(content) > _MAXIMUM_ROUND_BYTES:
        return None
    try:
        document = json.loads(content)
        at, listed = datetime.fromisoformat(document["at"]), document["managed"]
        # An empty text or object would say that nothing is managed.
        if not isinstance(listed, list):
            return None
        " ".join(listed).encode()  # raises where anything in it is no text
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return Round(microseconds(at), tuple(listed), document["managed_whole"] is True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
