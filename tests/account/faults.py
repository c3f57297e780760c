"""Faults at AWS calls, and the way the intake queue delivers again after one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ReadTimeoutError

from tests.account.account import Account, every_client

# The intake queue delivers again after its visibility timeout.
REDELIVERED_AFTER_MINUTES = 7
EVENTS = {
    "killed_before": "before-call",
    "killed_after": "after-call",
    "answer_lost": "before-send",
}
KINDS = tuple(EVENTS)


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


class AtCall:
    """Acts once, at the call with this number; `call` names the one it came to.

    `calls` counts those that came by while it was not deaf.
    """

    is_deaf = False

    def __init__(
        self, account: Account, event: str, strike_at: int, clients: Sequence[Any] = ()
    ) -> None:
        self.strike_at, self.calls, self.call = strike_at, 0, ""
        self._event = event
        among = clients or every_client(account.clients)
        self._emitters: list[Any] = [each.meta.events for each in among]
        for each in self._emitters:
            each.register_last(event, self._come_by)

    @property
    def struck(self) -> bool:
        return bool(self.call)

    def act(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """Come by at no further call."""
        for each in self._emitters:
            each.unregister(self._event, self._come_by)

    def _come_by(self, event_name: str, **_: Any) -> None:
        if self.is_deaf:
            return
        self.calls += 1
        if self.calls == self.strike_at:
            self.call = event_name.partition(".")[2]
            self.act()


class Fault(AtCall):
    """Strikes once: the process is killed before or after a call, or the call's answer is lost."""

    def __init__(
        self, account: Account, kind: str, strike_at: int, clients: Sequence[Any] = ()
    ) -> None:
        super().__init__(account, EVENTS[kind], strike_at, clients)
        self.kind = kind

    def act(self) -> None:
        if self.kind == "answer_lost":
            raise ReadTimeoutError(endpoint_url="moto")
        raise Killed


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
    for each in every_client(account.clients):
        each.meta.events.register_first("before-call", lambda model, **_: made.append(model.name))
    return made
