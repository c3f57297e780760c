"""A trail's failed calls, read the slow way: one file after another."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mendq.model.failed_call import FailedCall, read

LARGEST_BYTES = 50_000_000
LOG_FILE = re.compile(
    r"AWSLogs/(?:o-[a-z0-9]+/)?(?P<account>\d{12})/CloudTrail/(?P<region>[a-z0-9-]+)/\d{4}/\d\d/\d\d/"
    r"(?P<name>[^/]+\.json\.gz)"
)
OUR_PARTS = (
    "approve", "attach-dlq", "deliver-report", "follow-up", "heal", "nightly", "probe",
    "redrive", "restore-policy", "rollback", "schedule", "start-nightly", "scan", "watch-nightly",
)  # fmt: skip


def read_failed_calls(trail: Path, home: tuple[str, str] | None = None) -> list[FailedCall]:
    """One per eventID, the first by file name; our own roles' left out.

    Where `home` is given, those of that account and region alone, by folder and by record.
    """
    first: dict[str, FailedCall] = {}
    for path in sorted(list_log_files(trail, home), key=lambda path: (path.name, path.as_posix())):
        for record in read_records(path.read_bytes()):
            call = read(record)
            if isinstance(call, FailedCall) and home in (None, (call.account, call.region)):
                first.setdefault(call.event_id, call)
    return [call for call in first.values() if not is_our_own(call)]


def list_log_files(trail: Path, home: tuple[str, str] | None) -> Iterator[Path]:
    for path in trail.rglob("*"):
        found = LOG_FILE.fullmatch(path.relative_to(trail).as_posix())
        if not found or found["name"].startswith((".", "_")):
            continue
        if home in (None, (found["account"], found["region"])):
            yield path


def read_records(content: bytes) -> list[Any]:
    """Return the records of a trail file, or none if it is unreadable."""
    try:
        document = json.loads(_inflate(content))
    except (ValueError, zlib.error, RecursionError):
        return []
    found = document.get("Records") if isinstance(document, dict) else None
    return found if isinstance(found, list) else []


def _inflate(content: bytes) -> bytes:
    """Decompress all complete gzip members, up to 50 MB."""
    text = b""
    rest = content
    while rest.startswith(b"\x1f\x8b") or not text:
        inflating = zlib.decompressobj(wbits=31)
        text += inflating.decompress(rest, LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES or not inflating.eof:
            raise ValueError
        rest = inflating.unused_data
    return text


def is_our_own(call: FailedCall) -> bool:
    """Each account and region has its own Mendq, whose roles carry the region in their names."""
    ours = {f"arn:aws:iam::{call.account}:role/mendq-{part}-{call.region}" for part in OUR_PARTS}
    return call.principal_arn in ours
