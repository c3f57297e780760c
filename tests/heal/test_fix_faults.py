"""Killed at any AWS call, before or after it, or its answer lost: the queue ends the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.heal.conftest import Account
from tests.heal.faults import KINDS, Fault, deliver_until_taken


def _healed_with(account: Account, kind: str, strike_at: int) -> int:
    queue = account.queue(VisibilityTimeout="30")
    fault = Fault(account, kind, strike_at)
    assert deliver_until_taken(account, account.late_deletes(queue, "1", "2", "3"))
    calls, fault.strike_at = fault.calls, -1
    assert account.visibility(queue) == 45
    (transition,) = account.transitions()
    assert transition["to"] == "applied"
    items = account.case_store_items()
    assert items[queue, "case#visibility_timeout_too_short"]["state"] == {"S": "applied"}
    assert '"VisibilityTimeout": "30"' in _snapshot(items)
    attribute = items[queue, "attribute#VisibilityTimeout"]
    assert "claim_owner" not in attribute
    assert attribute["person_value"] == {"S": "30"}
    assert "queue_created_at" in attribute
    return calls


def _snapshot(items: dict[tuple[str, str], dict[str, Any]]) -> str:
    (snapshot,) = (item for (_, sk), item in items.items() if sk.startswith("snapshot#"))
    return str(snapshot["configuration"]["S"])


# A fixed queue takes this many calls; `test_every_call_was_struck` fails when it grows.
CALLS = 12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strike_at", range(1, CALLS + 1))
def test_it_ends_the_same(account: Account, kind: str, strike_at: int) -> None:
    assert _healed_with(account, kind, strike_at) >= strike_at


def test_every_call_was_struck(account: Account) -> None:
    assert _healed_with(account, "killed_before", strike_at=-1) == CALLS
