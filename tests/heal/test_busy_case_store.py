"""While the case store is busy, heal, approve, rollback and follow_up finish later.

DynamoDB cancels a transaction if another one uses the same item, or if it has no capacity left.
`make prove` cancels every call of many more stories in that way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from mendq.aws.errors import CaseStoreUnavailable
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from mendq.model.mode import Mode
from tests.account.account import Account, make_settings, moto_account
from tests.account.calm_metrics import CalmMetrics
from tests.account.faults import BUSY, TRANSACTIONS, BusyCaseStore, calls_of
from tests.heal.operators import (
    OWNERS,
    Heal,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    make_failing_queue,
    move_case,
    roll_back,
    send_decision,
)

# Conflicts that a run meets in a row before it leaves the rest to the next run.
CONFLICTS = 4
UPDATES = frozenset({"UpdateItem"})


@dataclass
class FinalState:
    """The state that people can see after a story.

    `writes` counts the calls that change a queue. `subjects` are those of all notifications.
    """

    visibility: int
    states: list[str]
    writes: int
    subjects: list[str]
    claims: list[tuple[str, str]]


@dataclass
class Story:
    """One story about a case. `begin` prepares it and returns the action, which runs twice."""

    begin: Callable[[Account], Callable[[], object]]
    visibility: int
    states: list[str]
    writes: int = 1
    again_after_minutes: float = 7


def begin_heal(account: Account) -> Callable[[], object]:
    """Prepare failed calls that the intake queue delivers until heal accepts them."""
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    bodies = account.late_deletes(queue, "1", "2", "3")
    return lambda: account.heal(bodies)


def begin_approval(account: Account) -> Callable[[], object]:
    account.settings = make_settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    make_failing_queue(account, "propose")
    case_id = load_newest_case(account).case_id
    return lambda: send_decision(account, "approve", case_id)


def begin_decline(account: Account) -> Callable[[], object]:
    make_failing_queue(account, "propose")
    case_id = load_newest_case(account).case_id
    return lambda: send_decision(account, "decline", case_id)


def begin_rollback(account: Account) -> Callable[[], object]:
    make_failing_queue(account)
    case_id = load_newest_case(account).case_id
    return lambda: roll_back(account, case_id)


def run_follow_up(account: Account) -> None:
    """Run one minute of follow_up. A failing case does not raise."""
    follow_up(make_context(account), OWNERS, lambda: 60)


def begin_verification(account: Account) -> Callable[[], object]:
    """Prepare a fix after which messages are deleted again."""
    make_failing_queue(account)
    CalmMetrics(account.clients, delete_count=7)
    account.later(minutes=20)
    return lambda: run_follow_up(account)


def begin_next_step(account: Account) -> Callable[[], object]:
    """Prepare a fix that did not help: follow_up calls heal, which writes again."""
    queue = make_failing_queue(account)
    account.later(minutes=40)
    fail_calls(account, queue, "again-")
    events: Any = account.clients.functions.meta.events

    def answer_invoke(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        with suppress(CaseStoreUnavailable):
            continue_case(json.loads(params["body"]), account.run())
        return SimpleNamespace(status_code=202), {"StatusCode": 202}

    events.register("before-call.lambda.Invoke", answer_invoke)
    return lambda: run_follow_up(account)


STORIES = {
    "heal": Story(begin_heal, 45, ["applied"]),
    "approve": Story(
        begin_approval, 45, ["proposed", "approved", "applied"], again_after_minutes=3
    ),
    "decline": Story(begin_decline, 30, ["proposed", "declined"], writes=0),
    "rollback": Story(begin_rollback, 30, ["applied", "rolled_back"], again_after_minutes=3),
    "follow_up, verified": Story(
        begin_verification, 45, ["applied", "verified", "watching"], writes=0
    ),
    "follow_up, and heal's next step": Story(
        begin_next_step, 68, ["applied", "ineffective", "applied"]
    ),
}


def play_story(story: Story, reason: str, strike_at: int, times: int = 1) -> tuple[str, FinalState]:
    """Play a story while DynamoDB cancels one transaction, and then undisturbed.

    Return the cancelled call (empty if the story has fewer transactions) and the final state.
    """
    with moto_account() as account:
        act = story.begin(account)
        calls = calls_of(account)
        busy = BusyCaseStore(account, reason, strike_at, times=times, operations=TRANSACTIONS)
        act()
        busy.leave()
        for _ in range(2):
            account.later(minutes=story.again_after_minutes)
            act()
        items = account.case_store_items()
        queues = [key[0] for key in items if key[1].startswith("case#")]
        return busy.call, FinalState(
            visibility=account.visibility(queues[0]),
            states=list_states(account),
            writes=calls.count("SetQueueAttributes"),
            subjects=[subject for subject, _ in account.pages("urgent") + account.pages("info")],
            claims=[key for key, item in items.items() if "claim_owner" in item],
        )


@pytest.mark.parametrize("name", STORIES)
def test_case_ends_the_same_whichever_transaction_dynamodb_cancels(name: str) -> None:
    story = STORIES[name]
    reasons = sorted(BUSY)
    _, undisturbed = play_story(story, reasons[0], 0)
    assert undisturbed.states == story.states
    assert undisturbed.visibility == story.visibility
    assert undisturbed.writes == story.writes
    assert undisturbed.claims == []
    for strike_at in count(1):
        reason = reasons[strike_at % len(reasons)]
        times = CONFLICTS if reason == "TransactionConflict" else 1
        call, final_state = play_story(story, reason, strike_at, times)
        if not call:
            break
        assert final_state == undisturbed, f"{reason} at {call}, transaction {strike_at}"
    assert strike_at > 2, "a look and a record at least"


@pytest.mark.parametrize("operation", sorted(TRANSACTIONS))
def test_single_transaction_conflict_is_retried_without_an_error(
    account: Account, operation: str
) -> None:
    act = begin_heal(account)
    busy = BusyCaseStore(account, "TransactionConflict", 1, operations=frozenset({operation}))
    assert act().error_by_message_id == {}  # type: ignore[attr-defined]
    assert busy.call.endswith(operation)
    assert list_states(account) == ["applied"]


@pytest.mark.parametrize("reason", BUSY)
def test_heal_writes_nothing_and_returns_the_calls_for_retry_if_its_claim_is_always_cancelled(
    account: Account, reason: str
) -> None:
    act = begin_heal(account)
    calls = calls_of(account)
    writing = frozenset({"TransactWriteItems"})
    BusyCaseStore(account, reason, 1, times=1_000, operations=writing)
    result: Any = act()
    assert "SetQueueAttributes" not in calls
    assert len(result.error_by_message_id) == 3
    assert {type(error) for error in result.error_by_message_id.values()} == {CaseStoreUnavailable}
    assert "the case store was busy" in str(next(iter(result.error_by_message_id.values())))
    assert account.transitions() == []


@pytest.mark.parametrize("reason", BUSY)
def test_approve_changes_nothing_and_asks_for_a_retry_while_the_case_store_is_busy(
    account: Account, reason: str
) -> None:
    act = begin_approval(account)
    queue_arn = load_newest_case(account).queue_arn
    busy = BusyCaseStore(account, reason, 1, times=1_000, operations=TRANSACTIONS)
    answer: Any = act()
    assert answer["error"] == "unavailable"
    assert "ask again in two minutes" in answer["reason"]
    assert account.visibility(queue_arn) == 30
    busy.leave()
    assert list_states(account) == ["proposed"]
    answer = act()
    assert answer["state"] == "applied"
    assert account.visibility(queue_arn) == 45


def test_failed_call_whose_update_met_a_conflict_once_still_counts_as_evidence(
    account: Account,
) -> None:
    """One failed call is too little evidence to act on. Heal stores the call with an update of one
    item.
    """
    queue_arn = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    busy = BusyCaseStore(account, "TransactionConflict", 1, operations=UPDATES)
    assert account.heal(account.late_deletes(queue_arn, "1")).error_by_message_id == {}
    assert busy.struck
    account.heal(account.late_deletes(queue_arn, "2", "3"))
    assert account.visibility(queue_arn) == 45, "the first call counts"


@pytest.mark.parametrize("reason", BUSY)
def test_failed_call_that_cannot_be_stored_counts_as_evidence_once_it_is_redelivered(
    account: Account, reason: str
) -> None:
    queue_arn = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    busy = BusyCaseStore(account, reason, 1, times=CONFLICTS, operations=UPDATES)
    bodies = account.late_deletes(queue_arn, "1")
    result = account.heal(bodies)
    assert [*result.error_by_message_id] == [*bodies]
    busy.leave()
    assert account.heal(bodies).error_by_message_id == {}
    account.heal(account.late_deletes(queue_arn, "2", "3"))
    assert account.visibility(queue_arn) == 45


def test_follow_up_closes_two_of_three_cases_if_the_store_is_busy_once_and_the_third_next_time(
    account: Account,
) -> None:
    cases = []
    for name in ("a.fifo", "b.fifo", "c.fifo"):
        queue_arn = account.queue(name, VisibilityTimeout="30")
        fail_calls(account, queue_arn, name)
        cases.append(load_newest_case(account))
        account.later(seconds=1)
    for case in cases:
        move_case(account, case, "escalated")
    account.later(hours=2)
    for case in cases:
        account.clients.sqs.delete_queue(QueueUrl=account.url(case.queue_arn))
    busy = BusyCaseStore(
        account, "ThrottlingError", 1, operations=frozenset({"TransactWriteItems"})
    )
    result = follow_up(make_context(account), OWNERS, lambda: 60)
    assert busy.struck
    assert len(result.errors) == 1
    assert len(result.moved_cases) == 2
    account.later(minutes=6)
    result = follow_up(make_context(account), OWNERS, lambda: 60)
    assert result.errors == {}
    assert len(result.moved_cases) == 1
    assert list_states(account).count("closed") == 3
