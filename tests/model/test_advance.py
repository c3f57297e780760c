"""Test the follow-up's transitions of a case: each row of the table, and that every case ends."""

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

HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=1)


def make_three_failures(at: datetime) -> Evidence:
    return make_failures(at, at + MOMENT, at + 2 * MOMENT)


def make_measured_failure(at: datetime) -> Evidence:
    return Evidence((Sighting.from_scan(at),))


def make_measured_case(state: State) -> Case:
    """Make a case that a scan opened: its evidence is a measurement, and no call failed."""
    return replace(
        make_case(state), evidence=make_measured_failure(NOW - timedelta(minutes=5)).document()
    )


def find_next_state(given_case: Case, now: datetime, **evidence_since: object) -> State | None:
    moved = make_next_transition(given_case, VerificationEvidence(TIMING, **evidence_since), now)  # type: ignore[arg-type]
    return moved.state if moved else None


FOR_CALLS_AND_MEASUREMENTS = pytest.mark.parametrize("make", [make_case, make_measured_case])
MakeCase = Callable[[State], Case]


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_case_in_a_final_state_never_moves_again(state: State) -> None:
    assert (
        find_next_state(
            make_case(state), NOW + 999 * HOUR, failures=make_three_failures(NOW), deletes=9
        )
        is None
    )


@pytest.mark.parametrize(
    ("first_failure_at", "expected"),
    [
        pytest.param(FAILURES_COUNT_FROM - 3 * MOMENT, None, id="received before the fix"),
        pytest.param(FAILURES_COUNT_FROM, State.INEFFECTIVE, id="received after the fix"),
    ],
)
def test_fix_is_ineffective_only_after_calls_failed_for_messages_received_since_the_fix(
    first_failure_at: datetime, expected: State | None
) -> None:
    failures = make_three_failures(first_failure_at)
    state = find_next_state(make_case(State.APPLIED), FAILURES_COUNT_FROM, failures=failures)
    assert state is expected


def test_failures_count_from_60_seconds_after_a_fix_that_is_no_visibility_timeout() -> None:
    step = SetKmsDataKeyReusePeriod(60, 300).document()
    throttled = replace(make_case(State.APPLIED), steps=(step,))
    assert find_start_of_counted_failures(throttled, TIMING) == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("state", "hours"), [(State.APPLIED, 48), (State.UNVERIFIED, 168), (State.WATCHING, 48)]
)
def test_case_with_occasional_failures_until_its_time_limit_is_escalated(
    state: State, hours: int
) -> None:
    ends = NOW + hours * HOUR
    assert (
        find_next_state(make_case(state), ends, failures=make_failures(ends - HOUR), deletes=9)
        is State.ESCALATED
    )


QUIET_PERIODS = pytest.mark.parametrize(
    ("make", "quiet"),
    [
        pytest.param(make_case, CLOUDTRAIL_LAG, id="failed calls"),
        pytest.param(make_measured_case, SCAN_INTERVAL_AND_WINDOW, id="measurements"),
    ],
)


@QUIET_PERIODS
@pytest.mark.parametrize(
    ("deletes", "expected"), [(5, State.VERIFIED), (0, State.UNVERIFIED), (None, State.UNVERIFIED)]
)
def test_fix_is_verified_after_its_quiet_period_or_unverified_if_no_message_was_deleted_meanwhile(
    make: MakeCase, quiet: timedelta, deletes: int | None, expected: State
) -> None:
    """A case of measurements needs a quiet scan interval, one of failed calls CloudTrail's lag."""
    case = make(State.APPLIED)
    now = FAILURES_COUNT_FROM + quiet
    evidence_since = {"deletes": deletes, "queue_status": QueueStatus.OURS}
    assert find_next_state(case, now - MOMENT, **evidence_since) is None
    assert find_next_state(case, now, **evidence_since) is expected


@QUIET_PERIODS
def test_follow_up_of_an_applied_fix_is_due_after_its_quiet_period_or_in_an_hour_if_that_is_sooner(
    make: MakeCase, quiet: timedelta
) -> None:
    due = due_at(make(State.APPLIED), VerificationEvidence(TIMING), NOW)
    assert due == min(FAILURES_COUNT_FROM + quiet, NOW + HOUR)


@FOR_CALLS_AND_MEASUREMENTS
@pytest.mark.parametrize("state", [State.APPLIED, State.UNVERIFIED, State.WATCHING])
def test_measurement_of_the_fault_makes_a_fix_ineffective_only_if_made_after_the_change(
    state: State, make: MakeCase
) -> None:
    case = make(state)
    start = find_start_of_counted_failures(make_case(state), TIMING)
    later = start + 2 * HOUR
    late_fault = make_measured_failure(later)
    assert find_next_state(case, later, failures=late_fault, deletes=5) is State.INEFFECTIVE
    early_fault = make_measured_failure(start - MOMENT)
    assert find_next_state(case, start, failures=early_fault, deletes=5) is not State.INEFFECTIVE


