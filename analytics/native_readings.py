"""Trail files in Arrow batches, read by the native reader: many small files to a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from analytics.call_rows import CallRow, call_row
from analytics.native_reader import NativeReader
from analytics.readings import SPARK_READING
from analytics.trail_file import Reading

MAXIMUM_FILES = 2_000
MAXIMUM_CALLS = 20_000
_KINDS = {"position": pa.int64(), "event_time": pa.timestamp("us", tz="UTC")}
_CALL = pa.struct([(name, _KINDS.get(name, pa.string())) for name in CallRow._fields])
_FAULT = pa.struct([("reason", pa.string()), ("records", pa.int64())])
READING = pa.schema(
    [
        ("file", pa.string()),
        ("reason", pa.string()),
        ("records", pa.int64()),
        ("unreadable_records", pa.list_(_FAULT)),
        ("calls", pa.list_(_CALL)),
    ]
)
Batches = Iterable[pa.RecordBatch]
_Row = tuple[str, Reading]


def readings(files: DataFrame, root: str) -> DataFrame:
    """`files` with `path` and `content`."""
    return files.mapInArrow(_reader(root), SPARK_READING)


def _reader(root: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def read_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
        return _bounded(_read(batches, root))

    return read_batches


def _read(batches: Batches, root: str) -> Iterator[_Row]:
    native = NativeReader()
    for batch in batches:
        paths, contents = batch.column("path"), batch.column("content")
        for path, content in zip(paths, contents, strict=True):
            yield path.as_py().removeprefix(root), native.read_file(content.as_buffer())


def _bounded(rows: Iterator[_Row]) -> Iterator[pa.RecordBatch]:
    taken: list[_Row] = []
    calls = 0
    for row in rows:
        taken.append(row)
        calls += len(row[1].calls)
        if len(taken) >= MAXIMUM_FILES or calls >= MAXIMUM_CALLS:
            yield _batch(taken)
            taken, calls = [], 0
    if taken:
        yield _batch(taken)


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    """Column by column: a row of its own for each file would cost more than reading a small one."""
    found = [reading for _, reading in rows]
    faults = [tuple(each.unreadable.items()) for each in found]
    calls = [[call_row(*call) for call in each.calls] for each in found]
    columns = [
        pa.array([file for file, _ in rows], pa.string()),
        pa.array([each.reason for each in found], pa.string()),
        pa.array([each.records for each in found], pa.int64()),
        _lists(faults, _FAULT),
        _lists(calls, _CALL),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READING)


def _lists(of_files: Sequence[Sequence[tuple[Any, ...]]], kind: pa.StructType) -> pa.ListArray:
    offsets = [0, *accumulate(map(len, of_files))]
    values = list(zip(*chain.from_iterable(of_files), strict=True)) or [()] * kind.num_fields
    fields = [kind.field(number) for number in range(kind.num_fields)]
    arrays = [pa.array(column, each.type) for column, each in zip(values, fields, strict=True)]
    structs = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
