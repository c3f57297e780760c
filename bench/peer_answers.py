"""DuckDB and Polars, asked the limit's question; a line of JSON in, a line with the count out.

Each as its documentation has it for one large JSON object a file, told the two fields to read, on
as many threads as the limit has processes. Polars inflates nothing itself: isal does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from isal import isal_zlib

from bench.limit import GZIP_WINDOW, PROCESSES

SQS = "sqs.amazonaws.com"
MAXIMUM_OBJECT_BYTES = 256 * 1024 * 1024


def by_duckdb(files: Sequence[str]) -> int:
    connection = import_module("duckdb").connect(config={"threads": PROCESSES})
    with connection:
        found = connection.execute(
            """
            SELECT count(*) FROM (
                SELECT unnest(Records) AS record FROM read_json(
                    ?, maximum_object_size = ?,
                    columns = {Records: 'STRUCT(eventSource VARCHAR, errorCode VARCHAR)[]'}
                )
            ) WHERE record.eventSource = ? AND record.errorCode IS NOT NULL
            """,
            [list(files), MAXIMUM_OBJECT_BYTES, SQS],
        )
        return int(found.fetchone()[0])


def by_polars(files: Sequence[str]) -> int:
    with ThreadPoolExecutor(PROCESSES) as threads:
        return sum(threads.map(_failed_in, files))


def _failed_in(file: str) -> int:
    polars = import_module("polars")
    record = polars.Struct({"eventSource": polars.String, "errorCode": polars.String})
    content = Path(file).read_bytes()
    text = isal_zlib.decompress(content, GZIP_WINDOW, int.from_bytes(content[-4:], "little"))
    frame = polars.read_json(text, schema={"Records": polars.List(record)})
    failed = (
        frame.explode("Records")
        .unnest("Records")
        .filter((polars.col("eventSource") == SQS) & polars.col("errorCode").is_not_null())
    )
    return int(failed.height)


PEERS = {"DuckDB": by_duckdb, "Polars": by_polars}


def main() -> int:
    os.environ["POLARS_MAX_THREADS"] = str(PROCESSES)
    for line in sys.stdin:
        question = json.loads(line)
        print(PEERS[question["peer"]](question["files"]), flush=True)  # noqa: T201 - the answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
