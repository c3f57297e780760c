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
_GAP_MICROSECONDS = GAP_SECONDS * 1_000_000


@dataclass(frozen=True)
class Written:
    """What a run wrote; `bytes_unreadable` of `bytes_read` could not be used."""

    days: tuple[date, ...]
    incidents: int
    failed_calls: int
    files: int
    bytes_read: int
    bytes_unreadable: int


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
            loaded, affected = self._reach(reader, requested)
            calls = reader.failed_calls(loaded).persist()
            found = joined(incidents(calls), self._cases(affected)).persist()
            seen = quality(reader.listing(), reader.readings()).persist()
            written = self._write_days(affected, calls, found, seen)
            for frame in (calls, found, seen):
                frame.unpersist()
        finally:
            reader.close()
        return written

    def _reach(self, reader: TrailReader, requested: Days) -> tuple[Days, Days]:
        """(days to load, days to write): widened until no burst that matters crosses an edge."""
        loaded = requested.widened(1, 1)
        while True:
            self.say(f"reading the trail for {loaded.first} to {loaded.last}")
            spans = _spans(reader.failed_calls(loaded))
            affected = requested | (_touching(spans, requested) or requested)
            needed = affected | (_touching(spans, affected, _GAP_MICROSECONDS) or affected)
            if needed in loaded:
                return loaded, affected
            loaded |= needed

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
        days, counts = [], [0, 0, 0, 0, 0]
        for day in affected:
            of_day = Days(day, day)
            day_calls = tables.collected(
                within(calls, of_day), tables.FAILED_CALLS, ("event_time", "event_id")
            )
            day_quality = tables.collected(
                seen.where(sf.col("published") == sf.lit(day)), tables.QUALITY, ("file",)
            )
            if not day_calls.num_rows and not day_quality.num_rows:
                self.say(f"{day}: nothing in the trail, nothing written")
                continue
            day_incidents = tables.collected(
                _starting_in(found, of_day), tables.INCIDENTS, ("first_failure", "incident_id")
            )
            for name, table in (
                ("failed_calls", day_calls),
                ("quality", day_quality),
                ("incidents", day_incidents),
            ):
                self.out.put(tables.path_of(name, day), tables.parquet(table))
            days.append(day)
            unreadable = [each for each in day_quality.to_pylist() if each["reason"]]
            for index, more in enumerate(
                (
                    day_incidents.num_rows,
                    day_calls.num_rows,
                    day_quality.num_rows,
                    sum(day_quality["bytes"].to_pylist()),
                    sum(each["bytes"] for each in unreadable),
                )
            ):
                counts[index] += more
            self.say(
                f"{day}: {day_incidents.num_rows} incidents of {day_calls.num_rows} failed calls; "
                f"{day_quality.num_rows} files, {len(unreadable)} unreadable"
            )
        return Written(tuple(days), *counts)


def _spans(calls: DataFrame) -> DataFrame:
    return incidents(calls).select(
        sf.unix_micros("first_failure").alias("first"), sf.unix_micros("last_failure").alias("last")
    )


def _touching(spans: DataFrame, days: Days, margin_microseconds: int = 0) -> Days | None:
    """The days over which the bursts that touch `days` reach."""
    touches = (sf.col("first") < days.before_microseconds) & (
        sf.col("last") >= days.from_microseconds
    )
    first, last = spans.where(touches).agg(sf.min("first"), sf.max("last")).collect()[0]
    if first is None:
        return None
    return Days.touched(first - margin_microseconds, last + margin_microseconds)


def _starting_in(found: DataFrame, days: Days) -> DataFrame:
    first = sf.unix_micros("first_failure")
    return found.where((first >= days.from_microseconds) & (first < days.before_microseconds))
