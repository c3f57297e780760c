"""The exit codes that schedulers and people act on; the nightly runs themselves are in
test_nightly.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from analytics import job
from analytics.days import Days
from analytics.nightly import Written
from analytics.storage import FolderStorage
from mendq.nightly.verdict import NATIVE, NightlyRead

DAY = date(2026, 11, 10)
NOW = datetime(2026, 11, 11, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unreadable", "code"), [(0, 0), (1_000, 0), (1_001, 3), (50_000, 3), (100_000, 3)]
)
def test_more_than_one_per_cent_of_the_bytes_unreadable_is_said(
    tmp_path: Path, unreadable: int, code: int
) -> None:
    nightly = NightlyRead(DAY, NOW, NATIVE, "", bytes=100_000, bytes_unreadable=unreadable)
    written = Written((nightly,))
    assert job._code(written, FolderStorage(str(tmp_path)), Days(DAY, DAY)) == code
