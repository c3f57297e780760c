"""Since when a trail is active, whatever folders lie in it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from analytics.storage import FolderStorage
from analytics.trail import began

REGION = "AWSLogs/123456789012/CloudTrail/us-east-1"
JUNK = (
    "99999999999999999999/01/01",
    "9" * 200 + "/01/01",
    "0001/01/01",
    "9999/12/31",
    "10000/01/01",
    "x/y/z",
    "\N{FULLWIDTH DIGIT TWO}025/01/01",
    "2026/00/01",
    "2026/01/99999999999999999999",
    "2026/02/30",
)


def _with(folder: Path, *days: str) -> FolderStorage:
    for each in days:
        (folder / REGION / each).mkdir(parents=True)
    return FolderStorage(str(folder))


@pytest.mark.parametrize("junk", JUNK)
def test_a_folder_that_is_no_day_began_no_trail(tmp_path: Path, junk: str) -> None:
    assert began(_with(tmp_path, junk)) is None
    assert began(_with(tmp_path, "2026/11/10")) == date(2026, 11, 10)


def test_a_trail_begins_with_its_first_day(tmp_path: Path) -> None:
    assert began(_with(tmp_path, "2026/11/10", "2025/12/31", *JUNK)) == date(2025, 12, 31)
