"""The tables: a day of one is one Parquet object with a fixed name.

S3 cannot replace a folder at once, but it can replace one object; so Spark writes beside, where
nobody reads, and what it wrote is put whole. That needs nothing compiled on the driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.incidents import COLUMNS
from analytics.storage import Storage

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "incidents": ("first_failure", "incident_id"),
    "failed_calls": ("event_time", "event_id"),
    "quality": ("file",),
}
# Of the tables that are read back; every other column of a row has a value.
_MAY_BE_EMPTY = frozenset({"reason", "why", "case_id", "seconds_to_heal"})
_DAY = re.compile(r"/dt=([0-9-]{10})/[^/]*\Z")
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Tables:
    """The tables below one root; `say` is told of an object in a table's place that is not ours."""

    spark: SparkSession
    out: Storage
    say: Callable[[str], None]

    def write(self, frames: Mapping[str, DataFrame], days: Collection[date]) -> None:
        """Replace each day's objects by the rows of that `day` in the frames, by table.

        In a fixed order and in exactly the table's columns: the same rows give the same bytes.
        """
        if not days:
            return
        with self.out.staging() as stage:
            for name, frame in frames.items():
                typed = [sf.col(each).cast(kind) for each, kind in COLUMNS[name].items()]
                rows = frame.where(sf.col("day").isin(*days)).select(*typed, "day").coalesce(1)
                ordered = rows.sortWithinPartitions("day", *_ORDERS[name])
                ordered.write.partitionBy("day").parquet(f"{stage.spark_root([])}{name}")
            for day in sorted(days):
                for name in frames:
                    content = _part(stage, f"{name}/day={day}") or self._empty(stage, name)
                    self.out.put(path_of(name, day), content)

    def _empty(self, stage: Storage, name: str) -> bytes:
        """A day's object without rows: of such a day Spark writes nothing."""
        place = f"empty/{name}"
        if not stage.files(place):
            schema = ", ".join(f"{each} {kind}" for each, kind in COLUMNS[name].items())
            none = self.spark.createDataFrame([], schema).coalesce(1)
            none.write.parquet(f"{stage.spark_root([])}{place}")
        return _part(stage, place)

    def rows(self, name: str, days: Iterable[date]) -> dict[date, Rows]:
        """Those of `days` of incidents or quality that a run wrote; the others are said."""
        found = self._read(name, days, COLUMNS[name])
        for day in [*found]:
            needed = COLUMNS[name].keys() - _MAY_BE_EMPTY
            if any(row[each] is None for row in found[day] for each in needed):
                self.say(f"{path_of(name, day)} has rows without a value: {day} is left out")
                del found[day]
        return found

    def files(self, name: str, days: Iterable[date]) -> dict[date, set[str]]:
        """The trail files that failed_calls or quality name, of the days that a run wrote."""
        found = self._read(name, days, {"file": "string"}, distinct=True)
        return {day: {each["file"] for each in rows} for day, rows in found.items()}

    def _read(
        self, name: str, days: Iterable[date], columns: Mapping[str, str], *, distinct: bool = False
    ) -> dict[date, Rows]:
        sizes = {each.path: each.size_bytes for day in days for each in self._objects(name, day)}
        # An empty object is to Spark a table without rows.
        paths = [path for path, size in sizes.items() if size]
        found = self._collected(paths, columns, distinct=distinct) if paths else {}
        if found is None:
            alone = {each: self._collected([each], columns, distinct=distinct) for each in paths}
            found = {day: rows for one in alone.values() if one for day, rows in one.items()}
        for path in sizes:
            if _day_of(path) not in found:
                self.say(f"{path} is no table of the nightly job's: {_day_of(path)} is left out")
        return found

    def _objects(self, name: str, day: date) -> Iterable[Any]:
        path = path_of(name, day)
        return (each for each in self.out.files(path.rpartition("/")[0]) if each.path == path)

    def _collected(
        self, paths: list[str], columns: Mapping[str, str], *, distinct: bool
    ) -> dict[date, Rows] | None:
        """The rows of each path's day; None where anything there cannot be read."""
        root = self.out.spark_root([each.rpartition("/")[0] for each in paths])
        schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        found: dict[date, Rows] = {_day_of(each): [] for each in paths}
        times = [name for name, kind in columns.items() if kind == "timestamp"]
        try:
            frame = self.spark.read.schema(schema).parquet(*(f"{root}{each}" for each in paths))
            named = frame.withColumn("path", sf.input_file_name())
            rows = (named.distinct() if distinct else named).withColumns(
                # Spark would give times without a zone.
                {each: sf.unix_micros(each) for each in times}
            )
            collected = [each.asDict(recursive=True) for each in rows.collect()]
        except (Py4JJavaError, PySparkException):
            return None
        try:
            for row in collected:
                row.update({each: _time(row[each]) for each in times if row[each] is not None})
                found[_day_of(row.pop("path"))].append(row)
        except OverflowError:
            return None
        return found


def path_of(table: str, day: date) -> str:
    """The one object that holds a day of a table."""
    return f"{table}/dt={day}/{table}.parquet"


def _part(stage: Storage, folder: str) -> bytes:
    parts = [each.path for each in stage.files(folder) if each.path.endswith(".parquet")]
    return (stage.read(parts[0]) or b"") if parts else b""


def _day_of(path: str) -> date:
    found = _DAY.search(path)
    if found is None:
        raise ValueError(f"{path} names no day")
    return date.fromisoformat(found.group(1))


def _time(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
