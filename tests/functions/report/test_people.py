from __future__ import annotations

from typing import Any

import pytest

from functions.report.names import plain
from functions.report.people import PersonRow, people, people_caption, swept
from functions.report.read_summary import read
from tests.functions.report import week_parts
from tests.functions.report.week_parts import paged, reached_a_person, without_newer
from tests.functions.report.weeks import summary, week

CLOSED: dict[str, Any] = {
    "ended_at": "2026-11-12T15:02:30Z",
    "seconds_open": 3600.0,
    "state": "closed",
}


def row(**fields: Any) -> PersonRow:
    return people(summary(reached_a_person=reached_a_person(paged(**fields))))[0]


def test_a_row_says_who_was_paged_why_and_for_how_long() -> None:
    assert row() == PersonRow(
        when="Thu 12 14:02",
        queue="invoices",
        place="",
        symptom="lease_expired",
        how="",
        why="the need of 1,380 s is above the ceiling of 900 s",
        state="escalated",
        how_long="3 d 15 h",
        case_id="lease_expired-0a1b2c3d4e5f",
        is_open=True,
    )


@pytest.mark.parametrize(
    ("fields", "how_long", "is_open"),
    [
        (CLOSED, "1 h", False),
        (CLOSED | {"seconds_open": None}, "1 h", False),
        ({}, "3 d 15 h", True),
        ({"opened_at": "2026-11-17T00:00:00Z"}, "0 s", True),
    ],
)
def test_an_open_case_is_open_until_the_report_is_made(
    fields: dict[str, Any], how_long: str, is_open: bool
) -> None:
    found = row(**fields)
    assert (found.how_long, found.is_open) == (how_long, is_open)


@pytest.mark.parametrize(
    ("fields", "how"),
    [
        ({}, ""),
        ({"pages": 3}, "3 pages"),
        ({"swept": True}, "found by a sweep"),
        ({"pages": 2, "swept": True}, "2 pages, found by a sweep"),
    ],
)
def test_how_it_came(fields: dict[str, Any], how: str) -> None:
    assert row(**fields).how == how


@pytest.mark.parametrize(
    ("cases", "left_out", "said"),
    [
        ([], 0, "Nobody was paged."),
        ([paged(**CLOSED)], 0, "1 case, 1 page; none is open."),
        ([paged(), paged(pages=2, **CLOSED)], 0, "2 cases, 3 pages; 1 is still open."),
        ([paged(), paged()], 0, "2 cases, 2 pages; 2 are still open."),
        ([paged(), paged()], 7, "9 cases paged a person; these are the first 2."),
    ],
)
def test_the_caption_counts(cases: list[Any], left_out: int, said: str) -> None:
    reached = reached_a_person(*cases, left_out=left_out)
    assert people_caption(summary(reached_a_person=reached)) == said


def test_without_the_cases_nobody_is_said_to_have_slept() -> None:
    older = read(without_newer(week()))
    assert people_caption(older) == "Mendq's cases were not read, so who was paged is not known."
    assert people(older) == ()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (week_parts.swept(), ""),
        (week_parts.swept(a=1), "Sweeps opened 1 case where no call failed: a (1); 0 healed."),
        (
            week_parts.swept(healed=2, paged=1, a=1, b=1_000),
            (
                "Sweeps opened 1,001 cases where no call failed: b (1,000) and a (1); "
                "2 healed, 1 paged a person."
            ),
        ),
        (
            week_parts.swept(**dict.fromkeys("abcdefgh", 1)),
            (
                "Sweeps opened 8 cases where no call failed: "
                "a (1), b (1), c (1), d (1), e (1), f (1) and 2 more; 0 healed."
            ),
        ),
    ],
)
def test_what_sweeps_found_is_counted(found: dict[str, Any], said: str) -> None:
    assert plain(swept(summary(swept=found))) == said
