"""Scans' lists of managed queues: for a part of the time, with gaps, and some not whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from tests.analytics.recount.hostile_calls import get_midnight

HOURS = range(14, 52)
MISSING_HOURS = frozenset({20, 30, 31})


def write_scans(random: Random, root: Path, first_day: date, arns: Sequence[str]) -> None:
    """A round an hour from the first afternoon on; queues managed from some hour to another."""
    since = {arn: random.choice([0, 0, random.choice(HOURS), 200]) for arn in arns}
    until = {arn: random.choice([100, 100, random.choice(HOURS)]) for arn in arns}
    for hour in (*HOURS, 120, 190):
        if hour not in MISSING_HOURS:
            managed = [arn for arn in arns if since[arn] <= hour < until[arn] or hour == 120]
            at = get_midnight(first_day) + timedelta(hours=hour, seconds=random.randrange(600))
            write_scan(root, at, {"managed": managed, "managed_whole": random.random() < 0.9})
    write_scan(
        root,
        get_midnight(first_day) + timedelta(hours=30),
        {"managed": "all", "managed_whole": "yes"},
    )
    (root / f"dt={first_day}" / "half.json").write_text('{"schema": 1, "managed": [')


def write_scan(root: Path, at: datetime, listed: dict[str, Any]) -> None:
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    path = root / f"dt={at.date()}" / f"{at:%H}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "at": text, "findings": [], **listed}))