@FOR_CALLS_AND_MEASUREMENTS
def test_fix_with_one_late_failed_call_is_verified_only_after_24_quiet_hours(
    make: MakeCase,
) -> None:
    case = make(State.APPLIED)
    called_at = FAILURES_COUNT_FROM + timedelta(minutes=10)
    one_failure = make_failures(called_at)
    evidence_since = {"failures": one_failure, "deletes": 5, "queue_status": QueueStatus.OURS}
    a_day_later = called_at + 24 * HOUR
    assert find_next_state(case, a_day_later - MOMENT, **evidence_since) is None
    assert find_next_state(case, a_day_later, **evidence_since) is State.VERIFIED


@FOR_CALLS_AND_MEASUREMENTS
@pytest.mark.parametrize("state", [State.APPLIED, State.UNVERIFIED])
def test_fix_is_not_verified_while_the_queue_cannot_be_read(state: State, make: MakeCase) -> None:
    """Consumers delete messages, but it is unknown if the queue still has Mendq's value."""
    case = make(state)
    late = FAILURES_COUNT_FROM + 24 * HOUR
    assert find_next_state(case, late, deletes=5, queue_status=None) is not State.VERIFIED
    assert find_next_state(case, late, deletes=5, queue_status=QueueStatus.OURS) is State.VERIFIED


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
def test_case_without_new_evidence_expires_escalates_or_closes_exactly_at_its_states_time_limit(
    state: State, hours: int, expected: State
) -> None:
    assert find_next_state(make_case(state), NOW + hours * HOUR - MOMENT) is None
    assert find_next_state(make_case(state), NOW + hours * HOUR) is expected


@pytest.mark.parametrize("state", [State.ESCALATED, State.OVERRIDDEN])
@pytest.mark.parametrize("make_evidence", [make_failures, make_measured_failure])
def test_case_left_to_a_person_stays_open_until_a_week_without_a_failure(
    state: State, make_evidence: Callable[[datetime], Evidence]
) -> None:
    lately = make_evidence(NOW + timedelta(days=5))
    assert find_next_state(make_case(state), NOW + timedelta(days=8), failures=lately) is None
    assert (
        find_next_state(make_case(state), NOW + timedelta(days=12), failures=lately) is State.CLOSED
    )


def test_failures_during_the_watch_time_make_the_fix_ineffective_and_join_the_evidence() -> None:
    watched = make_case(State.WATCHING)
    at = NOW + 3 * HOUR
    moved = make_next_transition(
        watched, VerificationEvidence(TIMING, failures=make_three_failures(at)), at
    )
    assert moved is not None
    assert (moved.state, moved.came_from, moved.n) == (State.INEFFECTIVE, State.WATCHING, 2)
    assert moved.evidence["failed_calls"] == watched.evidence["failed_calls"] + 3
    assert moved.evidence["first_at"] == watched.evidence["first_at"]
    assert moved.evidence["last_at"] > watched.evidence["last_at"]


def test_transitions_lead_out_of_every_open_state_and_of_no_final_state() -> None:
    assert {state for row in FOLLOW_UP_TRANSITIONS for state in row.states_before} == set(
        State
    ) - FINAL_STATES


def test_each_follow_up_transition_has_a_reason_and_leads_to_another_state() -> None:
    assert all(
        row.because and row.state_after not in row.states_before for row in FOLLOW_UP_TRANSITIONS
    )


@FOR_CALLS_AND_MEASUREMENTS
@pytest.mark.parametrize("state", sorted(set(State) - FINAL_STATES))
def test_due_case_moves_or_gets_a_later_due_time(state: State, make: MakeCase) -> None:
    """Otherwise follow-up would read the case every minute for ever."""
    evidence_since = VerificationEvidence(TIMING)
    case = make(state)
    due = due_at(case, evidence_since, NOW) + MOMENT
    for _ in range(3):
        if make_next_transition(case, evidence_since, due) is not None:
            return
        later = due_at(case, evidence_since, due)
        assert later > due
        due = later


EVIDENCE_BY_KIND: dict[str, Callable[[datetime], Evidence]] = {
    "nothing": lambda _at: Evidence(),
    "calls": make_three_failures,
    "measurement": make_measured_failure,
}


