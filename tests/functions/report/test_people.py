from __future__ import annotations

from typing import Any

import pytest

from functions.healing.states import State
from functions.report.read_summary import read
from functions.report.tables import STATES, PersonRow, people, people_caption, swept
from functions.report.words import plain
from tests.functions.report import week_parts
from tests.functions.report.week_parts import paged, reached_a_person, without_newer
from tests.functions.report.weeks import summary, week

CLOSED: dict[str, Any] = {
    "ended_at": "2026-11-12T15:02:30Z",
    "seconds_open": 3600.0,
    "state": "closed",
}

AT_ONCE: dict[str, Any] = {"ended_at": "2026-11-12T14:02:30Z", "seconds_open": 0.0}
PAGE = "A page is any message to a person, urgent or not."


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
        state="left to a person",
        lasted="open for 3 d 15 h",
        case_id="lease_expired-0a1b2c3d4e5f",
    )


@pytest.mark.parametrize(
    ("fields", "lasted"),
    [
        (CLOSED, "after 1 h"),
        (CLOSED | {"seconds_open": None}, "after 1 h"),
        (CLOSED | {"state": "rolled_back"}, "after 1 h"),
        (AT_ONCE | {"state": "refused"}, ""),
        (AT_ONCE | {"state": "declined"}, ""),
        ({}, "open for 3 d 15 h"),
        ({"opened_at": "2026-11-17T00:00:00Z"}, "open for 0 s"),
    ],
)
def test_an_open_case_is_open_until_the_report_is_made(fields: dict[str, Any], lasted: str) -> None:
    assert row(**fields).lasted == lasted


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("observed", "Mendq only observed and left it as it was"),
        ("refused", "Mendq left it as it was"),
        ("proposed", "waiting for approval"),
        ("approved", "approved, not carried out yet"),
        ("declined", "declined, left as it was"),
        ("expired", "nobody answered, left as it was"),
        ("applied", "changed but not verified yet"),
        ("applied_unproven", "changed, without a proof yet"),
        ("verified", "changed and verified"),
        ("watching", "changed, verified and watched"),
        ("closed", "closed"),
        ("ineffective", "changed without effect"),
        ("contested", "left to whoever changed it back"),
        ("escalated", "left to a person"),
        ("rolled_back", "rolled back"),
        ("a_new_state", "a new state"),
    ],
)
def test_a_state_says_what_became_of_the_queue(state: str, said: str) -> None:
    assert row(state=state).state == said


def test_every_state_has_words() -> None:
    assert {*map(str, State)} <= set(STATES)


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
        ([paged(**CLOSED)], 0, f"1 case, 1 page: 1 closed. {PAGE}"),
        (
            [paged(**AT_ONCE | {"state": each}) for each in ("refused", "expired", "observed")],
            0,
            f"3 cases, 3 pages: 3 left as it was. {PAGE}",
        ),
        (
            [paged(), paged(pages=2, **CLOSED), paged(**CLOSED | {"state": "rolled_back"})],
            0,
            f"3 cases, 4 pages: 1 still open, 1 closed and 1 rolled back. {PAGE}",
        ),
        ([paged(), paged()], 0, f"2 cases, 2 pages: 2 still open. {PAGE}"),
        ([paged(), paged()], 7, f"9 cases paged a person; these are the first 2. {PAGE}"),
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
