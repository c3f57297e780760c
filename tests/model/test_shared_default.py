"""The cases of a shared default: when the others may follow the first, and what stops them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.case import Case
from mendq.model.limits import Timing
from mendq.model.shared_default import SharedCases, SharedDefault, read_shared_default
from mendq.model.state import State

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ARNS = tuple(f"arn:aws:sqs:us-east-1:123456789012:{name}" for name in "abcd")
SHARED_DEFAULT = SharedDefault("first", "MessageRetentionPeriod", ARNS)


def make_case(state: State, came_from: State | None, case_id: str = "first") -> Case:
    """Return a case of the shared default after a transition."""
    return Case(
        case_id,
        3,
        NOW,
        came_from,
        state,
        ARNS[0],
        "dlq_retention_too_short",
        "it came to that",
        {"failed_calls": 0, "shared_default": SHARED_DEFAULT.document()},
        (),
        "follow_up",
    )


@pytest.mark.parametrize(
    ("state", "came_from"),
    [
        (State.VERIFIED, State.APPLIED),
        (State.WATCHING, State.VERIFIED),
        (State.CLOSED, State.WATCHING),
    ],
)
def test_others_may_follow_a_first_case_that_was_verified(state: State, came_from: State) -> None:
    shared_cases = SharedCases(make_case(state, came_from))
    assert shared_cases.is_first_verified
    assert shared_cases.describe_stop(follows_first=True) == ""


@pytest.mark.parametrize("state", [State.PROPOSED, State.APPROVED, State.APPLIED, State.UNVERIFIED])
def test_others_wait_while_the_first_case_may_still_be_verified(state: State) -> None:
    shared_cases = SharedCases(make_case(state, State.APPLIED))
    assert not shared_cases.is_first_verified
    assert shared_cases.describe_stop(follows_first=True) == ""


@pytest.mark.parametrize(
    ("state", "came_from"),
    [
        (State.CLOSED, State.UNVERIFIED),
        (State.CLOSED, State.APPLIED),
        (State.DECLINED, State.APPROVED),
        (State.EXPIRED, State.APPROVED),
        (State.OVERRIDDEN, State.APPLIED),
        (State.ESCALATED, State.WATCHING),
        (State.INEFFECTIVE, State.APPLIED),
        (State.ROLLED_BACK, State.WATCHING),
    ],
)
def test_others_are_stopped_if_the_first_case_can_no_longer_be_verified(
    state: State, came_from: State
) -> None:
    shared_cases = SharedCases(make_case(state, came_from))
    assert not shared_cases.is_first_verified
    assert f"case first of {ARNS[0]} is {state}" == shared_cases.describe_stop(follows_first=True)


def test_others_are_stopped_if_the_first_case_is_gone() -> None:
    assert "not there any more" in SharedCases(None).describe_stop(follows_first=True)


@pytest.mark.parametrize(
    ("state", "came_from", "is_stopped"),
    [
        (State.ESCALATED, State.APPLIED, True),
        (State.INEFFECTIVE, State.WATCHING, True),
        (State.ROLLED_BACK, State.VERIFIED, True),
        (State.OVERRIDDEN, State.APPLIED, True),
        (State.OVERRIDDEN, State.APPROVED, False),
        (State.EXPIRED, State.APPROVED, False),
        (State.DECLINED, State.PROPOSED, False),
        (State.APPLIED, State.APPROVED, False),
        (State.CLOSED, State.WATCHING, False),
    ],
)
def test_harm_on_another_queue_stops_the_rest_and_a_skipped_queue_does_not(
    state: State, came_from: State, is_stopped: bool
) -> None:
    first = make_case(State.WATCHING, State.VERIFIED)
    shared_cases = SharedCases(first, (make_case(state, came_from, "second"),))
    for follows_first in (True, False):
        assert bool(shared_cases.describe_stop(follows_first=follows_first)) is is_stopped


def test_approval_of_a_following_case_lasts_while_the_first_may_be_verified() -> None:
    timing = Timing()
    first = make_case(State.APPROVED, State.PROPOSED)
    follower = make_case(State.APPROVED, State.PROPOSED, "second")
    proposed_follower = make_case(State.PROPOSED, None, "second")
    a_day = timedelta(hours=timing.proposal_hours)
    assert first.find_time_limit(timing) == a_day
    assert proposed_follower.find_time_limit(timing) == a_day
    longest_verification = timedelta(hours=timing.watch_hours) + timedelta(days=7)
    assert follower.find_time_limit(timing) == 2 * a_day + longest_verification
    assert follower.is_open(NOW + 2 * a_day + longest_verification, timing)


def test_shared_default_is_read_back_from_its_document() -> None:
    evidence = {"shared_default": SHARED_DEFAULT.document()}
    assert read_shared_default(evidence) == SHARED_DEFAULT
    assert read_shared_default({}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"first_case_id": ""},
        {"first_case_id": 7},
        {"attribute": "Visibility Timeout"},
        {"queue_arns": []},
        {"queue_arns": ["orders"]},
        {"left_out": [{"queue_arn": "orders", "reason": "because"}]},
    ],
)
def test_unreadable_shared_default_makes_the_whole_case_unreadable(
    change: dict[str, object],
) -> None:
    """Without it, a case that must wait for another one would be written at once."""
    document = make_case(State.APPROVED, State.PROPOSED).document()
    document["evidence"]["shared_default"] |= change
    with pytest.raises(ValueError, match="its shared default cannot be read"):
        Case.from_document(document)
