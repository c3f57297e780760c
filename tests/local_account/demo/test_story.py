"""What a story is made of, so that it shows what it says, and the days of its jobs."""

from __future__ import annotations

from datetime import datetime

import pytest

from local_account.demo.nightly import monday_after, next_day
from mendq.nightly.jobs import Roots, nightly, week


@pytest.mark.parametrize(
    ("moment", "day", "iso_week"),
    [
        ("2026-11-22T23:59:59+00:00", "2026-11-22", "2026-W47"),
        ("2026-11-23T00:30:00+01:00", "2026-11-22", "2026-W47"),
        ("2027-01-03T12:00:00+00:00", "2027-01-03", "2026-W53"),
    ],
)
def test_the_jobs_are_for_the_storys_own_day_and_week(moment: str, day: str, iso_week: str) -> None:
    at, roots = datetime.fromisoformat(moment), Roots("trail", "cases", "out", "a", "r")
    assert nightly(next_day(at), roots).of == day
    assert week(monday_after(at), roots).of == iso_week