@given(
    st.sampled_from(sorted(set(State) - FINAL_STATES)),
    st.lists(
        st.tuples(
            st.integers(1, 60 * 24),
            st.sampled_from(sorted(EVIDENCE_BY_KIND)),
            st.none() | st.integers(0, 3),
        ),
        max_size=40,
    ),
    st.sampled_from([make_case, make_measured_case]),
)
def test_every_case_ends_in_a_final_state_after_any_history_without_a_person(
    state: State, history: list[tuple[int, str, int | None]], make: MakeCase
) -> None:
    """Any evidence at first, then 20 quiet days. No person approves, and heal does not run."""
    case = make(state)
    now = NOW
    quiet_days = [(60 * 24, "nothing", None)] * 20
    for minutes, evidence_kind, deletes in [*history, *quiet_days]:
        now += timedelta(minutes=minutes)
        failures = EVIDENCE_BY_KIND[evidence_kind](now - timedelta(minutes=1))
        evidence_since = VerificationEvidence(TIMING, failures=failures, deletes=deletes)
        next_case = make_next_transition(case, evidence_since, now)
        if next_case is not None:
            assert next_case.n == case.n + 1
            case = next_case
    assert case.state in FINAL_STATES


@pytest.mark.parametrize(
    ("queue_status", "is_fault_of_configuration", "expected"),
    [
        (QueueStatus.OURS, True, State.VERIFIED),
        (QueueStatus.OURS, False, State.UNVERIFIED),
        (None, True, State.UNVERIFIED),
    ],
)
def test_fix_without_deletes_is_verified_only_for_a_configuration_fault_with_mendqs_value_in_place(
    queue_status: QueueStatus | None, is_fault_of_configuration: bool, expected: State
) -> None:
    case = make_measured_case(State.APPLIED)
    now = FAILURES_COUNT_FROM + SCAN_INTERVAL_AND_WINDOW
    evidence_since = {
        "queue_status": queue_status,
        "is_fault_of_configuration": is_fault_of_configuration,
    }
    assert find_next_state(case, now - MOMENT, **evidence_since) is None
    assert find_next_state(case, now, **evidence_since) is expected


def make_redriving_case(state: State = State.APPLIED) -> Case:
    step = RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, "arn:aws:sqs:us-east-1:123456789012:orders")
    return replace(make_case(state), steps=(step.document(),))


@pytest.mark.parametrize("hours", [0, 47, 48, 24 * 30])
@pytest.mark.parametrize(
    "status", [None, QueueStatus.OURS, QueueStatus.OVERRULED, QueueStatus.UNMANAGED]
)
def test_redrive_in_progress_stays_open_for_any_time_even_if_overruled_or_unmanaged(
    hours: int, status: QueueStatus | None
) -> None:
    now = NOW + hours * HOUR
    evidence_since = {"deletes": 100, "queue_status": status, "is_fault_of_configuration": True}
    assert find_next_state(make_redriving_case(), now, **evidence_since) is None
    assert make_redriving_case().is_open(now, TIMING)


@pytest.mark.parametrize("hours", [0, 47, 48, 24 * 30])
def test_redrive_in_progress_is_closed_if_the_queue_is_deleted(hours: int) -> None:
    now = NOW + hours * HOUR
    status = QueueStatus.GONE
    assert find_next_state(make_redriving_case(), now, queue_status=status) is State.CLOSED


def test_follow_up_of_a_redrive_in_progress_is_due_at_once_and_then_in_less_than_a_minute() -> None:
    nothing = VerificationEvidence(TIMING)
    later = NOW + timedelta(minutes=7)
    assert due_at(make_redriving_case(), nothing, NOW) == NOW
    assert later < due_at(make_redriving_case(), nothing, later) < later + timedelta(minutes=1)


@pytest.mark.parametrize(
    "verified",
    [
        pytest.param(make_case(State.VERIFIED), id="fix"),
        pytest.param(make_redriving_case(State.VERIFIED), id="redrive"),
    ],
)
def test_verified_fix_or_redrive_is_watched_at_once(verified: Case) -> None:
    assert not verified.is_redriving
    assert find_next_state(verified, NOW) is State.WATCHING


@pytest.mark.parametrize("state", STATES_THAT_CALL_OWNER)
def test_follow_up_of_a_case_that_waits_for_another_lambda_is_due_at_once_and_then_in_five_minutes(
    state: State,
) -> None:
    waiting = make_case(state)
    evidence = VerificationEvidence(TIMING)
    assert due_at(waiting, evidence, waiting.at) == waiting.at
    later = waiting.at + MOMENT
    assert due_at(waiting, evidence, later) == later + timedelta(minutes=5)
