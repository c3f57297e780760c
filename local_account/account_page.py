"""What the account says of itself, and what it does beside AWS's calls.

GET /_mendq/account; POST /_mendq/fire with {"schedule": name, "time": "2026-11-10T02:00:00Z"};
POST /_mendq/earlier, with what `sqs/earlier.py` says;
GET, PUT and DELETE /_mendq/sqs-errors and /_mendq/access-analyzer, with what
`sqs/error_switch.py` and `access_analyzer.py` say; GET and DELETE /_mendq/mails, as `ses/mails.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from datetime import datetime
from typing import Any

from local_account.cloudtrail.middleware import Application, Receive, Send
from local_account.scheduler.context import NotFired
from local_account.switch import Switch, SwitchRefused

PATH = "/_mendq/account"
FIRE_PATH = "/_mendq/fire"
SQS_ERRORS_PATH = "/_mendq/sqs-errors"
EARLIER_PATH = "/_mendq/earlier"
ACCESS_ANALYZER_PATH = "/_mendq/access-analyzer"
MAILS_PATH = "/_mendq/mails"
Answer = tuple[int, Mapping[str, Any]]


class AccountPage:
    """An ASGI application around another: it answers a few paths itself, switches among them."""

    def __init__(
        self,
        inner: Application,
        describe: Callable[[], Mapping[str, Any]],
        fire: Callable[[str, datetime], str],
        put_back: Callable[[object], Mapping[str, Any]],
        switches: Mapping[str, Switch],
    ) -> None:
        self._inner = inner
        self._describe = describe
        self._fire = fire
        self._put_back = put_back
        self._switches = switches

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await _answer(send, 200, self._describe())
        elif scope["type"] == "http" and scope["path"] == FIRE_PATH:
            await _answer(send, *self._fired(await _body(receive)))
        elif scope["type"] == "http" and scope["path"] == EARLIER_PATH:
            await _answer(send, *self._earlier(await _body(receive)))
        elif scope["type"] == "http" and (switch := self._switches.get(scope["path"])):
            await _answer(send, *_switched(switch, scope["method"], await _body(receive)))
        else:
            await self._inner(scope, receive, send)

    def _fired(self, body: bytes) -> Answer:
        try:
            asked = json.loads(body)
            name, scheduled_at = str(asked["schedule"]), datetime.fromisoformat(asked["time"])
        except (ValueError, TypeError, KeyError):
            return 400, {"message": 'send {"schedule": name, "time": "2026-11-10T02:00:00Z"}'}
        if scheduled_at.tzinfo is None:
            return 400, {"message": "time: say which zone, as in 2026-11-10T02:00:00Z"}
        try:
            return 200, {"execution_id": self._fire(name, scheduled_at)}
        except NotFired as refused:
            return 409, {"message": f"{refused}"}

    def _earlier(self, body: bytes) -> Answer:
        try:
            return 200, self._put_back(_json(body))
        except SwitchRefused as refused:
            return 400, {"message": f"{refused}"}


def _switched(switch: Switch, method: str, body: bytes) -> Answer:
    if method == "DELETE":
        switch.end()
    elif method == "PUT":
        try:
            switch.replace(_json(body))
        except SwitchRefused as refused:
            return 400, {"message": f"{refused}"}
    elif method != "GET":
        return 405, {"message": "send GET, PUT or DELETE"}
    return 200, switch.as_json()


def _json(body: bytes) -> object:
    """What the body says, or nothing that anybody asks for."""
    try:
        return json.loads(body)
    except ValueError:
        return None


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _answer(send: Send, status: int, body: Mapping[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{json.dumps(body)}\n".encode()})
