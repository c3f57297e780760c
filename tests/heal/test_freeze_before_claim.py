"""A freeze that comes after Mendq has looked, and before it writes, still stops the write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from tests.account.account import Account
from tests.account.faults import calls_of, come_between
from tests.heal.operators import (
    fail_calls,
    list_states,
    load_newest_case,
    make_failing_queue,
    make_owner_run,
    move_case,
    roll_back,
)

# The claim is the first transaction that writes.
CLAIM = "dynamodb.TransactWriteItems"


def claims_and_snapshots(account: Account) -> list[tuple[str, str]]:
    """The items of the case store that only a write brings about."""
    items = account.case_store_items()
    return [
        key
        for key, item in items.items()
        if "claim_owner" in item or key[1].startswith(("snapshot#", "writes#"))
    ]


def approved(account: Account) -> str:
    """A queue for which a person approved 30 -> 45 a while ago."""
    queue = make_failing_queue(account, "propose")
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=5)
    return queue


def ineffective(account: Account) -> str:
    """A queue for which heal wrote 30 -> 45, which did not help."""
    queue = make_failing_queue(account)
    account.later(hours=1)
    move_case(account, load_newest_case(account), "ineffective")
    account.later(minutes=5)
    return queue


def taken_up(account: Account) -> Outcome:
    case = load_newest_case(account)
    return continue_case(make_owner_request(case), make_owner_run(case.symptom, account))


def code_of(outcome: Outcome) -> str:
    return outcome.refusal.code if outcome.refusal else ""


def test_fix_is_not_written_if_a_freeze_is_set_just_before_the_claim(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    bodies = account.late_deletes(queue, "1", "2", "3")
    before = account.attributes(queue)
    calls = calls_of(account)
    come_between(account, CLAIM, account.freeze)
    (outcome,) = account.heal(bodies).outcome_by_group.values()
    assert code_of(outcome) == "frozen"
    assert "SetQueueAttributes" not in calls
    assert account.attributes(queue) == before
    assert "applied" not in list_states(account)
    assert claims_and_snapshots(account) == []


@pytest.mark.parametrize("waits", [approved, ineffective])
def test_waiting_case_is_not_written_if_a_freeze_is_set_just_before_the_claim(
    account: Account, waits: Callable[[Account], str]
) -> None:
    queue = waits(account)
    before = account.attributes(queue)
    case = load_newest_case(account)
    held = claims_and_snapshots(account)
    calls = calls_of(account)
    come_between(account, CLAIM, account.freeze)
    assert code_of(taken_up(account)) == "frozen"
    assert "SetQueueAttributes" not in calls
    assert account.attributes(queue) == before
    assert load_newest_case(account) == case, "it goes on waiting"
    assert claims_and_snapshots(account) == held


def test_rollback_continues_if_a_freeze_is_set_just_before_its_claim(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue)
    account.later(minutes=5)
    come_between(account, CLAIM, account.freeze)
    assert roll_back(account, load_newest_case(account).case_id)["state"] == "rolled_back"
    assert account.visibility(queue) == 30
