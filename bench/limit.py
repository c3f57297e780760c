"""The limit: as many processes as Spark has cores, and nothing but inflating and parsing.

Neither Spark nor rows nor labels: what is left is what no reader in Python can be faster than by
much. The buffer is presized from the gzip trailer, the writer's own claim; these files keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec
from isal import isal_zlib

PROCESSES = 2
GZIP_WINDOW = 31
# Handing a file over takes longer than reading a small one.
MAXIMUM_CHUNK = 64


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


def inflate(file: Path) -> Found:
    """Decompress and do nothing else."""
    return Found(len(_inflated(file)), 0)


def parse(file: Path) -> Found:
    """Decompress, and count the failed SQS calls by the two fields that tell."""
    text = _inflated(file)
    records = _decoder.decode(text).Records
    failed = sum(each.errorCode is not None and _is_sqs(each) for each in records)
    return Found(len(text), failed)


def _is_sqs(record: _Record) -> bool:
    return record.eventSource == "sqs.amazonaws.com"


def _inflated(file: Path) -> bytes:
    content = file.read_bytes()
    size = int.from_bytes(content[-4:], "little")
    text: bytes = isal_zlib.decompress(content, GZIP_WINDOW, size)
    return text


ReadAll = Callable[[Callable[[Path], Found], Sequence[Path]], Found]


@contextmanager
def processes() -> Iterator[ReadAll]:
    """A function that reads files in processes that are there already."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield partial(_read_all, pool)


def _read_all(
    pool: ProcessPoolExecutor, read: Callable[[Path], Found], files: Sequence[Path]
) -> Found:
    chunk = max(1, min(MAXIMUM_CHUNK, len(files) // (8 * PROCESSES)))
    found = list(pool.map(read, files, chunksize=chunk))
    return Found(
        sum(each.raw_bytes for each in found), sum(each.failed_sqs_calls for each in found)
    )
