"""What becomes of a case: each row of the table, near-misses first, and that every life ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.case import Case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.lifecycle import (
    CLOUDTRAIL_LAG,
    FOLLOW_UP_TRANSITIONS,
    OWNER_CALL_INTERVAL,
    SCAN_INTERVAL_AND_WINDOW,
    STATES_THAT_CALL_OWNER,
    QueueStatus,
    VerificationEvidence,
    due_at,
    find_start_of_counted_failures,
    make_next_transition,
)
from mendq.model.state import FINAL_STATES, State
from mendq.model.steps import MESSAGES_HELD_IN_DLQ_VALUE, RedriveMessages, SetKmsDataKeyReusePeriod
from tests.model.builders import FAILURES_COUNT_FROM, NOW, TIMING, make_case, make_failures

HOUR, MOMENT = timedelta(hours=1), timedelta(seconds=1)


def thrice(at: datetime) -> Evidence:
    return make_failures(at, at + MOMENT, at + 2 * MOMENT)


def measured(at: datetime) -> Evidence:
    return Evidence((Sighting.from_scan(at),))


def measured_case(state: State) -> Case:
    """One that a scan found; no call ever failed."""
    return replace(make_case(state), evidence=measured(NOW - timedelta(minutes=5)).document())


def became(given_case: Case, now: datetime, **evidence_since: object) -> State | None:
    moved = make_next_transition(given_case, VerificationEvidence(TIMING, **evidence_since), now)  # type: ignore[arg-type]
    return moved.state if moved else None


EITHER = pytest.mark.parametrize("opened", [make_case, measured_case])
Opened = Callable[[State], Case]


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_what_has_ended_stays_ended(state: State) -> None:
    assert became(make_case(state), NOW + 999 * HOUR, failures=thrice(NOW), deletes=9) is None


def test_failures_of_messages_received_before_the_change_count_for_nothing() -> None:
    early = thrice(FAILURES_COUNT_FROM - 3 * MOMENT)
    assert became(make_case(State.APPLIED), FAILURES_COUNT_FROM, failures=early) is None
    assert (
        became(make_case(State.APPLIED), FAILURES_COUNT_FROM, failures=thrice(FAILURES_COUNT_FROM))
        is State.INEFFECTIVE
    )
    step = SetKmsDataKeyReusePeriod(60, 300).document()
    throttled = replace(make_case(State.APPLIED), steps=(step,))
    assert find_start_of_counted_failures(throttled, TIMING) == NOW + timedelta(seconds=60), (
        "no visibility timeout"
    )


@pytest.mark.parametrize(
    ("state", "hours"), [(State.APPLIED, 48), (State.UNVERIFIED, 168), (State.WATCHING, 48)]
)
def test_calls_that_fail_now_and_then_to_the_end_are_a_persons(state: State, hours: int) -> None:
    ends = NOW + hours * HOUR
    assert (
        became(make_case(state), ends, failures=make_failures(ends - HOUR), deletes=9)
        is State.ESCALATED
    )


@pytest.mark.parametrize(
    ("opened", "quiet"), [(make_case, CLOUDTRAIL_LAG), (measured_case, SCAN_INTERVAL_AND_WINDOW)]
)
@pytest.mark.parametrize(
    ("deletes", "expected"), [(5, State.VERIFIED), (0, State.UNVERIFIED), (None, State.UNVERIFIED)]
)
def test_silence_proves_something_only_where_messages_were_deleted(
    opened: Opened, quiet: timedelta, deletes: int | None, expected: State
) -> None:
    """What was measured is verified by measuring as long again."""
    found, now = opened(State.APPLIED), FAILURES_COUNT_FROM + quiet
    seen = {"deletes": deletes, "queue_status": QueueStatus.OURS}
    assert became(found, now - MOMENT, **seen) is None
    assert became(found, now, **seen) is expected
    hourly = NOW + timedelta(hours=1)
    assert due_at(found, VerificationEvidence(TIMING), NOW) == min(now, hourly), "harm is measured"


@EITHER
@pytest.mark.parametrize("state", [State.APPLIED, State.UNVERIFIED, State.WATCHING])
def test_one_measurement_from_after_the_change_shows_that_it_did_not_help(
    state: State, opened: Opened
) -> None:
    begins, one = find_start_of_counted_failures(make_case(state), TIMING), opened(state)
    later, early = begins + 2 * HOUR, measured(begins - MOMENT)
    assert became(one, later, failures=measured(later), deletes=5) is State.INEFFECTIVE
    assert became(one, begins, failures=early, deletes=5) is not State.INEFFECTIVE


@EITHER
def test_one_late_call_is_no_relapse_and_takes_a_quiet_day_to_forget(opened: Opened) -> None:
    found, called_at = opened(State.APPLIED), FAILURES_COUNT_FROM + timedelta(minutes=10)
    once, forgotten = make_failures(called_at), called_at + 24 * HOUR
    seen = {"failures": once, "deletes": 5, "queue_status": QueueStatus.OURS}
    assert became(found, forgotten - MOMENT, **seen) is None
    assert became(found, forgotten, **seen) is State.VERIFIED


@EITHER
@pytest.mark.parametrize("state", [State.APPLIED, State.UNVERIFIED])
def test_fix_that_nobody_could_look_at_is_not_verified(state: State, opened: Opened) -> None:
    """Messages are deleted, and whether what Mendq wrote still stands is not known."""
    found, late = opened(state), FAILURES_COUNT_FROM + 24 * HOUR
    assert became(found, late, deletes=5, queue_status=None) is not State.VERIFIED
    assert became(found, late, deletes=5, queue_status=QueueStatus.OURS) is State.VERIFIED


@pytest.mark.parametrize(
    ("state", "hours", "expected"),
    [
        (State.PROPOSED, 24, State.EXPIRED),
        (State.APPROVED, 24, State.EXPIRED),
        (State.INEFFECTIVE, 24, State.ESCALATED),
        (State.WATCHING, 48, State.CLOSED),
        (State.UNVERIFIED, 168, State.CLOSED),
        (State.ESCALATED, 168, State.CLOSED),
        (State.OVERRIDDEN, 168, State.CLOSED),
    ],
)
def test_what_time_alone_ends(state: State, hours: int, expected: State) -> None:
    assert became(make_case(state), NOW + hours * HOUR - MOMENT) is None
    assert became(make_case(state), NOW + hours * HOUR) is expected


@pytest.mark.parametrize("state", [State.ESCALATED, State.OVERRIDDEN])
@pytest.mark.parametrize("seen", [make_failures, measured])
def test_what_a_person_has_to_end_lasts_while_it_shows(
    state: State, seen: Callable[[datetime], Evidence]
) -> None:
    lately = seen(NOW + timedelta(days=5))
    assert became(make_case(state), NOW + timedelta(days=8), failures=lately) is None
    assert became(make_case(state), NOW + timedelta(days=12), failures=lately) is State.CLOSED


def test_what_comes_back_while_it_is_watched_was_not_fixed() -> None:
    watched, at = make_case(State.WATCHING), NOW + 3 * HOUR
    moved = make_next_transition(watched, VerificationEvidence(TIMING, failures=thrice(at)), at)
    assert moved is not None
    assert (moved.state, moved.came_from, moved.n) == (State.INEFFECTIVE, State.WATCHING, 2)
    assert moved.evidence["failed_calls"] == watched.evidence["failed_calls"] + 3
    assert moved.evidence["first_at"] == watched.evidence["first_at"] < moved.evidence["last_at"]


def test_every_row_leaves_an_open_state_and_every_open_state_has_a_row() -> None:
    assert {state for row in FOLLOW_UP_TRANSITIONS for state in row.out_of} == set(
        State
    ) - FINAL_STATES
    assert all(row.because and row.into not in row.out_of for row in FOLLOW_UP_TRANSITIONS)


@EITHER
@pytest.mark.parametrize("state", sorted(set(State) - FINAL_STATES))
def test_what_is_due_is_moved_or_is_due_later(state: State, opened: Opened) -> None:
    """A case that is due and stays would be looked at every minute for ever."""
    evidence_since, one = VerificationEvidence(TIMING), opened(state)
    due = due_at(one, evidence_since, NOW) + MOMENT
    for _ in range(3):
        if make_next_transition(one, evidence_since, due) is not None:
            return
        later = due_at(one, evidence_since, due)
        assert later > due
        due = later


SEEN: dict[str, Callable[[datetime], Evidence]] = {
    "nothing": lambda _at: Evidence(),
    "calls": thrice,
    "measurement": measured,
}


@given(
    st.sampled_from(sorted(set(State) - FINAL_STATES)),
    st.lists(
        st.tuples(
            st.integers(1, 60 * 24), st.sampled_from(sorted(SEEN)), st.none() | st.integers(0, 3)
        ),
        max_size=40,
    ),
    st.sampled_from([make_case, measured_case]),
)
def test_every_life_ends(
    state: State, history: list[tuple[int, str, int | None]], opened: Opened
) -> None:
    """Whatever is seen for a while; then silence. Nobody approves and heal is down."""
    life, now = opened(state), NOW
    for minutes, seen, deletes in [*history, *[(60 * 24, "nothing", None)] * 20]:
        now += timedelta(minutes=minutes)
        failures = SEEN[seen](now - timedelta(minutes=1))
        moved = make_next_transition(
            life, VerificationEvidence(TIMING, failures=failures, deletes=deletes), now
        )
        assert moved is None or moved.n == life.n + 1
        life = moved or life
    assert life.state in FINAL_STATES


@pytest.mark.parametrize(
    ("stands", "of_configuration", "expected"),
    [
        (QueueStatus.OURS, True, State.VERIFIED),
        (QueueStatus.OURS, False, State.UNVERIFIED),
        (None, True, State.UNVERIFIED),
    ],
)
def test_a_configuration_is_proven_by_standing_unfound(
    stands: QueueStatus | None, of_configuration: bool, expected: State
) -> None:
    found, now = measured_case(State.APPLIED), FAILURES_COUNT_FROM + SCAN_INTERVAL_AND_WINDOW
    evidence_since = {"queue_status": stands, "of_configuration": of_configuration}
    assert became(found, now - MOMENT, **evidence_since) is None
    assert became(found, now, **evidence_since) is expected


def redriving(state: State = State.APPLIED) -> Case:
    step = RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, "arn:aws:sqs:us-east-1:123456789012:orders")
    return replace(make_case(state), steps=(step.document(),))


@pytest.mark.parametrize("hours", [0, 47, 48, 24 * 30])
def test_nothing_but_the_queue_s_end_ends_what_goes_on(hours: int) -> None:
    now = NOW + hours * HOUR
    for stands in (None, QueueStatus.OURS, QueueStatus.OVERRULED, QueueStatus.UNMANAGED):
        seen = {"deletes": 100, "queue_status": stands, "of_configuration": True}
        assert became(redriving(), now, **seen) is None
    assert became(redriving(), now, queue_status=QueueStatus.GONE) is State.CLOSED
    assert redriving().is_open(now, TIMING)


def test_what_goes_on_is_due_at_once_and_then_within_every_minute() -> None:
    nothing, later = VerificationEvidence(TIMING), NOW + timedelta(minutes=7)
    assert due_at(redriving(), nothing, NOW) == NOW
    assert later < due_at(redriving(), nothing, later) < later + timedelta(minutes=1)


@pytest.mark.parametrize("verified", [make_case(State.VERIFIED), redriving(State.VERIFIED)])
def test_what_is_verified_is_watched_at_once_as_any_other(verified: Case) -> None:
    assert not verified.is_redriving
    assert became(verified, NOW) is State.WATCHING


@pytest.mark.parametrize("state", STATES_THAT_CALL_OWNER)
def test_due_at_of_a_case_that_waits_for_its_owner_is_at_once_then_every_five_minutes(
    state: State,
) -> None:
    waiting = make_case(state)
    evidence = VerificationEvidence(TIMING)
    assert due_at(waiting, evidence, waiting.at) == waiting.at
    later = waiting.at + MOMENT
    assert due_at(waiting, evidence, later) == later + OWNER_CALL_INTERVAL
