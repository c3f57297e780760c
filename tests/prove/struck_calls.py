"""Stands between clients and what answers them: counts calls, and lets something happen at one.

A process that was killed makes no further call, whatever its `finally` would like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from mendq.aws.clients import Clients
from tests.account.account import list_clients
from tests.account.faults import MEETS_OTHERS, Killed, busy_answer

# `sent_twice`: the answer was lost, and botocore asked again by itself. `conflict` and `throttled`:
# DynamoDB cancels a transaction, or refuses to write an item; at other calls nothing happens.
KINDS = ("killed_before", "killed_after", "answer_lost", "sent_twice", "refused", "throttled")
BUSY_REASONS = {"conflict": "TransactionConflict", "throttled": "ThrottlingError"}
_BUSY = {"Error": {"Code": "ServiceUnavailable", "Message": "Try again."}}
_REFUSED = (SimpleNamespace(status_code=503), _BUSY)

Strike = str | Callable[[], object]
Answering = Callable[[str, Mapping[str, Any]], Any]


@dataclass
class StruckCalls:
    """AWS calls of which some fail. `answers` returns an operation's answer, or None to go on.

    `strikes` by number of the call within this run, `heard` its operations; `struck` counts what
    came to one.
    """

    answers: Answering
    strikes: Mapping[int, Strike] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    is_dead: bool = False
    struck: Counter[tuple[str, str]] = field(default_factory=Counter)

    @contextmanager
    def run(self, strikes: Mapping[int, Strike] | None = None) -> Iterator[None]:
        """One process, which may run in the midst of another."""
        before = self.strikes, self.heard, self.is_dead
        self.strikes = strikes or {}
        self.heard = []
        self.is_dead = False
        try:
            yield
        finally:
            self.strikes, self.heard, self.is_dead = before

    def listen(self, clients: Clients) -> None:
        """For as long as these clients live."""
        for client in list_clients(clients):
            asks_again = client is not clients.sqs_for_writing
            client.meta.events.register("before-parameter-build", _note)
            before = partial(self._before, asks_again=asks_again)
            client.meta.events.register("before-call", before)
            client.meta.events.register("after-call", self._after)

    def _before(self, model: Any, context: dict[str, Any], *, asks_again: bool, **_: Any) -> Any:
        if self.is_dead:
            raise Killed
        self.heard.append(model.name)
        strike = self.strikes.get(len(self.heard), "")
        kind = strike if isinstance(strike, str) else ""
        context["strike"] = kind
        if kind:
            self.struck[model.name, kind] += 1
        elif not isinstance(strike, str):
            strike()
        if kind == "killed_before":
            self._die()
        if kind == "refused":
            return _REFUSED
        if kind in BUSY_REASONS and model.name in MEETS_OTHERS:
            parts = len(context["asked"].get("TransactItems", []))
            return busy_answer(model.name, parts, BUSY_REASONS[kind])
        answer = self.answers(model.name, context["asked"])
        if kind == "sent_twice" and asks_again and answer is not None:
            answer = self.answers(model.name, context["asked"])
        return answer

    def _after(self, context: dict[str, Any], **_: Any) -> None:
        kind = context.get("strike")
        if kind == "killed_after":
            self._die()
        if kind == "answer_lost":
            raise ReadTimeoutError(endpoint_url="memory")

    def _die(self) -> None:
        self.is_dead = True
        raise Killed


def _note(params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["asked"] = params
