"""A night, or several at once: trail files and cases in, the days of the tables out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics import tables
from analytics.cases import SPARK_CASE, case_rows, read_transition
from analytics.days import Days
from analytics.failed_calls import within
from analytics.incidents import GAP_SECONDS, incidents
from analytics.joined import MEMORY_DAYS, joined
from analytics.quality import quality
from analytics.storage import Storage
from analytics.trail_reader import TrailReader

Say = Callable[[str], None]
GAP_MICROSECONDS = GAP_SECONDS * 1_000_000


@dataclass(frozen=True)
class Written:
    """The days that a run wrote; `bytes_unreadable` of `bytes_listed` could not be used."""

    days: tuple[date, ...] = ()
    bytes_listed: int = 0
    bytes_unreadable: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(
            self.days + other.days,
            self.bytes_listed + other.bytes_listed,
            self.bytes_unreadable + other.bytes_unreadable,
        )


@dataclass(frozen=True)
class Night:
    """Where a run reads and writes; `say` tells people how far it is."""

    spark: SparkSession
    trail: Storage
    cases: Storage
    out: Storage
    say: Say

    def write(self, requested: Days) -> Written:
        """Write the tables of `requested` and of every day that one of its bursts touches.

        A day without a file and without a call of its own is not written: an object that is
        there already is better than an empty one.
        """
        reader = TrailReader(self.spark, self.trail)
        try:
            affected, calls, bursts = self._reach(reader, requested)
            found = joined(bursts, self._cases(affected)).persist()
            seen = quality(reader.listing(), reader.readings()).persist()
            written = self._write_days(affected, calls, found, seen)
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
            loaded |= needed
            for frame in (calls, bursts):
                frame.unpersist()

    def _cases(self, affected: Days) -> DataFrame:
        """The cases that may speak for incidents of `affected`, and those of the week before."""
        first = affected.widened(MEMORY_DAYS + 1, 0).first
        transitions, unreadable = [], 0
        for name in self.cases.folders(""):
            if not name.startswith("dt=") or name.removeprefix("dt=") < f"{first}":
                continue
            for file in self.cases.files(name):
                transition = read_transition(self.cases.read(file.path) or b"")
                if transition:
                    transitions.append(transition)
                else:
                    unreadable += 1
        rows = case_rows(transitions)
        left_out = f", {unreadable} files there were no transitions" if unreadable else ""
        self.say(f"{len(rows)} cases since {first}{left_out}")
        return self.spark.createDataFrame(rows, SPARK_CASE)

    def _write_days(
        self, affected: Days, calls: DataFrame, found: DataFrame, seen: DataFrame
    ) -> Written:
        written = [self._write_day(day, calls, found, seen) for day in affected]
        return sum((each for each in written if each), Written())

    def _write_day(
        self, day: date, calls: DataFrame, found: DataFrame, seen: DataFrame
    ) -> Written | None:
        of_day = Days(day, day)
        day_calls = tables.collected(
            within(calls, "event_time", of_day), tables.FAILED_CALLS, ("event_time", "event_id")
        )
        files = tables.collected(
            seen.where(sf.col("published") == sf.lit(day)), tables.QUALITY, ("file",)
        )
        if not day_calls.num_rows and not files.num_rows:
            self.say(f"{day}: nothing in the trail, nothing written")
            return None
        day_incidents = tables.collected(
            within(found, "first_failure", of_day),
            tables.INCIDENTS,
            ("first_failure", "incident_id"),
        )
        by_table = {"failed_calls": day_calls, "quality": files, "incidents": day_incidents}
        for name, table in by_table.items():
            self.out.put(tables.path_of(name, day), tables.parquet(table))
        unreadable = [each["bytes"] for each in files.to_pylist() if each["reason"]]
        self.say(
            f"{day}: {day_incidents.num_rows} incidents of {day_calls.num_rows} failed calls; "
            f"{files.num_rows} files, {len(unreadable)} unreadable"
        )
        return Written((day,), sum(files["bytes"].to_pylist()), sum(unreadable))


def _span(bursts: DataFrame, days: Days) -> tuple[int, int]:
    """The microseconds over which `days` and the bursts that touch them reach."""
    bounds = bursts.select(
        sf.unix_micros("first_failure").alias("first"), sf.unix_micros("last_failure").alias("last")
    )
    since, until = days.from_microseconds, days.before_microseconds - 1
    touches = (sf.col("first") <= until) & (sf.col("last") >= since)
    first, last = bounds.where(touches).agg(sf.min("first"), sf.max("last")).collect()[0]
    return (since, until) if first is None else (first, last)
