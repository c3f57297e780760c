"""One trail file: bytes in, its failed SQS calls out. Total: a hostile file costs only itself.

The standard library alone, and the last word: whatever a faster reader does not know to be plain
comes here, so that all readers give the same rows.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from functions.healing.failed_call import FailedCall, Unreadable, read

# CloudTrail's own bound on a file, uncompressed.
MAXIMUM_BYTES = 50 * 1024 * 1024
# A file is one gzip member; a few more are legal gzip, thousands are an attack on our time.
MAXIMUM_MEMBERS = 16
# Each object and list costs memory far beyond its text; a real file has one per 100 bytes or more.
MAXIMUM_CONTAINERS = 2_000_000
GZIP = b"\x1f\x8b"
SQS = "sqs.amazonaws.com"
TOO_MANY_VALUES = "too_many_json_values"
_NO_FAULTS = frozenset({"not_failed", "not_sqs"})
# Deeper than every other parser follows, so that none of them reads what is refused here.
_DEPTH = 3_000
# Python converts no longer ones; they are legal JSON all the same, and nothing that is read here.
_MAXIMUM_DIGITS = 4_300


class Refused(Exception):
    """The file is unreadable; the argument is the reason."""


@dataclass(frozen=True)
class Reading:
    """What a file held; `reason` says why it is unreadable, and then it held nothing."""

    reason: str | None = None
    records: int = 0
    calls: tuple[tuple[int, FailedCall], ...] = ()
    unreadable: Mapping[str, int] = field(default_factory=dict)


def read_file(content: bytes) -> Reading:
    """The failed calls with their positions; records that cannot be read, counted by reason."""
    try:
        return read_text(gunzip(content))
    except Refused as refused:
        return Reading(reason=str(refused))


def read_text(text: bytes) -> Reading:
    """The same of what a file holds, inflated."""
    try:
        records = _records(_document(text))
    except Refused as refused:
        return Reading(reason=str(refused))
    return judged(len(records), enumerate(records))


def judged(records: int, some: Iterable[tuple[int, Any]]) -> Reading:
    """The reading of `records` records; only `some` of them, with their positions, can matter."""
    calls: list[tuple[int, FailedCall]] = []
    unreadable: Counter[str] = Counter()
    for position, record in some:
        outcome = read(record) if isinstance(record, dict) else Unreadable("not_a_record")
        if isinstance(outcome, FailedCall):
            calls.append((position, outcome))
        elif outcome.reason not in _NO_FAULTS:
            unreadable[outcome.reason] += 1
    return Reading(None, records, tuple(calls), dict(sorted(unreadable.items())))


def gunzip(content: bytes) -> bytes:
    """Never more than MAXIMUM_BYTES, whatever the file claims; raise Refused."""
    if not content:
        raise Refused("empty")
    if not content.startswith(GZIP):
        raise Refused("not_gzip")
    try:
        return b"".join(_members(content))
    except zlib.error as error:
        raise Refused("corrupt_gzip") from error


def _members(rest: bytes) -> Iterator[bytes]:
    left = MAXIMUM_BYTES
    for _ in range(MAXIMUM_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        text = member.decompress(rest, left + 1)
        left -= len(text)
        if left < 0:
            raise Refused("too_large")
        if not member.eof:
            raise Refused("truncated")
        yield text
        rest = member.unused_data
        if not rest.startswith(GZIP):
            return
    raise Refused("too_many_gzip_members")


def holds_too_many_values(text: bytes) -> bool:
    return (
        len(text) > MAXIMUM_CONTAINERS and text.count(b"{") + text.count(b"[") > MAXIMUM_CONTAINERS
    )


def parsed(text: bytes) -> Any:
    """The value of JSON as Python's parser sees it; raise ValueError or RecursionError."""
    with _deep():
        return json.loads(text, parse_int=_integer)


def _document(text: bytes) -> Any:
    if holds_too_many_values(text):
        raise Refused(TOO_MANY_VALUES)
    try:
        return parsed(text)
    except (ValueError, RecursionError) as error:
        raise Refused("not_json") from error


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAXIMUM_DIGITS else float(digits)


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _records(document: Any) -> list[Any]:
    """Digests and other JSON have no list of records."""
    records = document.get("Records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise Refused("not_a_trail_file")
    return records
