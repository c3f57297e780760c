"""What a case leaves to people, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analytics.cases import Life
from analytics.days import days_of
from analytics.recommendations import recommendations_of_cases
from mendq.model.case import State
from mendq.model.lifecycle import GONE, UNMANAGED
from mendq.model.steps import CreateDlq, RedriveMessages
from tests.analytics.week_authored import WEEK, arn, life

VERIFIED = ("verified", "11-10 09:30")


def kinds(*lives: Life) -> list[str]:
    return [each.kind for each in recommendations_of_cases(days_of(WEEK), lives)]


def announced(*lives: Life) -> list[tuple[str, str, str]]:
    found = recommendations_of_cases(days_of(WEEK), lives)
    return [(each.kind, each.attribute, each.after) for each in found]


BY_STATE = {
    State.VERIFIED: "write_into_template",
    State.WATCHING: "write_into_template",
    State.PROPOSED: "approve",
    State.OVERRIDDEN: "decide",
    State.OBSERVED: "fix",
    State.REFUSED: "fix",
    State.EXPIRED: "fix",
    State.INEFFECTIVE: "fix",
    State.ESCALATED: "fix",
    State.APPLIED: "watch",
    State.UNVERIFIED: "watch",
}


@pytest.mark.parametrize("state", list(State))
def test_each_state_asks_for_one_thing_or_none(state: State) -> None:
    expected = [BY_STATE[state]] if state in BY_STATE else []
    found = recommendations_of_cases(days_of(WEEK), [life((state, "11-10 09:00"))])
    assert [each.kind for each in found] == expected
    why = {"write_into_template": "verified", "watch": "applied"}
    assert all(each.why == why.get(each.kind, state) for each in found)


@pytest.mark.parametrize(
    ("came_from", "reason", "expected"),
    [
        ("watching", "it stayed away", ["write_into_template"]),
        ("watching", GONE, []),
        ("watching", UNMANAGED, []),
        ("unverified", "for a week nothing proved it", []),
        ("escalated", "a person closed it", []),
        ("overridden", "a person closed it", []),
    ],
)
def test_a_closed_case_asks_only_where_its_change_was_watched(
    came_from: str, reason: str, expected: list[str]
) -> None:
    assert kinds(life(("closed", "11-12 09:00", reason), came_from=came_from)) == expected


def test_a_change_that_is_not_verified_yet_is_to_be_watched() -> None:
    older = life(("verified", "11-10 09:00"), case_id="a")
    applied = life(
        ("applied", "11-12 09:00"), case_id="b", steps=[("VisibilityTimeout", "45", "67")]
    )
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [older, applied])
    assert (recommendation.kind, recommendation.why, recommendation.command) == (
        "watch", "applied", "mendq show b --region us-east-1",
    )  # fmt: skip
    assert (recommendation.attribute, recommendation.before, recommendation.after) == (
        "VisibilityTimeout",
        "45",
        "67",
    )


def test_what_was_applied_and_left_nothing_in_the_queue_is_not_watched() -> None:
    step = (RedriveMessages.attribute, "held", arn("orders"))
    assert kinds(life(("applied", "11-12 09:00"), steps=[step])) == []


def test_a_recommendation_says_what_the_case_says() -> None:
    case = life(
        ("applied", "11-10 09:00", "its consumer may take 38 s"),
        ("verified", "11-10 09:30", "it did not show again"),
    )
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [case])
    assert (recommendation.queue_arn, recommendation.symptom, recommendation.why) == (
        arn("orders"),
        "visibility_timeout_too_short",
        "verified",
    )
    assert (recommendation.attribute, recommendation.before, recommendation.after) == (
        "VisibilityTimeout",
        "30",
        "45",
    )
    assert recommendation.command == f"mendq show {case.newest.case_id} --region us-east-1"
    assert recommendation.reason == "it did not show again"
    assert recommendation.remedy.startswith("Raise VisibilityTimeout")
    assert recommendation.document()["template_line"] == "VisibilityTimeout: 45"
    assert recommendation.owner == ""


@pytest.mark.parametrize(
    ("evidence", "owner"),
    [
        ({"stack": "shop", "resource": "Orders"}, "CloudFormation stack shop, Orders"),
        ({"stack": "shop"}, "CloudFormation stack shop"),
        ({"resource": "Orders"}, ""),
        ({"stack": "", "resource": "Orders"}, ""),
        ({"stack": ["shop"], "resource": 7}, ""),
    ],
)
def test_the_owner_is_the_stack_that_deploys_the_queue(
    evidence: dict[str, Any], owner: str
) -> None:
    case = life(("observed", "11-10 09:00")).newest
    known = replace(case, evidence={**case.evidence, **evidence})
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [Life((known,))])
    assert recommendation.owner == owner


def test_what_is_proposed_is_approved_by_its_command() -> None:
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [life(("proposed", "11-10 09:00"))])
    assert (
        recommendation.command
        == "mendq approve visibility_timeout_too_short-0123456789ab --region us-east-1"
    )


def test_the_template_says_what_stood_there_before_the_first_step() -> None:
    first = life(("applied", "11-10 09:00"), ("ineffective", "11-10 10:00"))
    second = life(
        ("applied", "11-10 10:01"),
        ("verified", "11-10 11:00"),
        first_n=3,
        steps=[("VisibilityTimeout", "45", "67")],
    )
    case = Life((*first.transitions, *second.transitions))
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [case])
    assert (recommendation.before, recommendation.after) == ("30", "67")


@pytest.mark.parametrize(("came_from", "theirs"), [(None, "30"), ("applied", ""), ("verified", "")])
def test_a_person_s_value_is_named_only_where_a_case_knows_it(
    came_from: str | None, theirs: str
) -> None:
    case = life(("overridden", "11-10 09:00"), came_from=came_from)
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [case])
    assert (recommendation.before, recommendation.after) == (theirs, "45")


def test_each_attribute_of_a_case_is_a_recommendation() -> None:
    steps = [
        ("DeduplicationScope", "queue", "messageGroup"),
        ("FifoThroughputLimit", "perQueue", "perMessageGroupId"),
    ]
    assert announced(life(("proposed", "11-10 09:00"), steps=steps)) == [
        ("approve", "DeduplicationScope", "messageGroup"),
        ("approve", "FifoThroughputLimit", "perMessageGroupId"),
    ]


def test_a_queue_that_was_made_is_not_written_into_a_template() -> None:
    attach = ("RedrivePolicy", "", '{"maxReceiveCount":5}')
    made = (CreateDlq.attribute, "", arn("orders-dlq"))
    assert [each[1] for each in announced(life(VERIFIED, steps=[made, attach]))] == [
        "RedrivePolicy"
    ]
    assert announced(life(VERIFIED, steps=[made])) == []


def test_messages_that_may_go_back_are_to_be_approved_and_leave_nothing() -> None:
    step = (RedriveMessages.attribute, "held", arn("orders"))
    case: dict[str, Any] = {"steps": [step], "symptom": "dlq_messages_waiting"}
    assert kinds(life(("proposed", "11-10 09:00"), **case)) == ["approve"]
    assert kinds(life(VERIFIED, **case)) == []


def test_the_newest_case_of_an_attribute_wins() -> None:
    older = life(("verified", "11-10 09:00"), case_id="a")
    newer = life(
        ("proposed", "11-12 09:00"), case_id="b", steps=[("VisibilityTimeout", "45", "67")]
    )
    assert announced(newer, older) == [("approve", "VisibilityTimeout", "67")]


def test_what_another_symptom_proposes_for_the_attribute_wins_as_well() -> None:
    older = life(("observed", "11-10 09:00"), case_id="a")
    newer = life(
        ("proposed", "11-12 09:00"),
        case_id="b",
        symptom="in_flight_limit",
        steps=[("VisibilityTimeout", "45", "30")],
    )
    assert announced(older, newer) == [("approve", "VisibilityTimeout", "30")]


def test_what_was_fixed_stays_to_be_written_where_more_is_wrong() -> None:
    fixed = life(("verified", "11-10 09:00"), case_id="a")
    refused = life(("refused", "11-12 09:00", "over the ceiling"), case_id="b", steps=[])
    assert announced(fixed, refused) == [
        ("write_into_template", "VisibilityTimeout", "45"),
        ("fix", "", ""),
    ]


@pytest.mark.parametrize("state", ["escalated", "refused", "proposed", "overridden"])
def test_what_has_healed_since_is_not_asked_again(state: str) -> None:
    older = life((state, "11-10 09:00"), case_id="a", steps=[])
    assert kinds(older, life(("verified", "11-12 09:00"), case_id="b")) == ["write_into_template"]


def test_what_was_declined_does_not_come_again_and_takes_nothing_away() -> None:
    fixed = life(("verified", "11-10 09:00"), case_id="a")
    declined = life(
        ("proposed", "11-12 09:00"),
        ("declined", "11-12 10:00"),
        case_id="b",
        steps=[("VisibilityTimeout", "45", "67")],
    )
    assert kinds(declined) == []
    assert announced(fixed, declined) == [("write_into_template", "VisibilityTimeout", "45")]
    asked_before = life(("observed", "11-10 09:00"), case_id="a")
    assert kinds(asked_before, declined) == []


def test_what_was_rolled_back_does_not_come_again() -> None:
    rolled_back = life(("verified", "11-10 09:00"), ("rolled_back", "11-12 10:00"))
    assert kinds(rolled_back) == []
    again = life(("verified", "11-11 09:00"), ("rolled_back", "11-12 10:00"), case_id="b")
    assert kinds(life(("verified", "11-10 09:00"), case_id="a"), again) == []


def test_a_queue_that_is_gone_asks_for_nothing() -> None:
    fixed = life(("verified", "11-10 09:00"), case_id="a")
    gone = life(("closed", "11-12 09:00", GONE), case_id="b", came_from="escalated", steps=[])
    assert kinds(fixed, gone) == []
    elsewhere = life(("verified", "11-10 09:00"), case_id="c", queue="invoices")
    assert kinds(fixed, gone, elsewhere) == ["write_into_template"]
    made_again = life(("observed", "11-13 09:00"), case_id="d")
    assert kinds(fixed, gone, made_again) == ["fix"]


def test_a_queue_that_callers_miss_asks_for_itself_alone() -> None:
    fixed = life(("verified", "11-10 09:00"), case_id="a")
    missing = life(("escalated", "11-12 09:00"), case_id="b", symptom="queue_missing", steps=[])
    (recommendation,) = recommendations_of_cases(days_of(WEEK), [fixed, missing])
    assert (recommendation.kind, recommendation.symptom) == ("fix", "queue_missing")


def test_a_case_that_did_not_move_this_week_asks_for_nothing() -> None:
    assert kinds(life(("proposed", "11-08 23:59:59"))) == []
    assert kinds(life(("proposed", "11-16 00:00"))) == []
    assert kinds(life(("applied", "11-08 09:00"), ("verified", "11-09 00:00"))) == [
        "write_into_template"
    ]


def test_what_came_since_the_week_counts() -> None:
    since = life(("proposed", "11-12 09:00"), ("declined", "11-16 08:00"))
    assert kinds(since) == []


@pytest.mark.parametrize(
    "fields", [{"queue": "x; rm -rf ~"}, {"case_id": "a\nb"}, {"case_id": "x" * 2_000}]
)
def test_no_command_where_it_could_not_be_shown_whole(fields: dict[str, Any]) -> None:
    (recommendation,) = recommendations_of_cases(
        days_of(WEEK), [life(("escalated", "11-10 09:00"), **fields)]
    )
    assert recommendation.command == ""
