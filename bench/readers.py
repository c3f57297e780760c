"""Ways to read a trail: the limit, ours, and others' in an installation of their own.

The limit is as many processes as Spark has cores, and nothing but inflating and parsing: neither
Spark nor rows nor labels, so that no reader in Python can be faster by much. The buffer is presized
from the gzip trailer, the writer's own claim; these files keep it.
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

PROCESSES = 2
GZIP_WINDOW = 31
# Handing a file over takes longer than reading a small one.
MAXIMUM_CHUNK = 64
MAXIMUM_OBJECT_BYTES = 256 * 1024 * 1024
SQS = "sqs.amazonaws.com"
LOCK = ROOT / "bench" / "peers.txt"
INSTALLED = ROOT / "build" / "bench" / "peers"


class Found(NamedTuple):
    """What was seen in files."""

    raw_bytes: int
    failed_sqs_calls: int


class _Record(msgspec.Struct, gc=False):
    eventSource: str  # noqa: N815 - CloudTrail's own word
    errorCode: str | None = None  # noqa: N815


class _File(msgspec.Struct, gc=False):
    Records: list[_Record]


_decoder = msgspec.json.Decoder(_File)


def parse(file: Path) -> Found:
    """Decompress, and count the failed SQS calls by the two fields that tell."""
    text = _inflated(file)
    records = _decoder.decode(text).Records
    failed = sum(each.errorCode is not None and each.eventSource == SQS for each in records)
    return Found(len(text), failed)


def _inflated(file: Path) -> bytes:
    content = file.read_bytes()
    size = int.from_bytes(content[-4:], "little")
    text: bytes = isal_zlib.decompress(content, GZIP_WINDOW, size)
    return text


def processes(*, peers: bool = False) -> Executor:
    """Processes that are there already; one for the peers, which finds their installation."""
    spawn = get_context("spawn")
    if not peers:
        return ProcessPoolExecutor(PROCESSES, spawn)
    os.environ["POLARS_MAX_THREADS"] = str(PROCESSES)
    return ProcessPoolExecutor(1, spawn, _find_peers)


def _find_peers() -> None:
    """`sys.path.insert` itself would be sent with a copy of this process's path."""
    sys.path.insert(0, str(INSTALLED))


def read_all(pool: Executor, files: Sequence[Path]) -> Found:
    """Read files side by side."""
    chunk = max(1, min(MAXIMUM_CHUNK, len(files) // (8 * PROCESSES)))
    return Found(*map(sum, zip(*pool.map(parse, files, chunksize=chunk), strict=True)))


def install_peers() -> None:
    """Install what the lock names, each time the lock is another."""
    mark = INSTALLED / "lock.txt"
    if mark.exists() and mark.read_bytes() == LOCK.read_bytes():
        return
    uv = str(Path(sys.executable).with_name("uv"))
    into = ("--python", sys.executable, "--target", str(INSTALLED), "--require-hashes")
    subprocess.run([uv, "pip", "install", "--quiet", *into, "-r", str(LOCK)], check=True)
    mark.write_bytes(LOCK.read_bytes())


def by_duckdb(files: Sequence[Path]) -> int:
    """Count failed SQS calls as DuckDB's documentation has it for one large object a file."""
    question = """SELECT count(*) FROM (SELECT unnest(Records) AS record FROM read_json(
        ?, maximum_object_size = ?,
        columns = {Records: 'STRUCT(eventSource VARCHAR, errorCode VARCHAR)[]'}))
        WHERE record.eventSource = ? AND record.errorCode IS NOT NULL"""
    with import_module("duckdb").connect(config={"threads": PROCESSES}) as connection:
        given = [[str(each) for each in files], MAXIMUM_OBJECT_BYTES, SQS]
        return int(connection.execute(question, given).fetchone()[0])


def by_polars(files: Sequence[Path]) -> int:
    """Count failed SQS calls file by file; Polars inflates nothing itself: isal does."""
    pl = import_module("polars")
    record = pl.Struct({"eventSource": pl.String, "errorCode": pl.String})
    failed = (pl.col("eventSource") == SQS) & pl.col("errorCode").is_not_null()

    def failed_in(file: Path) -> int:
        frame = pl.read_json(_inflated(file), schema={"Records": pl.List(record)})
        return int(frame.explode("Records").unnest("Records").filter(failed).height)

    with ThreadPoolExecutor(PROCESSES) as threads:
        return sum(threads.map(failed_in, files))


PEERS = {"Polars": by_polars, "DuckDB": by_duckdb}
