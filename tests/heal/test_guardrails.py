"""The guardrails that refuse a fix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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


def find_refusal_before_reading(**over: Any) -> Refusal | None:
    """Ask the guardrails that need no facts. `over` replaces fields of a healthy situation."""
    return guardrails.find_first_refusal(GUARDRAILS_BEFORE_READING, make_situation(**over))


def get_code(refusal: Refusal | None) -> str | None:
    return refusal.code if refusal else None


def test_plan_is_refused_only_if_a_person_keeps_the_value_of_one_of_its_attributes() -> None:
    other = SetMessageRetention(345_600, 1_209_600)
    owned, _ = make_proposal(overridden_until=NOW + timedelta(seconds=1))
    for steps in ((STEP, other), (other, STEP)):
        refusal = guardrails.refuse_if_overridden(owned, Plan(steps, "because"))
        assert get_code(refusal) == "overridden"
    assert guardrails.refuse_if_overridden(owned, Plan((other,), "because")) is None


def test_guardrails_refuse_nothing_on_a_queue_without_history() -> None:
    assert find_refusal_before_reading() is None
    assert find_plan_refusal(make_proposal()) is None


def test_freeze_does_not_refuse_a_queue_in_observe_mode() -> None:
    observed = make_situation(mode=Mode.OBSERVE, view=CaseStoreView(freeze_reason="drill"))
    assert guardrails.refuse_if_frozen(observed) is None


@pytest.mark.parametrize(
    ("age_seconds", "fresh"), [(3600, True), (3601, False), (-300, True), (-301, False)]
)
def test_failed_call_is_fresh_from_one_hour_ago_until_five_minutes_ahead(
    age_seconds: float, fresh: bool
) -> None:
    made_at = NOW - timedelta(seconds=age_seconds)
    call = replace(examples.failed_call("DeleteMessage", "MessageNotInflight"), event_time=made_at)
    assert is_fresh(call, NOW) is fresh


FROZEN = CaseStoreView(freeze_reason="drill")
CLAIMED_AND_FROZEN = CaseStoreView(freeze_reason="drill", record_by_attribute={VISIBILITY: HELD_BY})
EARLIER_THAN_TEN_MINUTES_AGO = 700


def test_queue_is_refused_as_frozen_during_a_freeze() -> None:
    assert get_code(find_refusal_before_reading(view=FROZEN)) == "frozen"


def test_queue_without_a_fresh_failed_call_is_refused_as_stale() -> None:
    assert get_code(find_refusal_before_reading(fresh_sightings=())) == "stale_or_future"


@pytest.mark.parametrize(
    "seconds_ago", [(1, 2), (1, 2, EARLIER_THAN_TEN_MINUTES_AGO)], ids=["two", "third is too old"]
)
def test_queue_with_fewer_than_three_failed_calls_in_ten_minutes_is_refused(
    seconds_ago: tuple[float, ...],
) -> None:
    refusal = find_refusal_before_reading(evidence=make_evidence(*seconds_ago))
    assert get_code(refusal) == "too_little_evidence"


def test_queue_with_an_applied_case_is_refused_as_already_open() -> None:
    applied = CaseStoreView(case=make_case(State.APPLIED))
    assert get_code(find_refusal_before_reading(view=applied)) == "case_already_open"


def test_stale_calls_are_given_as_the_reason_of_a_refusal_even_during_a_freeze() -> None:
    refusal = find_refusal_before_reading(view=FROZEN, fresh_sightings=())
    assert get_code(refusal) == "stale_or_future"


def test_claim_of_another_run_is_given_as_the_reason_of_a_refusal_even_during_a_freeze() -> None:
    assert get_code(find_refusal_before_reading(view=CLAIMED_AND_FROZEN)) == "claimed"


def test_waiting_case_keeps_waiting_for_another_runs_claim_even_during_a_freeze() -> None:
    waiting_case = make_case(State.APPROVED)
    decision = decide(make_situation(waiting_case=waiting_case, view=CLAIMED_AND_FROZEN))
    assert isinstance(decision, KeepWaiting)
    assert decision.refusal.code == "claimed"


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_case_in_a_final_state_does_not_stop_a_new_case(state: State) -> None:
    ended = CaseStoreView(case=make_case(state))
    assert find_refusal_before_reading(view=ended) is None


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
def test_claim_of_another_run_but_not_the_runs_own_refuses_a_write_until_the_claim_expires(
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


A_SECOND_FROM_NOW = NOW + timedelta(seconds=1)


def test_plan_over_a_value_that_a_person_set_after_mendq_becomes_an_overridden_case() -> None:
    """Mendq wrote 30, and the queue has 10 now. Nobody is notified in observe mode."""
    refusal = find_plan_refusal(make_proposal(SetVisibilityTimeout(10, 15), writes=make_writes(30)))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("overridden", State.OVERRIDDEN)
    assert refusal.silent_in_observe


@pytest.mark.parametrize(
    "make_plan", [make_proposal, make_repeated_redrive], ids=["visibility timeout", "redrive"]
)
def test_plan_is_ignored_without_a_case_until_the_silence_after_an_override_ends(
    make_plan: Callable[..., SituationAndPlan],
) -> None:
    refusal = find_plan_refusal(make_plan(overridden_until=A_SECOND_FROM_NOW))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("overridden", None)
    assert find_plan_refusal(make_plan(overridden_until=NOW)) is None


def test_value_that_a_person_set_is_fixed_again_once_the_silence_after_an_override_ended() -> None:
    a_week_ago = make_writes(200)
    proposal = make_proposal(SetVisibilityTimeout(10, 15), overridden_until=NOW, writes=a_week_ago)
    assert find_plan_refusal(proposal) is None


@pytest.mark.parametrize(
    "step",
    [
        SetVisibilityTimeout(before=30, after=SetVisibilityTimeout.maximum + 1),
        SetVisibilityTimeout(before=30, after=29),
    ],
    ids=["above the maximum of SQS", "lower than before"],
)
def test_plan_with_a_value_out_of_bounds_is_refused(step: AttributeStep) -> None:
    refusal = find_plan_refusal(make_proposal(step))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("out_of_bounds", State.REFUSED)


def test_plan_is_refused_within_half_an_hour_of_the_last_write() -> None:
    refusal = find_plan_refusal(make_proposal(writes=make_writes(0.49)))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("too_soon", State.REFUSED)
    assert find_plan_refusal(make_proposal(writes=make_writes(0.5))) is None


def test_fourth_write_of_an_attribute_within_a_day_escalates() -> None:
    refusal = find_plan_refusal(make_proposal(writes=make_writes(23.9, 12, 0.6)))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("too_often", State.ESCALATED)
    assert refusal.silent_in_observe
    assert find_plan_refusal(make_proposal(writes=make_writes(24, 12, 0.6))) is None


def test_second_redrive_within_a_day_is_refused_but_does_not_escalate() -> None:
    refusal = find_plan_refusal(make_repeated_redrive(23.99))
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("too_often", State.REFUSED)
    assert not refusal.silent_in_observe
    assert find_plan_refusal(make_repeated_redrive(24)) is None


def test_second_redrive_within_half_an_hour_is_refused_as_too_soon() -> None:
    assert get_code(find_plan_refusal(make_repeated_redrive(0.4))) == "too_soon"


@dataclass(frozen=True, kw_only=True)
class QueueCounts:
    """Numbers of queues in heal mode and in observe mode, and of those that show the symptom."""

    heal: int
    heal_with_symptom: int
    observe: int = 0
    observe_with_symptom: int = 0

    def count_reach(self) -> Reach:
        """Return the reach of a plan for a queue in heal mode."""
        heal = [f"heal-{n}" for n in range(self.heal)]
        observe = [f"observe-{n}" for n in range(self.observe)]
        modes = {**dict.fromkeys(heal, HEAL), **dict.fromkeys(observe, OBSERVE)}
        spread = heal[: self.heal_with_symptom] + observe[: self.observe_with_symptom]
        return Reach.count_among(frozenset(spread), modes, HEAL)


def find_mass_symptom(counts: QueueCounts) -> Refusal | None:
    return guardrails.refuse_if_mass_symptom(make_situation(reach=counts.count_reach()))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (QueueCounts(heal=4, heal_with_symptom=4), "4 of 4 managed queues"),
        (QueueCounts(heal=99, heal_with_symptom=5), "5 of 99 managed queues"),
        (QueueCounts(heal=3_000, heal_with_symptom=21), "21 of 3000 managed queues"),
        (
            QueueCounts(heal=3, heal_with_symptom=3, observe=300, observe_with_symptom=13),
            "16 of 303 managed queues",
        ),
        (
            QueueCounts(heal=3, heal_with_symptom=3, observe=3_000, observe_with_symptom=18),
            "21 of 3003 managed queues",
        ),
    ],
)
def test_plan_is_refused_as_mass_symptom_if_over_3_queues_and_5_percent_or_over_20_show_it(
    counts: QueueCounts, reason: str
) -> None:
    """Too many are more than 3 queues and 5 % of all, or more than 20."""
    refusal = find_mass_symptom(counts)
    assert refusal is not None
    assert refusal.code == "mass_symptom"
    assert refusal.reason.startswith(f"{reason} show it within the hour")


@pytest.mark.parametrize(
    "counts",
    [
        QueueCounts(heal=3, heal_with_symptom=3),
        QueueCounts(heal=80, heal_with_symptom=4),
        QueueCounts(heal=100, heal_with_symptom=5),
        QueueCounts(heal=3_000, heal_with_symptom=20),
        QueueCounts(heal=80, heal_with_symptom=4, observe=300),
        QueueCounts(heal=3, heal_with_symptom=3, observe=300, observe_with_symptom=12),
    ],
)
def test_plan_is_not_refused_as_mass_symptom_for_up_to_3_queues_or_5_percent_and_20_queues(
    counts: QueueCounts,
) -> None:
    assert find_mass_symptom(counts) is None


def test_healthy_queues_in_observe_mode_do_not_hide_a_mass_symptom_of_queues_in_heal_mode() -> None:
    refusal = find_mass_symptom(QueueCounts(heal=10, heal_with_symptom=4, observe=300))
    assert refusal is not None
    assert refusal.reason.startswith("4 of 10 queues that Mendq may go as far on show it")


def test_reach_of_a_symptom_leaves_out_queues_that_are_not_managed_any_more() -> None:
    """Notes of the last hour outlive the queues that they name."""
    managed = {"stays": HEAL, "more": HEAL}
    reach = Reach.count_among(frozenset({"left", "stays"}), managed, HEAL)
    assert reach == Reach(
        queue_arns=frozenset({"stays"}),
        managed_queue_count=2,
        queue_count_in_mode=1,
        managed_queue_count_in_mode=2,
    )


def test_reach_of_a_symptom_counts_queues_in_heal_mode_separately_from_all_managed_queues() -> None:
    managed = {"stays": HEAL, "more": HEAL, "watched": OBSERVE}
    reach = Reach.count_among(frozenset({"stays", "watched"}), managed, HEAL)
    assert reach == Reach(
        queue_arns=frozenset({"stays", "watched"}),
        managed_queue_count=3,
        queue_count_in_mode=1,
        managed_queue_count_in_mode=2,
    )


@pytest.mark.parametrize(("seconds", "expected"), [(14.9, "too_little_time"), (15, None)])
def test_write_is_refused_if_less_than_fifteen_seconds_remain(
    seconds: float, expected: str | None
) -> None:
    given, plan = make_proposal()
    given = structs.replace(given, remaining_seconds=seconds)
    assert get_code(guardrails.refuse_if_too_little_time(given, plan)) == expected


def _make_times_ago(*hours: float) -> tuple[datetime, ...]:
    return tuple(NOW - timedelta(hours=age) for age in hours)


SIX_CHANGES_WITHIN_A_DAY = _make_times_ago(0, 1, 2, 3, 23, 23.9)


def test_sixth_change_of_a_queue_within_a_day_escalates() -> None:
    assert len(SIX_CHANGES_WITHIN_A_DAY) == MINIMUM_FREQUENT_CHANGES
    refusal = guardrails.refuse_if_keeps_changing(
        make_situation(excusing_change_times=SIX_CHANGES_WITHIN_A_DAY)
    )
    assert refusal is not None
    assert (refusal.code, refusal.case_state) == ("keeps_changing", State.ESCALATED)
    assert "6 times within 24 hours" in refusal.reason


@pytest.mark.parametrize(
    "changes",
    [
        SIX_CHANGES_WITHIN_A_DAY[1:],
        SIX_CHANGES_WITHIN_A_DAY[1:] * 2,
        (*SIX_CHANGES_WITHIN_A_DAY[1:], *_make_times_ago(24)),
    ],
    ids=["five", "five, each reported twice", "five, and one a day ago"],
)
def test_five_changes_of_a_queue_within_a_day_do_not_escalate(
    changes: tuple[datetime, ...],
) -> None:
    situation = make_situation(excusing_change_times=changes)
    assert guardrails.refuse_if_keeps_changing(situation) is None
