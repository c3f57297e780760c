from __future__ import annotations

from datetime import date

import pytest

from analytics.days import days_of, weeks_before

MONDAY = date(2026, 11, 9)


@pytest.mark.parametrize(
    "week",
    [
        "",
        "46",
        "2026-46",
        "2026-W00",
        "2026-W54",
        "2026-W4",
        "26-W46",
        "2026-W4x",
        "2026-W٤٦",
        "+026-W46",
        "0001-W01",
        "9999-W52",
    ],
)
def test_no_such_week(week: str) -> None:
    with pytest.raises(ValueError):
        days_of(week)


def test_weeks_begin_on_monday_and_cross_years() -> None:
    assert (days_of("2026-W46").first, days_of("2026-W46").last) == (MONDAY, date(2026, 11, 15))
    assert weeks_before("2027-W02") == ["2026-W51", "2026-W52", "2026-W53", "2027-W01"]
