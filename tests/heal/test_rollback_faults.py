"""A rollback killed at any AWS call, before or after it, or its answer lost: it ends the same."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from mendq.heal.approve import Document
from tests.heal.conftest import Account
from tests.heal.faults import KINDS, AtCall, Fault, Killed
from tests.heal.operators import case_of, context_of, fail, outcomes, states, undo

DELIVERIES = 3
# A rollback takes this many calls; `test_every_call_was_struck` fails when it grows.
CALLS, WRITE = 10, 7


def _asked_again(account: Account, case_id: str) -> Document:
    """The operator asks until there is an answer, two minutes apart."""
    answered: Document = {}
    for _ in range(DELIVERIES):
        with suppress(Killed):
            answered = undo(account, case_id)
        account.later(minutes=2)
    return answered


def _case_store(account: Account, queue: str) -> dict[str, Any]:
    """What is known of the queue, but for the moments."""
    items = account.case_store_items()
    attribute = items[queue, "attribute#VisibilityTimeout"]
    case = items[queue, "case#visibility_timeout_too_short"]
    return {
        "attribute": {
            name: value for name, value in attribute.items() if name != "overridden_until"
        },
        "is_overridden": "overridden_until" in attribute,
        "case": {name: case[name] for name in ("case_id", "n", "state", "symptom")},
        "is_open": "open" in case,
        "snapshots": {
            sk: json.loads(item["configuration"]["S"])["attributes"]["VisibilityTimeout"]
            for (_, sk), item in items.items()
            if sk.startswith("snapshot#")
        },
    }


def _rolled_back_with(account: Account, kind: str, strike_at: int) -> int:
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail(account, queue)
    account.later(minutes=5)
    case_id = case_of(account).case_id
    fault = Fault(account, kind, strike_at)
    answered = _asked_again(account, case_id)
    calls, fault.strike_at = fault.calls, -1
    assert fault.struck == (strike_at > 0)
    assert (answered["state"], outcomes(answered)) == (
        "rolled_back",
        {"VisibilityTimeout": "undone"},
    )
    assert account.visibility(queue) == 30
    assert states(account) == ["applied", "rolled_back"]
    retained = context_of(account).open_cases.transitions(case_id)
    assert [each.document() for each in retained] == account.transitions()
    case_store = _case_store(account, queue)
    assert case_store.pop("attribute").keys() == {
        "pk",
        "sk",
        "writes",
        "queue_created_at",
        "owes_a_notification",
    }
    assert case_store == {
        "is_overridden": True,
        "case": {
            "case_id": {"S": case_id},
            "n": {"N": "2"},
            "state": {"S": "rolled_back"},
            "symptom": {"S": "visibility_timeout_too_short"},
        },
        "is_open": False,
        "snapshots": {f"snapshot#{case_id}#1": "30"},
    }
    return calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strike_at", range(1, CALLS + 1))
def test_it_ends_the_same(account: Account, kind: str, strike_at: int) -> None:
    assert _rolled_back_with(account, kind, strike_at) >= strike_at


def test_every_call_was_struck(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    fail(account, queue)
    account.later(minutes=5)
    case_id = case_of(account).case_id
    fault = Fault(account, "killed_before", -1)
    undo(account, case_id)
    assert fault.calls == CALLS


@pytest.mark.parametrize("strike_at", range(1, CALLS + 1))
def test_a_persons_change_before_any_call_but_the_write_is_retained(
    account: Account, strike_at: int
) -> None:
    """The window that is left is the write itself: SQS has no conditional write."""
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail(account, queue)
    account.later(minutes=5)
    case_id = case_of(account).case_id
    person = _Person(account, queue, strike_at)
    answered = undo(account, case_id)
    assert account.visibility(queue) == (30 if strike_at == WRITE else 77)
    if strike_at < WRITE:
        assert outcomes(answered) == {"VisibilityTimeout": "kept"}
        assert states(account) == ["applied"]
        assert not {"claim_owner", "overridden_until"} & set(account.attribute_item(queue))
    assert (person.call == "sqs.SetQueueAttributes") == (strike_at == WRITE)


class _Person(AtCall):
    """Sets a value of their own before one of the calls."""

    def __init__(self, account: Account, queue: str, strike_at: int) -> None:
        self.account, self.queue = account, queue
        super().__init__(account, "before-call", strike_at)

    def act(self) -> None:
        self.account.set_visibility(self.queue, 77)
