"""A waiting case is planned again before its write, and ends if anything changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal, Retry
from mendq.model.queue import arn_of_dlq
from mendq.model.state import State
from mendq.model.steps import AttributeStep, CreateDlq, SetVisibilityTimeout
from tests.account.account import Account
from tests.account.faults import calls_of
from tests.heal.builders import continue_newest_case, make_approved_case, make_ineffective_case
from tests.heal.operators import load_newest_case, make_owner_run

SYMPTOM = "visibility_timeout_too_short"
RAISE = SetVisibilityTimeout(30, 45)
RAISE_AGAIN = SetVisibilityTimeout(45, 68)
WRITES = {"SetQueueAttributes", "CreateQueue"}


@dataclass
class PlanStub:
    """Replace the plan of the symptom, whatever the queue shows."""

    monkeypatch: pytest.MonkeyPatch

    def set_steps(self, *steps: AttributeStep, at_most: Mode = Mode.HEAL) -> None:
        self.set_answer(Plan(steps, "by now", highest_mode=at_most))

    def set_answer(self, answer: Plan | Refusal) -> None:
        entry: Any = replace(SYMPTOM_BY_NAME[SYMPTOM], plan=lambda *_: answer)
        self.monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, entry)


@pytest.fixture
def plan_stub(monkeypatch: pytest.MonkeyPatch) -> PlanStub:
    return PlanStub(monkeypatch)


def assert_case_ends(account: Account, queue: str, state: State, code: str) -> str:
    """Continue the newest case and check that it ends with this state and code, unwritten. Return
    its reason.
    """
    before = account.attributes(queue)
    calls = calls_of(account)
    outcome = continue_newest_case(account)
    assert outcome.refusal is not None
    assert outcome.refusal.code == code
    assert WRITES.isdisjoint(calls)
    assert account.attributes(queue) == before
    ended = load_newest_case(account)
    assert (ended.state, ended.code) == (state, code)
    held = [key for key, item in account.case_store_items().items() if "claim_owner" in item]
    assert held == []
    return ended.reason


def test_approved_case_is_written_if_the_plan_has_not_changed(
    account: Account, plan_stub: PlanStub
) -> None:
    """Without this, the refusals below could all have the same unrelated cause."""
    queue = make_approved_case(account)
    plan_stub.set_steps(RAISE)
    assert continue_newest_case(account).refusal is None
    assert (account.visibility(queue), load_newest_case(account).state) == (45, State.APPLIED)


def test_next_step_of_an_ineffective_case_is_written_if_the_queue_is_still_in_heal_mode(
    account: Account, plan_stub: PlanStub
) -> None:
    queue = make_ineffective_case(account)
    plan_stub.set_steps(RAISE_AGAIN)
    assert continue_newest_case(account).refusal is None
    assert (account.visibility(queue), load_newest_case(account).state) == (68, State.APPLIED)


def test_approved_case_expires_if_the_queue_is_healthy_by_now(
    account: Account, plan_stub: PlanStub
) -> None:
    queue = make_approved_case(account)
    plan_stub.set_steps()
    reason = assert_case_ends(account, queue, State.EXPIRED, "healthy")
    assert reason == "the queue has what it needs by now"


def test_ineffective_case_escalates_if_the_queue_is_healthy_and_no_step_is_left(
    account: Account, plan_stub: PlanStub
) -> None:
    """Calls still fail, so a person has to look."""
    queue = make_ineffective_case(account)
    plan_stub.set_steps()
    reason = assert_case_ends(account, queue, State.ESCALATED, "healthy")
    assert "Mendq has no further step: the queue has what it needs by now" in reason
    assert len(account.pages("urgent")) == 1


def recreate_queue(account: Account, queue: str) -> None:
    """Replace the queue by another one of the same name with the same attributes."""
    account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    account.later(minutes=2)
    account.queue(tag="heal", VisibilityTimeout="30")


@pytest.mark.parametrize(
    ("make_waiting_case", "step", "state"),
    [(make_approved_case, RAISE, State.EXPIRED), (make_ineffective_case, RAISE, State.ESCALATED)],
)
def test_waiting_case_ends_unwritten_if_the_queue_was_recreated(
    account: Account,
    plan_stub: PlanStub,
    make_waiting_case: Callable[[Account], str],
    step: AttributeStep,
    state: State,
) -> None:
    queue = make_waiting_case(account)
    recreate_queue(account, queue)
    plan_stub.set_steps(step)
    reason = assert_case_ends(account, queue, state, "another_queue")
    assert "there is another queue of that name by now" in reason


@pytest.mark.parametrize(
    "steps",
    [
        (SetVisibilityTimeout(30, 46),),
        (SetVisibilityTimeout(31, 45),),
        (RAISE, CreateDlq("", arn_of_dlq("arn:aws:sqs:us-east-1:123456789012:orders.fifo"))),
    ],
)
def test_approved_case_expires_if_the_plan_differs_from_the_approved_one(
    account: Account, plan_stub: PlanStub, steps: tuple[AttributeStep, ...]
) -> None:
    queue = make_approved_case(account)
    plan_stub.set_steps(*steps)
    assert "the queue has changed" in assert_case_ends(
        account, queue, State.EXPIRED, "plan_changed"
    )


@pytest.mark.parametrize("tag", ["off", "observe", "anything"])
def test_approved_case_expires_if_the_queue_is_off_or_only_observed_by_now(
    account: Account, plan_stub: PlanStub, tag: str
) -> None:
    queue = make_approved_case(account)
    plan_stub.set_steps(RAISE)
    account.tag(queue, mendq=tag)
    reason = assert_case_ends(account, queue, State.EXPIRED, "not_any_more")
    assert reason == "Mendq may no longer change this queue"


@pytest.mark.parametrize("tag", ["off", "observe", "propose"])
def test_ineffective_case_escalates_if_the_queue_left_heal_mode(
    account: Account, plan_stub: PlanStub, tag: str
) -> None:
    queue = make_ineffective_case(account)
    plan_stub.set_steps(RAISE_AGAIN)
    account.tag(queue, mendq=tag)
    assert "may no longer change" in assert_case_ends(
        account, queue, State.ESCALATED, "not_any_more"
    )


@pytest.mark.parametrize("at_most", [Mode.OBSERVE, Mode.PROPOSE])
def test_ineffective_case_escalates_if_its_next_step_needs_approval(
    account: Account, plan_stub: PlanStub, at_most: Mode
) -> None:
    queue = make_ineffective_case(account)
    plan_stub.set_steps(RAISE_AGAIN, at_most=at_most)
    reason = assert_case_ends(account, queue, State.ESCALATED, "not_by_itself")
    assert "a person has to see this step first" in reason


def test_plan_that_needs_approval_is_written_once_a_person_approved_its_case(
    account: Account, plan_stub: PlanStub
) -> None:
    queue = make_approved_case(account)
    plan_stub.set_steps(RAISE, at_most=Mode.PROPOSE)
    assert continue_newest_case(account).refusal is None
    assert account.visibility(queue) == 45


def test_ineffective_case_escalates_if_another_lambda_owns_its_next_step(
    account: Account, plan_stub: PlanStub
) -> None:
    """Heal's role may not create queues, and heal does not try."""
    queue = make_ineffective_case(account)
    plan_stub.set_steps(CreateDlq("", arn_of_dlq(queue)))
    reason = assert_case_ends(account, queue, State.ESCALATED, "another_owner")
    assert "attach_dlq would take the next step" in reason


