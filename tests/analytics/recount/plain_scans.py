"""What the scans beside the cases say of a queue, by docs/incidents.md."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

NEAR = timedelta(hours=2)
LATER = timedelta(days=7)


@dataclass(frozen=True)
class Round:
    """One scan's list; `whole` where every managed queue is on it."""

    at: datetime
    managed: frozenset[str]
    whole: bool


def scans(root: Path) -> list[Round]:
    """By time; what is no list is passed over."""
    read = [_round(path) for path in root.glob("dt=????-??-??/*.json")]
    return sorted((scan for scan in read if scan), key=lambda scan: scan.at)


def _round(path: Path) -> Round | None:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return None
    if not isinstance(found.get("managed"), list):
        return None
    managed = frozenset(found["managed"])
    return Round(datetime.fromisoformat(found["at"]), managed, found["managed_whole"] is True)


def announced(rounds: list[Round], queue: str, first: datetime, last: datetime) -> str | None:
    """managed, not_managed or not_tagged_in_time; None where the scans around tell nothing."""
    before = [scan for scan in rounds if scan.whole and first - NEAR <= scan.at <= first]
    after = [scan for scan in rounds if scan.whole and last <= scan.at <= last + NEAR]
    if not before or not after:
        return None
    since, until = before[-1].at, after[0].at
    if queue in before[-1].managed and queue in after[0].managed:
        return "managed"
    if any(queue in scan.managed for scan in rounds if since <= scan.at <= until):
        return None
    later = [scan for scan in rounds if last < scan.at <= last + LATER]
    return "not_tagged_in_time" if any(queue in scan.managed for scan in later) else "not_managed"
