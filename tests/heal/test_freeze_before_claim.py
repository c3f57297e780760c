"""A freeze that is set between Mendq's read and its claim still stops the write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mendq.heal.outcome import Outcome
from tests.account.account import Account
from tests.account.faults import calls_of, come_between
from tests.heal.builders import continue_newest_case, make_approved_case, make_ineffective_case
from tests.heal.operators import (
    fail_calls,
    list_states,
    load_newest_case,
    roll_back,
)

# The claim is the first transaction that writes.
CLAIM = "dynamodb.TransactWriteItems"


def list_claims_and_snapshots(account: Account) -> list[tuple[str, str]]:
    """Return the keys of the items that only a write to a queue creates."""
    items = account.case_store_items()
    return [
        key
        for key, item in items.items()
        if "claim_owner" in item or key[1].startswith(("snapshot#", "writes#"))
    ]


def get_refusal_code(outcome: Outcome) -> str:
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
    assert get_refusal_code(outcome) == "frozen"
    assert "SetQueueAttributes" not in calls
    assert account.attributes(queue) == before
    assert "applied" not in list_states(account)
    assert list_claims_and_snapshots(account) == []


@pytest.mark.parametrize("make_waiting_case", [make_approved_case, make_ineffective_case])
def test_waiting_case_keeps_waiting_unwritten_if_a_freeze_is_set_just_before_its_claim(
    account: Account, make_waiting_case: Callable[[Account], str]
) -> None:
    queue = make_waiting_case(account)
    before = account.attributes(queue)
    case = load_newest_case(account)
    held = list_claims_and_snapshots(account)
    calls = calls_of(account)
    come_between(account, CLAIM, account.freeze)
    assert get_refusal_code(continue_newest_case(account)) == "frozen"
    assert "SetQueueAttributes" not in calls
    assert account.attributes(queue) == before
    assert load_newest_case(account) == case, "it goes on waiting"
    assert list_claims_and_snapshots(account) == held


def test_rollback_continues_if_a_freeze_is_set_just_before_its_claim(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue)
    account.later(minutes=5)
    come_between(account, CLAIM, account.freeze)
    assert roll_back(account, load_newest_case(account).case_id)["state"] == "rolled_back"
    assert account.visibility(queue) == 30
