"""A night, or several at once: trail files and cases in, the days of the tables out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.case_files import case_files
from analytics.cases import SPARK_CASE, case_rows
from analytics.days import Days
from analytics.expired import Expired
from analytics.failed_calls import within
from analytics.incidents import GAP_SECONDS, incidents
from analytics.joined import joined
from analytics.managed import Managed, managed
from analytics.nights import Run, put, put_silent
from analytics.probe import chosen
from analytics.quality import quality
from analytics.readings import Reader
from analytics.storage import Storage
from analytics.sweep_files import rounds
from analytics.tables import Table, Tables
from analytics.trail import began
from analytics.trail_reader import TrailReader
from functions.healing.nightly import NightRead

Say = Callable[[str], None]
# Failed calls, incidents with their cases, and the quality of the files.
Frames = tuple[DataFrame, DataFrame, DataFrame]
GAP_MICROSECONDS = GAP_SECONDS * 1_000_000


@dataclass(frozen=True)
class Written:
    """The days that a run wrote; `bytes_unreadable` of `bytes_listed` could not be used.

    `kept` are those that it left as they were.
    """

    nights: tuple[NightRead, ...] = ()
    kept: tuple[date, ...] = ()

    @property
    def days(self) -> tuple[date, ...]:
        return tuple(each.day for each in self.nights)

    @property
    def bytes_listed(self) -> int:
        return sum(each.bytes for each in self.nights)

    @property
    def bytes_unreadable(self) -> int:
        return sum(each.bytes_unreadable for each in self.nights)


@dataclass(frozen=True)
class Night:
    """Where and when a run reads and writes; `say` tells people how far it is.

    Where no `reader` is given, the one that this Spark can run.
    """

    spark: SparkSession
    trail: Storage
    cases: Storage
    out: Storage
    made_at: datetime
    say: Say
    reader: Reader | None = None
    tables: Tables = field(default_factory=Tables)
    findings: Storage | None = None

    def write(self, requested: Days) -> Written:
        """Write the tables of `requested` and of every day that one of its bursts touches.

        A day without a file and without a call of its own is not written: an object that is
        there already is better than an empty one; nor is one written over that was made of files
        which are gone. What each day's night read is written last, so that its counts are those of
        the tables unless a later run ended between the two.
        """
        reads = self.reader or chosen(self.spark)
        self.say(f"reader: {reads.name}" + f" ({reads.why})" * bool(reads.why))
        reader = TrailReader(self.spark, self.trail, reads)
        try:
            affected, calls, bursts = self._reach(reader, requested)
            found = joined(bursts, self._cases(affected), self._managed(affected)).persist()
            seen = quality(reader.listing(), reader.readings()).persist()
            run = Run(self.made_at, reads.name, reads.why)
            listed = frozenset(each[0] for each in reader.listed)
            kept = Expired(self.trail, self.out, self.tables, listed).kept(affected)
            written = self._write_days(run, affected, (calls, found, seen), kept)
            for frame in (calls, bursts, found, seen):
                frame.unpersist()
        finally:
            reader.close()
        return written

    def _reach(self, reader: TrailReader, requested: Days) -> tuple[Days, DataFrame, DataFrame]:
        """(days to write, their calls, their bursts): read on until no burst crosses an edge."""
        loaded = requested.widened(1, 1)
        while True:
            self.say(f"reading the trail for {loaded.first} to {loaded.last}")
            calls = reader.failed_calls(loaded).persist()
            bursts = incidents(calls).persist()
            span = _span(bursts, requested)
            affected = requested | Days.touched(*span)
            if affected != requested:
                span = _span(bursts, affected)
            needed = affected | Days.touched(span[0] - GAP_MICROSECONDS, span[1] + GAP_MICROSECONDS)
            if needed in loaded:
                return affected, calls, bursts
            # A burst of many days is reached in few rounds: each counts everything anew.
            loaded = loaded.stretched(needed, requested)
            for frame in (calls, bursts):
                frame.unpersist()

    def _cases(self, affected: Days) -> DataFrame:
        """The cases that may speak for incidents of `affected`, and those of the week before."""
        found = case_files(self.cases, affected)
        rows = case_rows(found.transitions)
        left_out = f", {found.unreadable} files there were no transitions" * bool(found.unreadable)
        self.say(f"{len(rows)} cases since {found.since}{left_out}")
        return self.spark.createDataFrame(rows, SPARK_CASE)

    def _managed(self, affected: Days) -> Managed:
        """What the sweeps around `affected` listed."""
        found = list(rounds(self.findings, affected)) if self.findings else []
        self.say(f"{len(found)} sweeps say which queues were managed")
        return managed(self.spark, found)

    def _write_days(
        self, run: Run, affected: Days, frames: Frames, expired: Mapping[date, int]
    ) -> Written:
        nights, silent, kept = [], [], []
        for day in affected:
            tables = self._of_day(day, frames)
            if not tables["failed_calls"].num_rows and not tables["quality"].num_rows:
                self.say(f"{day}: nothing in the trail, nothing written")
                silent.append(day)
            elif day in expired:
                self.say(f"{day}: left as it is, {expired[day]} of its files are gone")
                kept.append(day)
            else:
                nights.append(self._put(run, day, tables))
        since = began(self.trail) if silent else None
        put(self.out, nights)
        put_silent(self.out, run.silent(silent, since))
        return Written(tuple(nights), tuple(kept))

    def _of_day(self, day: date, frames: Frames) -> dict[str, Table]:
        calls, found, seen = frames
        of_day = Days(day, day)
        by_table = {
            "failed_calls": within(calls, "event_time", of_day),
            "quality": seen.where(sf.col("published") == sf.lit(day)),
            "incidents": within(found, "first_failure", of_day),
        }
        return {name: self.tables.collected(frame, name) for name, frame in by_table.items()}

    def _put(self, run: Run, day: date, tables: Mapping[str, Table]) -> NightRead:
        for name, table in tables.items():
            self.tables.put(self.out, name, day, table)
        files, calls = tables["quality"].to_pylist(), tables["failed_calls"].num_rows
        night = run.read(day, files, calls, tables["incidents"].num_rows)
        self.say(
            f"{day}: {night.incidents} incidents of {night.failed_calls} failed calls; "
            f"{night.files} files, {night.files_unreadable} unreadable"
        )
        return night


def _span(bursts: DataFrame, days: Days) -> tuple[int, int]:
    """The microseconds over which `days` and the bursts that touch them reach."""
    bounds = bursts.select(
        sf.unix_micros("first_failure").alias("first"), sf.unix_micros("last_failure").alias("last")
    )
    since, until = days.from_microseconds, days.before_microseconds - 1
    touches = (sf.col("first") <= until) & (sf.col("last") >= since)
    first, last = bounds.where(touches).agg(sf.min("first"), sf.max("last")).collect()[0]
    return (since, until) if first is None else (first, last)