def test_approved_case_is_refused_and_unchanged_by_a_lambda_that_does_not_own_its_step(
    account: Account,
) -> None:
    queue = make_approved_case(account)
    before = account.attributes(queue)
    items = account.case_store_items()
    outcome = continue_case(
        make_owner_request(load_newest_case(account)), make_owner_run("access_denied", account)
    )
    assert outcome.refusal is not None
    assert outcome.refusal.code == "another_owner"
    assert (account.attributes(queue), account.case_store_items()) == (before, items)


@pytest.mark.parametrize(
    ("make_waiting_case", "state"),
    [(make_approved_case, State.EXPIRED), (make_ineffective_case, State.ESCALATED)],
)
def test_waiting_case_ends_unwritten_if_its_symptom_has_no_plan_any_more(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    make_waiting_case: Callable[[Account], str],
    state: State,
) -> None:
    """Another version of Mendq had a plan for the symptom."""
    queue = make_waiting_case(account)
    monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, replace(SYMPTOM_BY_NAME[SYMPTOM], plan=None))
    assert "it is only counted" in assert_case_ends(account, queue, state, "count_only")


@pytest.mark.parametrize("make_waiting_case", [make_approved_case, make_ineffective_case])
def test_waiting_case_keeps_waiting_unwritten_if_its_plan_is_to_retry(
    account: Account, plan_stub: PlanStub, make_waiting_case: Callable[[Account], str]
) -> None:
    queue = make_waiting_case(account)
    plan_stub.set_answer(Retry("too_soon", "in a moment"))
    before = account.attributes(queue)
    case = load_newest_case(account)
    outcome = continue_newest_case(account)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "too_soon"
    assert (account.attributes(queue), load_newest_case(account)) == (before, case)
