"""A day of a table through Spark alone, where the driver has no pyarrow."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.columns import COLUMNS, Kind
from analytics.readings import FAULTS
from analytics.storage import Storage
from analytics.tables import TableUnreadable

_KINDS = {
    Kind.TEXT: "string",
    Kind.TEXTS: "array<string>",
    Kind.MOMENT: "timestamp",
    Kind.WHOLE: "bigint",
    Kind.NUMBER: "double",
    Kind.TRUTH: "boolean",
    Kind.FAULTS: FAULTS,
}
SCHEMAS = {
    table: ", ".join(f"{name} {_KINDS[kind]}" for name, kind in columns.items())
    for table, columns in COLUMNS.items()
}


@dataclass(frozen=True)
class SparkTable:
    """`frame` is in order and in one partition; `found` are its rows."""

    frame: DataFrame
    found: list[dict[str, Any]]

    @property
    def num_rows(self) -> int:
        return len(self.found)

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.found


def collected(frame: DataFrame, name: str, order: Sequence[str]) -> SparkTable:
    """The rows of `frame`, in a fixed order, in exactly the columns of the table."""
    columns = frame.sparkSession.createDataFrame([], SCHEMAS[name]).schema
    typed = [sf.col(each.name).cast(each.dataType) for each in columns]
    ordered = frame.select(*typed).coalesce(1).sortWithinPartitions(*order)
    return SparkTable(ordered, _rows(ordered))


def put(out: Storage, path: str, table: SparkTable) -> None:
    """Written by Spark beside, where the job may write and nobody reads, then put as one object."""
    beside = f"quality/.writing-{uuid.uuid4().hex}"
    try:
        table.frame.write.parquet(f"{out.spark_root([])}{beside}")
        [part] = [each for each in out.files(beside) if each.path.endswith(".parquet")]
        out.put(path, out.read(part.path) or b"")
    finally:
        out.remove(beside)


def rows(out: Storage, path: str) -> list[dict[str, Any]] | None:
    return _read(out, path, SCHEMAS[path.rpartition("/")[2].removesuffix(".parquet")])


def files(out: Storage, path: str) -> set[str] | None:
    found = _read(out, path, "file string")
    return None if found is None else {each["file"] for each in found}


def _read(out: Storage, path: str, columns: str) -> list[dict[str, Any]] | None:
    sizes = {each.path: each.size_bytes for each in out.files(path.rpartition("/")[0])}
    if path not in sizes:
        return None
    if not sizes[path]:  # to Spark a table without rows
        raise TableUnreadable(f"{path} is empty")
    reading = SparkSession.active().read.schema(columns)
    try:
        return _rows(reading.parquet(f"{out.spark_root([])}{path}"))
    except (Py4JJavaError, PySparkException, OverflowError) as error:
        raise TableUnreadable(f"{path} is no table of the night's") from error


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Spark would give times without a zone."""
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    in_micros = frame.withColumns({each: sf.unix_micros(each) for each in times})
    found = [each.asDict(recursive=True) for each in in_micros.collect()]
    for row in found:
        row.update({each: _time(row[each]) for each in times})
    return found


def _time(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
