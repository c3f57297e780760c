"""Queue listings of the scans, read as docs/incidents.md describes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

NEAR = timedelta(hours=2)
LATER = timedelta(days=7)


@dataclass(frozen=True)
class ScanList:
    """The queue listing of a scan. `whole` is true if it has every managed queue."""

    at: datetime
    managed: frozenset[str]
    whole: bool


def read_scans(root: Path) -> list[ScanList]:
    """Return the listings in order of time, without malformed ones."""
    read = [_read_scan(path) for path in root.glob("dt=????-??-??/*.json")]
    return sorted((scan for scan in read if scan), key=lambda scan: scan.at)


def _read_scan(path: Path) -> ScanList | None:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return None
    if not isinstance(found.get("managed"), list):
        return None
    managed = frozenset(found["managed"])
    return ScanList(datetime.fromisoformat(found["at"]), managed, found["managed_whole"] is True)


def judge_management(
    rounds: list[ScanList], queue: str, first: datetime, last: datetime
) -> str | None:
    """Return managed, not_managed or not_tagged_in_time, or None if no scan proves any of them."""
    before = _select_whole(rounds, first - NEAR, first)
    after = _select_whole(rounds, last, last + NEAR)
    if not before or not after:
        return None
    since = before[-1].at
    until = after[0].at
    if queue in before[-1].managed and queue in after[0].managed:
        return "managed"
    if _is_listed(queue, [scan for scan in rounds if since <= scan.at <= until]):
        return None
    later = [scan for scan in rounds if last < scan.at <= last + LATER]
    return "not_tagged_in_time" if _is_listed(queue, later) else "not_managed"


def _select_whole(rounds: list[ScanList], since: datetime, until: datetime) -> list[ScanList]:
    return [scan for scan in rounds if scan.whole and since <= scan.at <= until]


def _is_listed(queue: str, scan_lists: list[ScanList]) -> bool:
    return any(queue in scan.managed for scan in scan_lists)
