"""Summary fields from cases: open cases, impact, candidates for heal, and the comparison."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from analytics.cases import CaseTimeline
from analytics.days import parse_week_days
from analytics.week_cases import (
    compare_fixed_and_untouched,
    count_urgent_notifications,
    find_candidates_for_heal,
    make_open_case_fields,
    make_picture_data,
    sum_harmed_messages,
)
from tests.analytics.builders import make_time
from tests.analytics.week_builders import DAYS, WEEK, make_incident, make_queue_arn, make_timeline

WEEK_DAYS = parse_week_days(WEEK)
HOW_IT_STANDS = {"backlog": 7, "oldest_age_seconds": 90}


def list_open_case_ids(*lives: CaseTimeline) -> list[str]:
    return [case["case_id"] for case in make_open_case_fields(lives, {})["open_now"]]


def test_open_cases_are_listed_only_if_they_wait_for_a_person_by_state_urgency_and_age() -> None:
    assert list_open_case_ids(
        make_timeline(("overridden", "11-01 09:00"), case_id="f"),
        make_timeline(("proposed", "11-02 09:00"), case_id="e"),
        make_timeline(("escalated", "11-03 09:00"), case_id="d"),
        make_timeline(("escalated", "11-05 09:00"), case_id="c", notified=(1,), urgent=True),
        make_timeline(("escalated", "11-04 09:00"), case_id="b", notified=(1,), urgent=True),
        *(
            make_timeline((state, "11-01 09:00"))
            for state in ("applied", "watching", "refused", "approved")
        ),
        make_timeline(("escalated", "11-01 09:00"), ("closed", "11-02 09:00"), urgent=True),
    ) == [*"bcdef"]


def test_open_case_shows_since_when_it_waits_its_next_step_and_its_queue_backlog() -> None:
    step = {"sentence": "Raise it.", "command": "aws", "runbook": 7, "more": "x"}
    states = ("proposed", "11-08 08:30"), ("escalated", "11-09 09:00"), ("escalated", "11-10 09:00")
    life_of = make_timeline(*states, code="over_ceiling", next_step=step)
    (listed,) = make_open_case_fields([life_of], {make_queue_arn("orders"): HOW_IT_STANDS})[
        "open_now"
    ]
    assert (listed["opened_at"], listed["since"]) == (
        "2026-11-08T08:30:00Z",
        "2026-11-09T09:00:00Z",
    )
    assert listed["next_step"] == {"sentence": "Raise it.", "command": "aws", "runbook": ""}
    assert {**listed, **HOW_IT_STANDS, "code": "over_ceiling", "urgent": False} == listed


def test_open_case_shows_no_backlog_next_step_or_code_if_they_are_unknown_or_malformed() -> None:
    timeline = make_timeline(("escalated", "11-09 09:00"), next_step=["x"], code=3)
    (unknown,) = make_open_case_fields([timeline], {})["open_now"]
    assert (unknown["backlog"], unknown["oldest_age_seconds"], unknown["code"]) == (None, None, "")
    assert set(unknown["next_step"].values()) == {""}


def test_open_case_carries_its_timeline_from_the_first_failed_call_to_its_newest_state() -> None:
    timeline = make_timeline(("applied", "11-08 08:30"), ("escalated", "11-09 09:00"))
    (listed,) = make_open_case_fields([timeline], {})["open_now"]
    assert [(point["state"], point["at"], point["says"]) for point in listed["timeline"]] == [
        ("first_failure", "2026-11-08T08:00:00Z", ""),
        ("evidence_complete", "2026-11-08T08:10:00Z", "3 failed calls"),
        ("applied", "2026-11-08T08:30:00Z", "VisibilityTimeout 30 -> 45"),
        ("escalated", "2026-11-09T09:00:00Z", ""),
    ]
    assert listed["visibility"] == []


def test_picture_of_a_case_shortens_the_needs_of_consumers_and_drops_malformed_ones() -> None:
    knows = make_timeline(("escalated", "11-09 09:00")).newest_transition
    needs = [{"what": "x" * 999, "seconds": 9}, {"what": "\ud800", "seconds": 1}, "y"]
    odd = replace(knows, evidence={**knows.evidence, "needs": needs}, steps=({}, *knows.steps))
    named = make_picture_data(CaseTimeline((odd,)))["visibility"]
    assert [len(bar["what"]) for bar in named] == [200, 6, 14, 13]


def test_picture_without_a_case_is_empty() -> None:
    assert make_picture_data(None) == {"timeline": [], "visibility": []}


def test_open_cases_beyond_50_are_counted_as_left_out() -> None:
    many = [make_timeline(("escalated", "11-10 09:00"), case_id=f"{n:02}") for n in range(53)]
    found = make_open_case_fields(many, {})
    assert (len(found["open_now"]), found["open_now_left_out"]) == (50, 3)


@pytest.mark.parametrize(
    ("when", "is_out"),
    [
        ("11-10 05:59", True), ("11-10 06:00", False), ("11-10 20:59", False),
        ("11-10 21:00", True), ("11-13 22:59", True), ("11-14 11:00", True),
        ("11-15 11:00", True), ("11-09 06:00", False),
    ],
)  # fmt: skip
def test_urgent_notification_at_night_or_on_a_weekend_of_the_time_zone_is_out_of_hours(
    when: str, is_out: bool
) -> None:
    paged = [make_timeline(("escalated", when), notified=(1,), urgent=True)]
    found = count_urgent_notifications(WEEK_DAYS, paged, ZoneInfo("Europe/Berlin"))
    assert found == {"urgent_notifications": 1, "out_of_hours": int(is_out)}


def test_urgent_notifications_of_a_week_exclude_other_weeks_and_notifications_not_urgent() -> None:
    states = [("escalated", f"11-{day} 12:00") for day in ("08", "09", "10", "16")]
    sent = make_timeline(*states, notified=(1, 2, 4), urgent=True)
    quiet = make_timeline(*states, notified=(1, 2, 4))
    found = count_urgent_notifications(WEEK_DAYS, [sent, quiet], ZoneInfo("UTC"))
    assert found == {"urgent_notifications": 1, "out_of_hours": 0}


def test_impact_sums_harmed_messages_of_cases_and_ignores_impossible_numbers() -> None:
    def make_case_with_messages(case_id: str, messages: object) -> CaseTimeline:
        evidence = {"first_at": "2026-11-09T09:00:00Z", "last_at": "2026-11-09T09:00:00Z"}
        return make_timeline(("closed", "11-10 09:00"), case_id=case_id,
                    evidence={**evidence, "messages": messages})  # fmt: skip

    odd: list[Any] = [-1, True, 1.5, "7", None, 10**13, [3]]
    known = [
        make_case_with_messages("a", {"delayed": 3, "dead": 0, "lost": odd[0]}),
        make_case_with_messages("b", {"delayed": 4, "other": 9}),
        make_case_with_messages("other week's", {"lost": 5}),
        *(
            make_case_with_messages(f"odd {n}", {"handled_twice": number})
            for n, number in enumerate(odd)
        ),
        *(make_case_with_messages(f"odd {n}", number) for n, number in enumerate(odd, len(odd))),
    ]
    cases = {timeline.newest_transition.case_id for timeline in known} - {"other week's"}
    assert sum_harmed_messages({*cases, None, "unknown"}, known) == {
        "delayed": 7, "handled_twice": None, "dead": 0, "lost": None,
    }  # fmt: skip


PROPOSED = ("proposed", "11-10 09:00")
APPROVED = ("approved", "11-10 10:00")
HELD = (("applied", "11-10 10:01"), ("verified", "11-10 11:00"), ("closed", "11-12 11:00"))


def make_answered_proposal(*states: tuple[str, str], **fields: Any) -> CaseTimeline:
    """Make a case that begins with a proposal and continues with `states`."""
    lived = make_timeline(PROPOSED, *states, **fields).transitions
    before = (None, *(transition.state for transition in lived))
    return CaseTimeline(
        tuple(
            replace(transition, came_from=came)
            for transition, came in zip(lived, before, strict=False)
        )
    )


def test_queue_with_five_approvals_and_an_unanswered_one_is_a_candidate_for_heal() -> None:
    lives = [make_answered_proposal(APPROVED, *HELD, case_id=f"{n}") for n in range(5)]
    unanswered = make_timeline(PROPOSED, ("expired", "11-11 09:00"), case_id="nobody")
    assert find_candidates_for_heal(WEEK_DAYS, [*lives, unanswered]) == [
        {"queue_arn": make_queue_arn("orders"), "symptom": "visibility_timeout_too_short",
         "approved": 5, "asked": 5, "kind": "consider_heal"}
    ]  # fmt: skip


def test_queue_with_four_approved_proposals_is_no_candidate_for_heal() -> None:
    lives = [make_answered_proposal(APPROVED, *HELD, case_id=f"{n}") for n in range(4)]
    assert find_candidates_for_heal(WEEK_DAYS, lives) == []


def test_rolled_back_proposal_of_another_queue_does_not_end_the_candidacy_for_heal() -> None:
    lives = [make_answered_proposal(APPROVED, *HELD, case_id=f"{n}") for n in range(5)]
    elsewhere = make_answered_proposal(APPROVED, ("rolled_back", "11-11 09:00"), queue="other")
    assert len(find_candidates_for_heal(WEEK_DAYS, [*lives, elsewhere])) == 1


@pytest.mark.parametrize("ending", ["rolled_back", "ineffective", "overridden", "expired"])
def test_approved_proposal_that_did_not_hold_ends_the_candidacy_for_heal(ending: str) -> None:
    lives = [make_answered_proposal(APPROVED, *HELD, case_id=f"{n}") for n in range(9)]
    assert len(find_candidates_for_heal(WEEK_DAYS, lives)) == 1
    failed_case = make_answered_proposal(APPROVED, (ending, "11-11 09:00"), case_id="failed")
    assert find_candidates_for_heal(WEEK_DAYS, [*lives, failed_case]) == []


def test_declined_proposal_ends_the_candidacy_for_heal() -> None:
    lives = [make_answered_proposal(APPROVED, *HELD, case_id=f"{n}") for n in range(9)]
    assert len(find_candidates_for_heal(WEEK_DAYS, lives)) == 1
    declined = make_answered_proposal(("declined", "11-10 10:00"), case_id="declined")
    assert find_candidates_for_heal(WEEK_DAYS, [*lives, declined]) == []


@pytest.mark.parametrize(("when", "counts"), [("08-17 00:00", True), ("08-16 23:59", False)])
def test_approvals_older_than_thirteen_weeks_do_not_count_for_heal(
    when: str, *, counts: bool
) -> None:
    lives = [make_answered_proposal(("approved", when), case_id=f"{n}") for n in range(5)]
    assert bool(find_candidates_for_heal(WEEK_DAYS, lives)) is counts


def make_failed_incident(day: int, minutes: int = 0, **fields: Any) -> dict[str, Any]:
    first = make_time(f"11-{day:02} 09:00") + timedelta(minutes=minutes)
    return make_incident(
        1,
        **{
            "first_failure": first,
            "last_failure": first + timedelta(seconds=60),
            "outcome": "observed",
            "seconds_to_heal": None,
            **fields,
        },
    )


def compare_incidents(*rows: dict[str, Any], days: Any = DAYS) -> list[Any]:
    by_day = {}
    for day in days:
        by_day[day] = [row for row in rows if row["first_failure"].date() == day]
    return [[*comparison.values()][1:] for comparison in compare_fixed_and_untouched(rows, by_day)]


def test_fixed_incidents_are_compared_with_untouched_incidents_that_recovered() -> None:
    fixed = [
        make_failed_incident(9, outcome=word, seconds_to_heal=40.0)
        for word in ("healed", "approved")
    ]
    left = [make_failed_incident(10, queue_arn=make_queue_arn(word), outcome=word)
            for word in ("observed", "proposed", "expired", "refused", "declined")]  # fmt: skip
    assert compare_incidents(*fixed, *left) == [[2, 40.0, 5, 5, 60.0]]


def test_incidents_that_wait_were_not_seen_or_were_found_by_a_scan_are_not_compared() -> None:
    others = [
        make_failed_incident(10, outcome=word) for word in ("escalated", "not_seen", "applied")
    ]
    assert compare_incidents(*others) == []
    assert compare_incidents(make_failed_incident(10, found_by="scan", failed_calls=0)) == []


@pytest.mark.parametrize(
    ("minutes", "over", "recovered"),
    [
        (24 * 60 + 1, {}, 0), (24 * 60 + 2, {}, 1),
        (60, {"queue_arn": make_queue_arn("other")}, 1), (60, {"symptom": "other"}, 1),
    ],
)  # fmt: skip
def test_untouched_incident_has_recovered_unless_its_queue_and_symptom_fail_again_within_a_day(
    minutes: int, over: dict[str, Any], recovered: int
) -> None:
    again = make_failed_incident(10, minutes, outcome="not_seen", **over)
    assert [
        comparison[2:4] for comparison in compare_incidents(make_failed_incident(10), again)
    ] == [[1, recovered]]


def test_untouched_incident_is_not_compared_if_the_day_after_was_not_read() -> None:
    assert compare_incidents(make_failed_incident(15)) == []
    assert compare_incidents(make_failed_incident(10), days=DAYS[:2]) == []
    assert compare_incidents(make_failed_incident(10), days=DAYS[:3]) == [[0, None, 1, 1, 60.0]]
