"""The tables of the night: their columns, and a day of one as one Parquet object.

S3 cannot replace a folder at once, but it can replace one object; so a day is collected and put
whole. Tried with 200,000 failed calls a day, of 385 bytes each; spark.driver.maxResultSize, 1 GB,
would end it at some 2.5 million.
"""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

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


def path_of(table: str, day: date) -> str:
    """The one object that holds a day of a table."""
    return f"{table}/dt={day}/{table}.parquet"


def collected(frame: DataFrame, schema: pa.Schema, order: tuple[str, ...]) -> pa.Table:
    """The rows of `frame`, in a fixed order, in exactly the columns of `schema`."""
    batches = frame.select(*schema.names)._collect_as_arrow()  # noqa: SLF001 - toArrow is Spark 4's
    columns = pa.Table.from_batches(batches) if batches else schema.empty_table()
    return columns.cast(schema).sort_by([(name, "ascending") for name in order])


def parquet(table: pa.Table) -> bytes:
    """The same rows give the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_parquet(content: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(content))
