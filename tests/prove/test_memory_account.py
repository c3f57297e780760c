"""The account in memory answers as moto does and leaves the same items and attributes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mendq.aws import errors
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from tests.account.account import Account
from tests.heal.operators import OWNERS, fail_calls, make_context, roll_back, send_decision
from tests.prove.memory_account import MemoryAccount, memory_account
from tests.prove.struck_calls import BUSY_REASONS
from tests.prove.world import world

NAME = "orders.fifo"
# What one spells otherwise than the other: tokens, and the times of a queue's attributes.
_TOKENS = re.compile(r"\b[0-9a-f]{32}\b")
_TIMES = re.compile(r"\b1\d{9}\.0\b")


def _life(account: Account, queue: str, case_id: Any) -> Iterator[Any]:
    """Yield the answers to a proposal, approval, failed fix, rollback, overruling and freeze."""

    def minutes(later: int) -> list[str]:
        account.later(minutes=later)
        done = follow_up(make_context(account), OWNERS, lambda: 60)
        return [repr(outcome) for outcome in (*done.moved_cases, *done.errors.values())]

    account.later(minutes=5)
    fail_calls(account, queue, "a")
    yield minutes(3)
    yield send_decision(account, "approve", case_id())
    yield roll_back(account, case_id(), dry_run=True)
    yield send_decision(account, "approve", case_id())
    account.later(minutes=5)
    fail_calls(account, queue, "b")
    yield minutes(31)
    yield roll_back(account, case_id())
    account.later(days=9)
    fail_calls(account, queue, "c")
    account.set(queue, VisibilityTimeout="20")
    yield minutes(60)
    account.freeze()
    account.later(days=9)
    fail_calls(account, queue, "d")
    yield minutes(3)
    yield account.visibility(queue)


def _list_items(items: dict[tuple[str, str], Any]) -> dict[tuple[str, str], str]:
    """The items, their sets in order and without tokens."""
    found = dict[tuple[str, str], str]()
    for key, item in items.items():
        with_sorted_sets = {name: _sort_set(typed) for name, typed in item.items()}
        text = json.dumps(with_sorted_sets, sort_keys=True)
        found[key] = _TOKENS.sub("token", _TIMES.sub(lambda at: at[0][:-2], text))
    return found


def _sort_set(typed: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: sorted(value) if isinstance(value, list) else value for kind, value in typed.items()
    }


def test_memory_account_gives_the_same_answers_and_items_as_moto_for_a_whole_case() -> None:
    with world() as theirs:
        queue = theirs.account.queue(NAME, "propose", VisibilityTimeout="30")
        attributes = theirs.account.attributes(queue)
        lived = [*_life(theirs.account, queue, lambda: theirs.case_id(queue))]
        left = _list_items(theirs.account.case_store_items())
    with memory_account(MemoryAccount) as ours:
        account = ours.account
        ours.invoke = lambda request: continue_case(request, account.run()).document()
        assert ours.make(NAME, 30, {"mendq": "propose"}) == queue
        ours.queues[NAME] = attributes, {"mendq": "propose"}

        def case_id() -> str:
            found = (item["case_id"]["S"] for item in ours.items.values() if "case_id" in item)
            return str(next(found))

        assert [*_life(account, queue, case_id)] == lived
        assert _list_items(ours.items) == left


def test_memory_account_write_whose_condition_fails_changes_no_item() -> None:
    with memory_account(MemoryAccount) as ours:
        store = make_context(ours.account).case_store
        key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        assert store.change(key, "SET n = :n", "attribute_not_exists(pk)", n=1)
        assert not store.change(key, "SET n = :n", "attribute_not_exists(pk)", n=2)
        put = {"Put": {"Item": {"pk": {"S": "c"}, "sk": {"S": "d"}}}}
        refused = {"Delete": {"Key": key, "ConditionExpression": "attribute_not_exists(pk)"}}
        assert store.transact([put, refused]) == 1
        assert [*ours.items] == [("a", "b")]
        assert ours.items["a", "b"]["n"] == {"N": "1"}


def test_memory_account_write_whose_answer_is_lost_raises_and_is_made_once() -> None:
    with memory_account(MemoryAccount) as ours:
        store = make_context(ours.account).case_store
        key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        assert store.change(key, "SET n = :n", n=1)
        with pytest.raises(errors.CaseStoreUnavailable), ours.calls.run({1: "answer_lost"}):
            store.change(key, "ADD n :n", n=2)
        assert store.get(key)["n"] == {"N": "3"}


@pytest.mark.parametrize("kind", BUSY_REASONS)
def test_memory_account_cancelled_transaction_changes_no_item_and_retries_only_conflicts(
    kind: str,
) -> None:
    """A conflict is tried once more at once; whatever else made DynamoDB busy is not."""
    with memory_account(MemoryAccount) as ours:
        store = make_context(ours.account).case_store
        put = {"Put": {"Item": {"pk": {"S": "c"}, "sk": {"S": "d"}}}}
        calls = range(1, 5)
        with (
            pytest.raises(errors.CaseStoreUnavailable, match="busy"),
            ours.calls.run(dict.fromkeys(calls, kind)),
        ):
            store.transact([put])
        assert ours.items == {}
        assert ours.calls.struck["TransactWriteItems", kind] == (4 if kind == "conflict" else 1)
        if kind == "conflict":
            with ours.calls.run({1: kind}):
                assert store.transact([put]) is None
            assert [*ours.items] == [("c", "d")]
