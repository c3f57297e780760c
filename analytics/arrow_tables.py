"""A day of a table through Arrow: collected in columns, and one Parquet file in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from analytics.storage import Storage
from analytics.tables import TableUnreadable

_MOMENT = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.string())
_FAULTS = pa.list_(pa.struct([("reason", pa.string()), ("records", pa.int64())]))
INCIDENTS = pa.schema(
    [
        ("incident_id", pa.string()),
        ("account", pa.string()),
        ("region", pa.string()),
        ("queue_arn", pa.string()),
        ("label", pa.string()),
        ("error_codes", _TEXTS),
        ("first_failure", _MOMENT),
        ("last_failure", _MOMENT),
        ("failed_calls", pa.int64()),
        ("principals", _TEXTS),
        ("outcome", pa.string()),
        ("why", pa.string()),
        ("case_id", pa.string()),
        ("seconds_to_heal", pa.float64()),
        ("paged", pa.bool_()),
    ]
)
FAILED_CALLS = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", _MOMENT),
        ("event_name", pa.string()),
        ("error_code", pa.string()),
        ("queue_arn", pa.string()),
        ("account", pa.string()),
        ("region", pa.string()),
        ("principal_arn", pa.string()),
        ("request_id", pa.string()),
        ("label", pa.string()),
        ("file", pa.string()),
    ]
)
QUALITY = pa.schema(
    [
        ("file", pa.string()),
        ("account", pa.string()),
        ("region", pa.string()),
        ("bytes", pa.int64()),
        ("reason", pa.string()),
        ("records", pa.int64()),
        ("failed_calls", pa.int64()),
        ("unreadable_records", _FAULTS),
    ]
)


SCHEMAS = {"incidents": INCIDENTS, "failed_calls": FAILED_CALLS, "quality": QUALITY}


def collected(frame: DataFrame, name: str, order: Sequence[str]) -> pa.Table:
    """The rows of `frame`, in a fixed order, in exactly the columns of the table."""
    schema = SCHEMAS[name]
    batches = frame.select(*schema.names)._collect_as_arrow()  # noqa: SLF001 - toArrow is Spark 4's
    columns = pa.Table.from_batches(batches) if batches else schema.empty_table()
    return columns.cast(schema).sort_by([(column, "ascending") for column in order])


def parquet(table: pa.Table) -> bytes:
    """The same rows give the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def put(out: Storage, path: str, table: pa.Table) -> None:
    out.put(path, parquet(table))


def rows(out: Storage, path: str) -> list[dict[str, Any]] | None:
    columns = SCHEMAS[path.rpartition("/")[2].removesuffix(".parquet")]
    return _read(out, path, columns)


def files(out: Storage, path: str) -> set[str] | None:
    found = _read(out, path, pa.schema([("file", pa.string())]))
    return None if found is None else {each["file"] for each in found}


def _read(out: Storage, path: str, columns: pa.Schema) -> list[dict[str, Any]] | None:
    content = out.read(path)
    if content is None:
        return None
    try:
        table = pq.read_table(pa.BufferReader(content), columns=columns.names)
        found: list[dict[str, Any]] = table.select(columns.names).cast(columns).to_pylist()
    except (pa.ArrowException, OSError, LookupError, ValueError, OverflowError) as error:
        raise TableUnreadable(f"{path} is no table of the night's") from error
    return found
