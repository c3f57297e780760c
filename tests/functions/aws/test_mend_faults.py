"""Killed at any AWS call, before or after it, or its answer lost: the queue ends the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.functions.aws.conftest import Account, every_client

# The intake queue delivers again after its visibility timeout.
REDELIVERED_AFTER_MINUTES = 7
DELIVERIES = 3


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


class Fault:
    """Strikes once, at the call with this number."""

    def __init__(self, account: Account, kind: str, strike_at: int) -> None:
        self.strike_at, self.kind, self.calls = strike_at, kind, 0
        self.landed = False
        hooks: dict[str, tuple[str, Callable[..., None]]] = {
            "killed_before": ("before-call", self._kill),
            "killed_after": ("after-call", self._kill),
            "answer_lost": ("before-send", self._lose),
        }
        clients = account.clients
        for client in every_client(clients):
            event, hook = hooks[kind]
            client.meta.events.register_last(event, hook)

    def _strikes(self) -> bool:
        self.calls += 1
        return self.calls == self.strike_at

    def _kill(self, **_: Any) -> None:
        if self._strikes():
            raise Killed

    def _lose(self, **_: Any) -> None:
        if self._strikes():
            raise ReadTimeoutError(endpoint_url="moto")


def _deliver(account: Account, bodies: dict[str, str]) -> None:
    for _ in range(DELIVERIES):
        try:
            if not account.heal(bodies).errors:
                return
        except Killed:
            pass
        account.later(minutes=REDELIVERED_AFTER_MINUTES)


def _healed_with(account: Account, kind: str, strike_at: int) -> int:
    queue = account.queue(VisibilityTimeout="30")
    fault = Fault(account, kind, strike_at)
    _deliver(account, account.late_deletes(queue, "1", "2", "3"))
    calls, fault.strike_at = fault.calls, -1
    assert account.visibility(queue) == 45
    (transition,) = account.transitions()
    assert transition["to"] == "applied"
    items = account.ledger_items()
    assert items[queue, "case#lease_expired"]["state"] == {"S": "applied"}
    assert '"VisibilityTimeout": "30"' in _snapshot(items)
    attribute = items[queue, "attribute#VisibilityTimeout"]
    assert "claim_owner" not in attribute
    assert attribute["person_value"] == {"N": "30"}
    return calls


def _snapshot(items: dict[tuple[str, str], dict[str, Any]]) -> str:
    (snapshot,) = (item for (_, sk), item in items.items() if sk.startswith("snapshot#"))
    return str(snapshot["configuration"]["S"])


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


# A mended queue takes this many calls; `test_every_call_was_struck` fails when it grows.
CALLS = 11


@pytest.mark.parametrize("kind", ["killed_before", "killed_after", "answer_lost"])
@pytest.mark.parametrize("strike_at", range(1, CALLS + 1))
def test_it_ends_the_same(account: Account, kind: str, strike_at: int) -> None:
    assert _healed_with(account, kind, strike_at) >= strike_at


def test_every_call_was_struck(account: Account) -> None:
    assert _healed_with(account, "killed_before", strike_at=-1) == CALLS
