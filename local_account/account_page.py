"""What the account says of itself, and what it does beside AWS's calls.

GET /_mendq/account; GET, PUT and DELETE of what can be switched: /_mendq/sqs-errors as
`sqs/errors.py` says, /_mendq/access-analyzer as `permissions.py`, /_mendq/mails as `mail.py`. POST
/_mendq/fire with {"schedule": name, "time": "2026-11-10T02:00:00Z"}, /_mendq/earlier as
`emulator.py` says, and /_mendq/move-task with {"queue_arn": .., "status": "RUNNING"}, and a
"destination_arn" if it has one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
PATH = "/_mendq/account"
FIRE_PATH = "/_mendq/fire"
EARLIER_PATH = "/_mendq/earlier"
MOVE_TASK_PATH = "/_mendq/move-task"
SQS_ERRORS_PATH = "/_mendq/sqs-errors"
ACCESS_ANALYZER_PATH = "/_mendq/access-analyzer"
MAILS_PATH = "/_mendq/mails"
Answer = tuple[int, Mapping[str, Any]]
Action = Callable[[Any], Mapping[str, Any]]


class SwitchRefused(Exception):
    """What was asked of the running account cannot be done; the text is one line with the
    remedy.
    """


class NotFired(Exception):
    """The reason why a schedule's target was not invoked."""


class Switch(Protocol):
    """One thing that is off at first; it stands at a path of its own."""

    def replace(self, asked: object) -> None:
        """Have exactly what was asked for; raises SwitchRefused and changes nothing."""

    def end(self) -> None:
        """Have it off."""

    def as_json(self) -> dict[str, Any]:
        """What is on now."""


@dataclass(frozen=True)
class AccountPage:
    """An ASGI application around another: it answers a few paths itself.

    `actions` take the JSON of a POST and raise SwitchRefused or NotFired; `switches` are told what
    they are to be.
    """

    inner: Application
    describe: Callable[[], Mapping[str, Any]]
    actions: Mapping[str, Action]
    switches: Mapping[str, Switch]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path not in {PATH, *self.actions, *self.switches}:
            await self.inner(scope, receive, send)
            return
        try:
            status, body = self._answer(path, scope["method"], await whole_body(receive))
        except (SwitchRefused, NotFired) as refused:
            status, body = 409 if isinstance(refused, NotFired) else 400, {"message": f"{refused}"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{json.dumps(body)}\n".encode()})

    def _answer(self, path: str, method: str, body: bytes) -> Answer:
        try:
            asked = json.loads(body)
        except ValueError:
            asked = None  # nothing that anybody takes
        if path == PATH:
            return 200, self.describe()
        if action := self.actions.get(path):
            return 200, action(asked)
        switch = self.switches[path]
        if method == "DELETE":
            switch.end()
        elif method == "PUT":
            switch.replace(asked)
        elif method != "GET":
            return 405, {"message": "send GET, PUT or DELETE"}
        return 200, switch.as_json()


def firing(fire: Callable[[str, datetime], str]) -> Action:
    """The action that fires a schedule."""

    def act(asked: Any) -> Mapping[str, Any]:
        try:
            name, scheduled_at = str(asked["schedule"]), datetime.fromisoformat(asked["time"])
        except (ValueError, TypeError, KeyError):
            example = '{"schedule": name, "time": "2026-11-10T02:00:00Z"}'
            raise SwitchRefused(f"send {example}") from None
        if scheduled_at.tzinfo is None:
            raise SwitchRefused("time: say which zone, as in 2026-11-10T02:00:00Z")
        return {"execution_id": fire(name, scheduled_at)}

    return act


async def whole_body(receive: Receive) -> bytes:
    """The body of a request, however many parts it comes in."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return b"".join(parts)
