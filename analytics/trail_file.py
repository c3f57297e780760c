"""One trail file: bytes in, its failed SQS calls out. Total: a hostile file costs only itself.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from functions.healing.failed_call import FailedCall, Unreadable, read

# CloudTrail's own bound on a file, uncompressed.
MAXIMUM_BYTES = 50 * 1024 * 1024
# A file is one gzip member; a few more are legal gzip, thousands are an attack on our time.
MAXIMUM_MEMBERS = 16
# Each object and list costs memory far beyond its text; a real file has one per 100 bytes or more.
MAXIMUM_CONTAINERS = 2_000_000
_GZIP = b"\x1f\x8b"
_NO_FAULTS = frozenset({"not_failed", "not_sqs"})


class _Refused(Exception):
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
        records = _records(_json(gunzip(content)))
    except _Refused as refused:
        return Reading(reason=str(refused))
    calls: list[tuple[int, FailedCall]] = []
    unreadable: Counter[str] = Counter()
    for position, record in enumerate(records):
        outcome = read(record) if isinstance(record, dict) else Unreadable("not_a_record")
        if isinstance(outcome, FailedCall):
            calls.append((position, outcome))
        elif outcome.reason not in _NO_FAULTS:
            unreadable[outcome.reason] += 1
    return Reading(None, len(records), tuple(calls), dict(sorted(unreadable.items())))


def gunzip(content: bytes) -> bytes:
    """Never more than MAXIMUM_BYTES, whatever the file claims."""
    if not content:
        raise _Refused("empty")
    if not content.startswith(_GZIP):
        raise _Refused("not_gzip")
    try:
        return b"".join(_members(content))
    except zlib.error as error:
        raise _Refused("corrupt_gzip") from error


def _members(rest: bytes) -> Iterator[bytes]:
    left = MAXIMUM_BYTES
    for _ in range(MAXIMUM_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        text = member.decompress(rest, left + 1)
        left -= len(text)
        if left < 0:
            raise _Refused("too_large")
        if not member.eof:
            raise _Refused("truncated")
        yield text
        rest = member.unused_data
        if not rest.startswith(_GZIP):
            return
    raise _Refused("too_many_gzip_members")


def _json(text: bytes) -> Any:
    if text.count(b"{") + text.count(b"[") > MAXIMUM_CONTAINERS:
        raise _Refused("too_many_json_values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Refused("not_json") from error


def _records(document: Any) -> list[Any]:
    """Digests and other JSON have no list of records."""
    records = document.get("Records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise _Refused("not_a_trail_file")
    return records
