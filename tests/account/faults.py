"""Faults at AWS calls, and the way the intake queue delivers again after one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from tests.account.account import Account, list_clients

# The intake queue delivers again after its visibility timeout.
REDELIVERED_AFTER_MINUTES = 7
EVENTS = {
    "killed_before": "before-call",
    "killed_after": "after-call",
    "answer_lost": "before-send",
}
KINDS = tuple(EVENTS)

# DynamoDB's answers when it is busy, by the reason in a cancelled transaction: the error code for a
# single item. Neither moto nor the account in memory gives them on its own.
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
BUSY = {
    "TransactionConflict": "TransactionConflictException",
    "ThrottlingError": "ThrottlingException",
    "ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException",
}
TRANSACTIONS = frozenset({"TransactGetItems", "TransactWriteItems"})
MEETS_OTHERS = TRANSACTIONS | {"DeleteItem", "PutItem", "UpdateItem"}


def busy_answer(operation: str, parts: int, reason: str = "TransactionConflict") -> Any:
    """DynamoDB's answer to an operation on an item that others are at; it has changed nothing.

    Of a transaction with so many `parts` only the last one met somebody.
    """
    code = BUSY[reason]
    more = {}
    if operation in TRANSACTIONS:
        code = "TransactionCanceledException"
        reasons = [{"Code": "None"}] * (parts - 1) + [{"Code": reason, "Message": "it is busy"}]
        more = {"CancellationReasons": reasons}
    error = {"Code": code, "Message": f"{reason}: it is busy"}
    return SimpleNamespace(status_code=400), {"Error": error, **more}


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


class AtCall:
    """Acts at the call with this number, and as many `times`; `call` names the one it came to.

    `calls` counts those that came by while it was not deaf.
    """

    is_deaf = False
    times = 1
    kind = ""

    def __init__(
        self, account: Account, event: str, strike_at: int, clients: Sequence[Any] = ()
    ) -> None:
        self.strike_at = strike_at
        self.calls = 0
        self.call = ""
        self._event = event
        among = clients or list_clients(account.clients)
        self._emitters: list[Any] = [client.meta.events for client in among]
        for emitter in self._emitters:
            emitter.register_last(event, self._come_by)

    @property
    def struck(self) -> bool:
        return bool(self.call)

    def act(self, operation: str, **event: Any) -> Any:
        """Apply the fault. Return AWS's answer, or None if the call goes on as usual."""
        raise NotImplementedError

    def is_meant(self, operation: str) -> bool:  # noqa: ARG002 - for those that pick
        """Return True if it could act at this operation; others are not counted."""
        return True

    def leave(self) -> None:
        """Come by at no further call."""
        for emitter in self._emitters:
            emitter.unregister(self._event, self._come_by)

    def _come_by(self, event_name: str, **event: Any) -> Any:
        operation = event_name.rpartition(".")[2]
        if self.is_deaf or not self.is_meant(operation):
            return None
        self.calls += 1
        if not 0 <= self.calls - self.strike_at < self.times:
            return None
        self.call = event_name.partition(".")[2]
        return self.act(operation, **event)


class Fault(AtCall):
    """Strikes once: the process is killed before or after a call, or the call's answer is lost."""

    def __init__(
        self, account: Account, kind: str, strike_at: int, clients: Sequence[Any] = ()
    ) -> None:
        super().__init__(account, EVENTS[kind], strike_at, clients)
        self.kind = kind

    def act(self, operation: str, **event: Any) -> Any:  # noqa: ARG002 - it is the same at any
        if self.kind == "answer_lost":
            raise ReadTimeoutError(endpoint_url="moto")
        raise Killed


class BusyCaseStore(AtCall):
    """DynamoDB answers one of its calls, or as many `times` in a row, that it is busy.

    `reason` is one of BUSY. It counts the calls that can meet others at an item; `operations`
    picks among them.
    """

    def __init__(
        self,
        account: Account,
        reason: str,
        strike_at: int = 1,
        *,
        times: int = 1,
        operations: frozenset[str] = MEETS_OTHERS,
    ) -> None:
        self.kind = reason
        self.times = times
        self.operations = operations
        super().__init__(account, "before-call.dynamodb", strike_at, [account.clients.dynamodb])

    def is_meant(self, operation: str) -> bool:
        return operation in self.operations

    def act(self, operation: str, **event: Any) -> Any:
        parts = len(json.loads(event["params"]["body"]).get("TransactItems", []))
        return busy_answer(operation, parts, self.kind)


def fault_of(account: Account, kind: str, strike_at: int) -> Fault | BusyCaseStore:
    """A fault of any of KINDS, or of BUSY."""
    maker = BusyCaseStore if kind in BUSY else Fault
    return maker(account, kind, strike_at)


def come_between(account: Account, at: str, act: Callable[[], object], nth: int = 1) -> None:
    """Do something once, at the n-th call from now on of a name such as `sqs.ListQueues`."""
    came: list[int] = []

    def come(**_: Any) -> None:
        came.append(1)
        if len(came) == nth:
            act()

    events = getattr(account.clients, at.partition(".")[0]).meta.events
    events.register(f"before-call.{at}", come)


def calls_of(account: Account) -> list[str]:
    """The operations that are asked for from now on."""
    made: list[str] = []
    for client in list_clients(account.clients):
        client.meta.events.register_first("before-call", lambda model, **_: made.append(model.name))
    return made
