from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from mendq.nightly.jobs import Roots, nightly, week

ROOTS = Roots("s3://trail", "s3://cases", "s3://out")
AT = datetime(2026, 11, 16, 2, 0, tzinfo=UTC)


def test_a_nightly_is_yesterday_and_the_day_before_once_more() -> None:
    assert nightly(AT, ROOTS).arguments == (
        "backfill",
        *("--from", "2026-11-14", "--to", "2026-11-15"),
        *("--trail", "s3://trail", "--cases", "s3://cases", "--out", "s3://out"),
    )
    assert nightly(AT, ROOTS).name == "nightly-2026-11-15"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (datetime(2026, 11, 16, 6, tzinfo=UTC), "2026-W46"),
        (datetime(2027, 1, 4, 6, tzinfo=UTC), "2026-W53"),
        (datetime(2024, 12, 30, 6, tzinfo=UTC), "2024-W52"),
    ],
)
def test_a_week_is_the_last_whole_one(at: datetime, expected: str) -> None:
    scheduled = ("--scheduled-at", f"{at:%Y-%m-%dT%H:%M:%S.000Z}")
    assert week(at, ROOTS).arguments[:5] == ("weekly", "--week", expected, *scheduled)
    assert week(at, ROOTS).name == f"week-{expected}"


def test_a_token_is_legal_and_the_same_for_the_same_time_alone() -> None:
    token = nightly(AT, ROOTS).client_token(AT)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", token)
    assert token == nightly(AT, ROOTS).client_token(AT)
    later = AT + timedelta(hours=1)
    assert nightly(later, ROOTS).client_token(later) != token
    assert week(AT, ROOTS).client_token(AT) != token
