"""One pass over the trail files, as a DataFrame: a row per file with its failed calls in it.

The only Python that runs on the executors: reading and labelling are `functions.healing` and
`functions.catalogue` themselves, so that a label is what heal would have said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.labels import label_of
from analytics.trail_file import MAXIMUM_BYTES, Reading, read_file
from functions.healing.failed_call import FailedCall

CALL = pa.struct(
    [
        ("position", pa.int64()),
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_name", pa.string()),
        ("error_code", pa.string()),
        ("queue_arn", pa.string()),
        ("account", pa.string()),
        ("region", pa.string()),
        ("principal_arn", pa.string()),
        ("request_id", pa.string()),
        ("label", pa.string()),
    ]
)
FAULTS = pa.list_(pa.struct([("reason", pa.string()), ("records", pa.int64())]))
READING = pa.schema(
    [
        ("file", pa.string()),
        ("reason", pa.string()),
        ("records", pa.int64()),
        ("unreadable_records", FAULTS),
        ("calls", pa.list_(CALL)),
    ]
)
UNRESOLVED = "unresolved"
_SPARK_CALL = (
    "array<struct<position: bigint, event_id: string, event_time: timestamp, event_name: string, "
    "error_code: string, queue_arn: string, account: string, region: string, "
    "principal_arn: string, request_id: string, label: string>>"
)
SPARK_READING = (
    "file string, reason string, records bigint, "
    f"unreadable_records array<struct<reason: string, records: bigint>>, calls {_SPARK_CALL}"
)
Batches = Iterable[pa.RecordBatch]


def readings(trail_files: DataFrame, root: str) -> DataFrame:
    """`trail_files` as Spark's binaryFile gives them; `root` is what their paths begin with."""
    return (
        trail_files.where(sf.col("length") <= MAXIMUM_BYTES)
        .select("path", "content")
        .mapInArrow(_reader(root), SPARK_READING)
    )


def _reader(root: str) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def read_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            paths, contents = batch.column("path"), batch.column("content")
            for path, content in zip(paths, contents, strict=True):
                file = path.as_py().removeprefix(root)
                row = _row(file, read_file(content.as_py()))
                yield pa.RecordBatch.from_pylist([row], schema=READING)

    return read_batches


def _row(file: str, reading: Reading) -> dict[str, Any]:
    return {
        "file": file,
        "reason": reading.reason,
        "records": reading.records,
        "unreadable_records": [
            {"reason": reason, "records": records} for reason, records in reading.unreadable.items()
        ],
        "calls": [_call(position, call) for position, call in reading.calls],
    }


def _call(position: int, call: FailedCall) -> dict[str, Any]:
    """The error message stays behind: it may hold a receipt handle."""
    return {
        "position": position,
        "event_id": _text(call.event_id),
        "event_time": call.event_time,
        "event_name": _text(call.event_name),
        "error_code": _text(call.error_code),
        "queue_arn": _text(call.queue_arn or UNRESOLVED),
        "account": _text(call.account),
        "region": _text(call.region),
        "principal_arn": _text(call.principal_arn),
        "request_id": _text(call.request_id),
        "label": _text(label_of(call)),
    }


def _text(text: str) -> str:
    """JSON can spell half a surrogate pair; UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()
