"""summary.json, from rows to the document."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from analytics.iso_week import days_of, weeks_before
from analytics.week import Seen, summary
from analytics.week_rows import NightRows
from tests.analytics.authored import ACCOUNT, QUEUE_ARN, REGION, at

MADE_AT = datetime(2026, 11, 16, 6, tzinfo=UTC)
MONDAY = date(2026, 11, 9)


def incident(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "incident_id": f"i{number:03}",
        "account": ACCOUNT,
        "region": REGION,
        "queue_arn": QUEUE_ARN,
        "label": "lease_expired",
        "error_codes": ["MessageNotInflight"],
        "first_failure": at("11-09 09:00") + timedelta(seconds=number),
        "last_failure": at("11-09 10:00"),
        "failed_calls": 3,
        "principals": ["p"],
        "outcome": "healed",
        "why": None,
        "case_id": "c",
        "seconds_to_heal": 4.5,
        "paged": False,
        **fields,
    }


def file(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "file": name,
        "account": ACCOUNT,
        "region": REGION,
        "bytes": 100,
        "reason": None,
        "records": 10,
        "failed_calls": 1,
        "unreadable_records": [],
        **fields,
    }


def made(nights: dict[date, NightRows], **earlier: dict[date, NightRows]) -> dict[str, Any]:
    weeks = {week.replace("_", "-"): rows for week, rows in earlier.items()}
    return summary("2026-W46", Seen(nights, weeks), MADE_AT)


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


def test_a_week_without_nights_says_so_and_counts_nothing() -> None:
    document = made({})
    assert document["not_seen"]["nights_missing"] == [f"2026-11-{day:02}" for day in range(9, 16)]
    assert [row["date"] for row in document["per_day"]] == document["not_seen"]["nights_missing"]
    assert {row["label"] for row in document["per_day"]} == {None}
    assert document["totals"] == {
        "incidents": 0, "failed_calls": 0, "queues": 0, "healed": 0, "paged": 0,
        "median_seconds_to_heal": None, "healed_with_time": 0,
    }  # fmt: skip
    assert document["previous_weeks"] == document["cases"] == document["accounts"] == []


def test_a_week_is_counted() -> None:
    rows = [
        incident(1),
        incident(2, outcome="refused", paged=True, queue_arn="q2", failed_calls=1),
        incident(3, outcome="not_seen", label="unlabelled:Teapot", queue_arn="unresolved"),
    ]
    files = [file("a"), file("b", bytes=5, records=0, reason="truncated"), file("c", bytes=7)]
    document = made(
        {MONDAY: NightRows(rows, files), date(2026, 11, 11): NightRows([], [])},
        **{"2026_W44": {}, "2026_W45": {date(2026, 11, 2): NightRows([incident(9)], [])}},
    )
    assert document["schema"] == 1
    assert document["made_at"] == "2026-11-16T06:00:00Z"
    assert (document["from"], document["to"]) == ("2026-11-09", "2026-11-15")
    assert (document["accounts"], document["regions"]) == ([ACCOUNT], [REGION])
    assert document["totals"] == {
        "incidents": 3, "failed_calls": 7, "queues": 2, "healed": 1, "paged": 1,
        "median_seconds_to_heal": 4.5, "healed_with_time": 1,
    }  # fmt: skip
    assert document["by_outcome"] == {"healed": 1, "not_seen": 1, "refused": 1}
    assert document["by_label"] == {"lease_expired": 2, "unlabelled:Teapot": 1}
    assert document["per_day"][:3] == [
        {"date": "2026-11-09", "label": "lease_expired", "incidents": 2, "failed_calls": 4},
        {"date": "2026-11-09", "label": "unlabelled:Teapot", "incidents": 1, "failed_calls": 3},
        {"date": "2026-11-10", "label": None, "incidents": 0, "failed_calls": 0},
    ]
    assert document["previous_weeks"] == [
        {
            "week": "2026-W45", "incidents": 1, "failed_calls": 3, "healed": 1, "paged": 0,
            "median_seconds_to_heal": 4.5, "healed_with_time": 1,
        }
    ]  # fmt: skip
    nights = document["not_seen"].pop("nights")
    assert [each["verdict"] for each in nights] == ["read", *["missing"] * 6]
    assert nights[0]["records"] == 20
    assert document["not_seen"] == {
        "nights_missing": ["2026-11-10", *(f"2026-11-{day}" for day in range(12, 16))],
        "files_read": 2,
        "files_unreadable": 1,
        "bytes_read": 107,
        "bytes_unreadable": 5,
        "records_read": 20,
        "unlabelled": {"unlabelled:Teapot": 3},
        "unreadable_files": [{"file": "b", "reason": "truncated"}],
    }


def test_cases_are_worst_first_and_few() -> None:
    rows = [incident(number, failed_calls=number) for number in range(60)]
    rows[7] |= {"outcome": "escalated"}
    document = made({MONDAY: NightRows(rows, [])})
    assert [row["failed_calls"] for row in document["cases"][:3]] == [7, 59, 58]
    assert (len(document["cases"]), document["cases_left_out"]) == (50, 10)
    assert document["cases"][0]["first_failure"] == "2026-11-09T09:00:07Z"


def test_the_order_of_rows_changes_no_byte() -> None:
    rows = [incident(number) for number in range(5)]
    files = [file(f"f{number}", reason="empty") for number in range(25)]
    one = made({MONDAY: NightRows(rows, files)})
    other = made({MONDAY: NightRows(rows[::-1], files[::-1])})
    assert json.dumps(one) == json.dumps(other)
    assert len(one["not_seen"]["unreadable_files"]) == 20
    assert one["not_seen"]["files_unreadable"] == 25
