"""A whole scene on disk: hostile days of a trail, and the cases of the time."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random

from tests.analytics.recount.hostile_callers import ACCOUNTS, REGIONS, Place
from tests.analytics.recount.hostile_calls import (
    DAYS,
    Publication,
    get_midnight,
    make_hostile_calls,
)
from tests.analytics.recount.hostile_cases import write_cases
from tests.analytics.recount.hostile_contents import (
    NEIGHBOURS,
    make_odd_files,
    make_unreadable_files,
)
from tests.analytics.recount.hostile_files import make_folder_path, write_trail
from tests.analytics.recount.hostile_records import ERRORS, make_failed_call
from tests.analytics.recount.hostile_scans import write_scans

FIRST_DAYS = (date(2026, 11, 10), date(2025, 12, 30), date(2024, 2, 28), date(2026, 3, 30))


@dataclass(frozen=True)
class RecountScene:
    trail: Path
    cases: Path
    days: tuple[date, ...]
    files: int

    @property
    def findings(self) -> Path:
        """Beside the cases, as in the case bucket."""
        return self.cases.parent / "findings"


@dataclass(frozen=True)
class SceneSize:
    """The size of a scene. A chain of more than 96 calls lasts longer than a day."""

    bursts: int
    chained: int
    records_of_largest_file: int


def write_scene(root: Path, seed: int, size: SceneSize) -> RecountScene:
    """Write one: the same seed and size write the same bytes."""
    random = Random(seed)  # noqa: S311 - the same hostile days again, no secret
    first_day = FIRST_DAYS[seed % len(FIRST_DAYS)]
    trail = root / "trail"
    cases = root / "cases"
    calls = make_hostile_calls(random, first_day, size.bursts, size.chained)
    calls += write_cases(random, cases, first_day)
    files = write_trail(random, trail, calls, size.records_of_largest_file)
    files += write_odd_files(random, trail, first_day)
    write_scans(random, root / "findings", first_day, list_queue_arns(calls))
    return RecountScene(
        trail, cases, tuple(first_day + timedelta(days=n) for n in range(DAYS)), files
    )


def list_queue_arns(calls: list[Publication]) -> list[str]:
    """Return the queue ARNs that the records name."""
    found = (re.search(r"arn:aws:sqs:[^\"]+", json.dumps(call.record)) for call in calls)
    return sorted({match[0] for match in found if match})


def write_odd_files(random: Random, trail: Path, first_day: date) -> int:
    """Write unreadable files, unusual but readable files, and files in neighbouring folders."""
    second = f"{first_day + timedelta(days=1):%Y/%m/%d}"
    account = ACCOUNTS[0]
    region = REGIONS[0]

    def text(queue: str) -> bytes:
        when = get_midnight(first_day) + timedelta(hours=random.randrange(25, 47))
        made = [
            make_failed_call(random, Place(account, region, queue), ERRORS[0], when)
            for _ in range(3)
        ]
        return json.dumps({"Records": made}).encode()

    here = make_folder_path(trail, account, region, second)
    written = {
        here / name: content for name, content in make_unreadable_files(text("unreadable")).items()
    }
    texts = [text(f"odd-{number}") for number in range(10)]
    written |= {here / name: content for name, content in make_odd_files(texts).items()}
    for kind in NEIGHBOURS:
        beside = make_folder_path(trail, account, region, second, kind)
        name = f"{account}_{kind}_{region}_20240101T0000Z_x.json.gz"
        written[beside / name] = gzip.compress(text("beside"), mtime=0)
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return len(written)
