"""The guardrails that refuse a fix."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from mendq.cases.attribute_record import AttributeRecord, AttributeWrite
from mendq.cases.spread import Reach
from mendq.cases.view import CaseStoreView
from mendq.catalogue import examples
from mendq.heal import guardrails
from mendq.heal.decide import GUARDRAILS_ABOUT_PLAN, GUARDRAILS_BEFORE_READING, KeepWaiting, decide
from mendq.heal.gather import is_fresh
from mendq.heal.situation import MINIMUM_FREQUENT_CHANGES, Situation
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.state import FINAL_STATES, State
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    RedriveMessages,
    SetMessageRetention,
    SetVisibilityTimeout,
)
from tests.heal.situations import (
    HELD_BY,
    NOW,
    STEP,
    make_case,
    make_evidence,
    make_situation,
    make_writes,
)

HEAL = Mode.HEAL
OBSERVE = Mode.OBSERVE
VISIBILITY = SetVisibilityTimeout.attribute
SituationAndPlan = tuple[Situation, Plan]


def make_proposal(step: AttributeStep = STEP, **record: Any) -> SituationAndPlan:
    view = CaseStoreView(record_by_attribute={step.attribute: AttributeRecord(**record)})
    return make_situation(view=view), Plan((step,), "because")


def find_plan_refusal(given: SituationAndPlan) -> Refusal | None:
    return guardrails.find_first_refusal(GUARDRAILS_ABOUT_PLAN, *given)


def get_code(refusal: Refusal | None) -> str | None:
    return refusal.code if refusal else None


def test_overridden_guardrail_refuses_a_plan_if_a_person_owns_any_of_its_attributes() -> None:
    other = SetMessageRetention(345_600, 1_209_600)
    owned, _ = make_proposal(overridden_until=NOW + timedelta(seconds=1))
    for steps in ((STEP, other), (other, STEP)):
        refusal = guardrails.refuse_if_overridden(owned, Plan(steps, "because"))
        assert get_code(refusal) == "overridden"
    assert guardrails.refuse_if_overridden(owned, Plan((other,), "because")) is None


def test_guardrails_refuse_nothing_on_a_queue_without_history() -> None:
    assert guardrails.find_first_refusal(GUARDRAILS_BEFORE_READING, make_situation()) is None
    observed = make_situation(mode=Mode.OBSERVE, view=CaseStoreView(freeze_reason="drill"))
    assert guardrails.refuse_if_frozen(observed) is None
    assert find_plan_refusal(make_proposal()) is None


@pytest.mark.parametrize(
    ("age_seconds", "fresh"), [(3600, True), (3601, False), (-300, True), (-301, False)]
)
def test_failed_call_is_fresh_from_one_hour_ago_until_five_minutes_ahead(
    age_seconds: float, fresh: bool
) -> None:
    made_at = NOW - timedelta(seconds=age_seconds)
    call = replace(examples.failed_call("DeleteMessage", "MessageNotInflight"), event_time=made_at)
    assert is_fresh(call, NOW) is fresh


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ({"view": CaseStoreView(freeze_reason="drill")}, "frozen"),
        ({"view": CaseStoreView(freeze_reason="drill"), "fresh_sightings": ()}, "stale_or_future"),
        (
            {
                "view": CaseStoreView(
                    freeze_reason="drill", record_by_attribute={VISIBILITY: HELD_BY}
                )
            },
            "claimed",
        ),
        ({"fresh_sightings": ()}, "stale_or_future"),
        ({"evidence": make_evidence(1, 2)}, "too_little_evidence"),
        ({"evidence": make_evidence(1, 2, 700)}, "too_little_evidence"),
        ({"view": CaseStoreView(case=make_case(State.APPLIED))}, "case_already_open"),
    ],
)
def test_guardrails_before_reading_refuse_with_the_first_code_that_applies(
    over: dict[str, Any], expected: str
) -> None:
    assert (
        get_code(guardrails.find_first_refusal(GUARDRAILS_BEFORE_READING, make_situation(**over)))
        == expected
    )


def test_waiting_case_is_refused_as_claimed_before_frozen() -> None:
    held = CaseStoreView(freeze_reason="drill", record_by_attribute={VISIBILITY: HELD_BY})
    decision = decide(make_situation(waiting_case=make_case(State.APPROVED), view=held))
    assert isinstance(decision, KeepWaiting)
    assert decision.refusal.code == "claimed"


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_case_in_a_final_state_does_not_stop_a_new_case(state: State) -> None:
    view = CaseStoreView(case=make_case(state))
    assert (
        guardrails.find_first_refusal(GUARDRAILS_BEFORE_READING, make_situation(view=view)) is None
    )


@pytest.mark.parametrize(
    ("state", "hours"), [(State.PROPOSED, 24), (State.APPLIED, 48), (State.WATCHING, 48)]
)
def test_overdue_case_does_not_stop_a_new_case_from_an_hour_after_its_time_limit(
    state: State, hours: int
) -> None:
    almost = CaseStoreView(case=make_case(state, timedelta(hours=hours + 1, seconds=-1)))
    over = CaseStoreView(case=make_case(state, timedelta(hours=hours + 1)))
    assert guardrails.refuse_if_case_already_open(make_situation(view=almost))
    assert guardrails.refuse_if_case_already_open(make_situation(view=over)) is None


@pytest.mark.parametrize("state", [State.ESCALATED, State.OVERRIDDEN])
def test_escalated_or_overridden_case_stops_a_new_case_however_old(state: State) -> None:
    view = CaseStoreView(case=make_case(state, timedelta(days=100)))
    assert guardrails.refuse_if_case_already_open(make_situation(view=view))


@pytest.mark.parametrize(
    ("owner", "seconds_left", "expected"),
    [("another", 1, "claimed"), ("another", 0, None), ("me", 60, None)],
)
def test_claim_of_another_run_refuses_a_write_until_the_claim_expires(
    owner: str, seconds_left: float, expected: str | None
) -> None:
    until = NOW + timedelta(seconds=seconds_left)
    record = AttributeRecord(claim_owner=owner, claim_until=until)
    refusal = guardrails.refuse_if_claimed(
        make_situation(view=CaseStoreView(record_by_attribute={VISIBILITY: record}))
    )
    assert get_code(refusal) == expected
    assert refusal is None or refusal.is_retried


def make_repeated_redrive(*hours_ago: float, **record: Any) -> SituationAndPlan:
    """Return the proposal of a redrive after earlier redrives this many hours ago."""
    step = RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, examples.QUEUE_ARN)
    writes = tuple(
        AttributeWrite(NOW - timedelta(hours=hours), MESSAGES_HELD_IN_DLQ_VALUE, step.after)
        for hours in hours_ago
    )
    return make_proposal(step, writes=writes, **record)


@pytest.mark.parametrize(
    ("given", "expected", "expected_state"),
    [
        (
            make_proposal(SetVisibilityTimeout(10, 15), writes=make_writes(30)),
            "overridden",
            "overridden",
        ),
        (make_proposal(overridden_until=NOW + timedelta(seconds=1)), "overridden", None),
        (make_proposal(overridden_until=NOW, writes=make_writes(200)), None, None),
        (make_proposal(SetVisibilityTimeout(30, 43_201)), "out_of_bounds", "refused"),
        (make_proposal(SetVisibilityTimeout(30, 29)), "out_of_bounds", "refused"),
        (make_proposal(writes=make_writes(0.49)), "too_soon", "refused"),
        (make_proposal(writes=make_writes(0.5)), None, None),
        (make_proposal(writes=make_writes(23.9, 12, 0.6)), "too_often", "escalated"),
        (make_proposal(writes=make_writes(24, 12, 0.6)), None, None),
        (make_repeated_redrive(24), None, None),
        (make_repeated_redrive(23.99), "too_often", "refused"),
        (make_repeated_redrive(0.4), "too_soon", "refused"),
        (
            make_repeated_redrive(24, overridden_until=NOW + timedelta(seconds=1)),
            "overridden",
            None,
        ),
    ],
)
def test_guardrails_about_a_plan_refuse_with_a_code_and_a_case_state(
    given: SituationAndPlan, expected: str | None, expected_state: str | None
) -> None:
    refusal = find_plan_refusal(given)
    assert get_code(refusal) == expected
    assert (refusal.case_state if refusal else None) == expected_state
    about_our_writes = expected_state in ("overridden", "escalated")
    assert refusal is None or refusal.silent_in_observe == about_our_writes


@pytest.mark.parametrize(
    ("showing", "managed", "expected"),
    [
        ({HEAL: 3}, {HEAL: 3}, None),
        ({HEAL: 4}, {HEAL: 4}, "4 of 4 managed queues"),
        ({HEAL: 4}, {HEAL: 80}, None),
        ({HEAL: 5}, {HEAL: 99}, "5 of 99 managed queues"),
        ({HEAL: 5}, {HEAL: 100}, None),
        ({HEAL: 4}, {HEAL: 10, OBSERVE: 300}, "4 of 10 queues that Mendq may go as far on"),
        ({HEAL: 4}, {HEAL: 80, OBSERVE: 300}, None),
        ({HEAL: 3, OBSERVE: 13}, {HEAL: 3, OBSERVE: 300}, "16 of 303 managed queues"),
        ({HEAL: 3, OBSERVE: 12}, {HEAL: 3, OBSERVE: 300}, None),
        ({HEAL: 20}, {HEAL: 3_000}, None),
        ({HEAL: 21}, {HEAL: 3_000}, "21 of 3000 managed queues"),
        ({HEAL: 3, OBSERVE: 18}, {HEAL: 3, OBSERVE: 3_000}, "21 of 3003 managed queues"),
    ],
)
def test_mass_symptom_share_in_heal_mode_is_not_diluted_by_observed_queues(
    showing: dict[Mode, int], managed: dict[Mode, int], expected: str | None
) -> None:
    """`showing` and `managed` count the queues with the symptom and all queues, by mode. The plan
    is for a queue in heal mode.
    """
    modes = {f"{mode}-{n}": mode for mode, count in managed.items() for n in range(count)}
    spread = frozenset(f"{mode}-{n}" for mode, count in showing.items() for n in range(count))
    refusal = guardrails.refuse_if_mass_symptom(
        make_situation(reach=Reach.count_among(spread, modes, HEAL))
    )
    assert get_code(refusal) == ("mass_symptom" if expected else None)
    assert refusal is None or refusal.reason.startswith(f"{expected} show it within the hour")


def test_reach_counts_only_queues_that_are_still_managed() -> None:
    """Notes of the last hour outlive the queues that they name."""
    managed = {"stays": HEAL, "more": HEAL, "watched": OBSERVE}
    reach = Reach.count_among(frozenset({"left", "stays"}), managed, HEAL)
    assert reach == Reach(frozenset({"stays"}), 3, 1, 2)


@pytest.mark.parametrize(("seconds", "expected"), [(14.9, "too_little_time"), (15, None)])
def test_write_is_refused_if_less_than_fifteen_seconds_remain(
    seconds: float, expected: str | None
) -> None:
    given, plan = make_proposal()
    given = structs.replace(given, remaining_seconds=seconds)
    assert get_code(guardrails.refuse_if_too_little_time(given, plan)) == expected


def _make_times_ago(*hours: float) -> tuple[datetime, ...]:
    return tuple(NOW - timedelta(hours=age) for age in hours)


def test_sixth_change_of_a_queue_within_a_day_escalates() -> None:
    changes = _make_times_ago(0, 1, 2, 3, 23, 23.9)
    assert len(changes) == MINIMUM_FREQUENT_CHANGES
    refusal = guardrails.refuse_if_keeps_changing(make_situation(excusing_change_times=changes))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("keeps_changing", State.ESCALATED)
    assert "6 times within 24 hours" in refusal.reason
    for few in (changes[1:], changes[:5] * 2, (*changes[:5], *_make_times_ago(24))):
        assert (
            guardrails.refuse_if_keeps_changing(make_situation(excusing_change_times=few)) is None
        ), "each counts once, and for a day"
