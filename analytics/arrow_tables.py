"""A day of a table through Arrow: collected in columns, and one Parquet file in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from analytics.columns import COLUMNS, Kind
from analytics.storage import Storage
from analytics.tables import TableUnreadable

_KINDS = {
    Kind.TEXT: pa.string(),
    Kind.TEXTS: pa.list_(pa.string()),
    Kind.MOMENT: pa.timestamp("us", tz="UTC"),
    Kind.WHOLE: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TRUTH: pa.bool_(),
    Kind.FAULTS: pa.list_(pa.struct([("reason", pa.string()), ("records", pa.int64())])),
}
SCHEMAS = {
    table: pa.schema([(name, _KINDS[kind]) for name, kind in columns.items()])
    for table, columns in COLUMNS.items()
}


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
