"""Readers that count a trail's failed calls without Mendq. Mendq's readers are compared with them.

The *limit* is the fastest reader that is possible in Python: as many processes as Spark has cores,
which only unpack and parse. It uses no Spark, makes no rows and labels nothing. It takes the size
of its buffer from the gzip trailer. A hostile file could fake that size; the files of the bench do
not.

The *peers* are Polars and DuckDB. They are installed in a folder of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec
from isal import isal_zlib

from bench.rounds import ROOT

PROCESS_COUNT = 2
# The window size for zlib that means gzip.
GZIP_WINDOW_BITS = 31
# The largest number of files that a process gets at once. Handing over a small file takes longer
# than reading it.
MAXIMUM_FILES_PER_CHUNK = 64
MAXIMUM_OBJECT_BYTES = 256 * 1024 * 1024
SQS_EVENT_SOURCE = "sqs.amazonaws.com"
# The packages of the peers, and the folder in which they are installed.
PEERS_LOCK_FILE = ROOT / "bench" / "peers.txt"
PEERS_FOLDER = ROOT / "build" / "bench" / "peers"


class FileCounts(NamedTuple):
    """Counts of one or more files: their unpacked bytes and their failed SQS calls."""

    raw_bytes: int
    failed_sqs_calls: int


class _Record(msgspec.Struct, gc=False):
    eventSource: str  # noqa: N815 - CloudTrail's own word
    errorCode: str | None = None  # noqa: N815


class _File(msgspec.Struct, gc=False):
    Records: list[_Record]


_file_decoder = msgspec.json.Decoder(_File)


def count_file(file: Path) -> FileCounts:
    """Unpack a file and count its failed SQS calls: the records of SQS that have an error code."""
    json_bytes = _unpack_file(file)
    records = _file_decoder.decode(json_bytes).Records
    failed_calls = sum(
        record.errorCode is not None and record.eventSource == SQS_EVENT_SOURCE
        for record in records
    )
    return FileCounts(len(json_bytes), failed_calls)


def _unpack_file(file: Path) -> bytes:
    gzip_content = file.read_bytes()
    unpacked_size = int.from_bytes(gzip_content[-4:], "little")
    unpacked_bytes: bytes = isal_zlib.decompress(gzip_content, GZIP_WINDOW_BITS, unpacked_size)
    return unpacked_bytes


def start_process_pool(*, is_for_peers: bool = False) -> Executor:
    """Return a pool of PROCESS_COUNT processes for the fastest possible reader.

    If `is_for_peers` is True, return a pool of one process that can import DuckDB and Polars. To
    limit the threads of Polars to PROCESS_COUNT, an environment variable of this process is set.
    """
    spawn_context = get_context("spawn")
    if not is_for_peers:
        return ProcessPoolExecutor(PROCESS_COUNT, spawn_context)
    os.environ["POLARS_MAX_THREADS"] = str(PROCESS_COUNT)
    return ProcessPoolExecutor(1, spawn_context, _add_peers_to_path)


def _add_peers_to_path() -> None:
    """Let this process import the packages of DuckDB and Polars.

    A pool calls this function in its new process. If the pool called `sys.path.insert` directly, it
    would change a copy of the parent's path.
    """
    sys.path.insert(0, str(PEERS_FOLDER))


def count_files(process_pool: Executor, files: Sequence[Path]) -> FileCounts:
    """Count the failed SQS calls of all files, in the parallel processes of `process_pool`."""
    files_per_chunk = max(1, min(MAXIMUM_FILES_PER_CHUNK, len(files) // (8 * PROCESS_COUNT)))
    raw_bytes = 0
    failed_sqs_calls = 0
    for chunk_counts in process_pool.map(count_file, files, chunksize=files_per_chunk):
        raw_bytes += chunk_counts.raw_bytes
        failed_sqs_calls += chunk_counts.failed_sqs_calls
    return FileCounts(raw_bytes, failed_sqs_calls)


def install_peers() -> None:
    """Install DuckDB and Polars, unless the versions of the lock file are installed already."""
    installed_lock_file = PEERS_FOLDER / "lock.txt"
    if (
        installed_lock_file.exists()
        and installed_lock_file.read_bytes() == PEERS_LOCK_FILE.read_bytes()
    ):
        return
    uv_path = str(Path(sys.executable).with_name("uv"))
    install_options = (
        "--python",
        sys.executable,
        "--target",
        str(PEERS_FOLDER),
        "--require-hashes",
    )
    subprocess.run(
        [uv_path, "pip", "install", "--quiet", *install_options, "-r", str(PEERS_LOCK_FILE)],
        check=True,
    )
    installed_lock_file.write_bytes(PEERS_LOCK_FILE.read_bytes())


def count_by_duckdb(files: Sequence[Path]) -> int:
    """Count failed SQS calls with DuckDB, by the query that DuckDB documents for such files."""
    query = """SELECT count(*) FROM (SELECT unnest(Records) AS record FROM read_json(
        ?, maximum_object_size = ?,
        columns = {Records: 'STRUCT(eventSource VARCHAR, errorCode VARCHAR)[]'}))
        WHERE record.eventSource = ? AND record.errorCode IS NOT NULL"""
    with import_module("duckdb").connect(config={"threads": PROCESS_COUNT}) as connection:
        query_parameters = [[str(file) for file in files], MAXIMUM_OBJECT_BYTES, SQS_EVENT_SOURCE]
        return int(connection.execute(query, query_parameters).fetchone()[0])


def count_by_polars(files: Sequence[Path]) -> int:
    """Count failed SQS calls with Polars, in PROCESS_COUNT threads.

    A thread handles one file after the other. isal unpacks the files first.
    """
    polars = import_module("polars")
    record_type = polars.Struct({"eventSource": polars.String, "errorCode": polars.String})
    is_failed_sqs_call = (polars.col("eventSource") == SQS_EVENT_SOURCE) & polars.col(
        "errorCode"
    ).is_not_null()

    def count_in_file(file: Path) -> int:
        file_frame = polars.read_json(
            _unpack_file(file), schema={"Records": polars.List(record_type)}
        )
        records = file_frame.explode("Records").unnest("Records")
        return int(records.filter(is_failed_sqs_call).height)

    with ThreadPoolExecutor(PROCESS_COUNT) as thread_pool:
        return sum(thread_pool.map(count_in_file, files))


COUNTING_FUNCTION_BY_PEER = {"Polars": count_by_polars, "DuckDB": count_by_duckdb}
