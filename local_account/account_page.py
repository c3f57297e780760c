"""HTTP pages with which a client reads and changes the local account itself.

Each page is a path below /_mendq/ and a function. GET shows the current state; PUT or POST with a
JSON body changes it or starts an action. Requests are signed like calls to AWS.
docs/local-account.md lists the pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
# The argument of a page is the request's JSON body, or None for GET.
Page = Callable[[Any], Mapping[str, Any]]
PREFIX = "/_mendq/"


class SwitchRefused(Exception):
    """Raised if the account cannot do what a request asks. The text is one line with the remedy."""


class NotFired(Exception):
    """Raised if the target of a schedule was not invoked. The text gives the reason."""


def parse_request(body: object, kind: type[T], example: str) -> T:
    """Convert a request's JSON body to a value of type `kind`.

    Raises SwitchRefused, with `example` as the remedy, if the body does not fit.
    """
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as mistake:
        raise SwitchRefused(f"{mistake}; send {example}") from None


@dataclass(frozen=True)
class AccountPage:
    """ASGI application that answers the pages itself and passes all other requests to `inner`.

    A page that raises SwitchRefused is answered with status 400, NotFired with 409.
    """

    inner: Application
    pages: Mapping[str, Page]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix(PREFIX) if scope["type"] == "http" else ""
        page = self.pages.get(name)
        if page is None:
            await self.inner(scope, receive, send)
            return
        content = await read_body(receive)
        body: Mapping[str, Any]
        try:
            body = page(None if scope["method"] == "GET" else json.loads(content))
            status = HTTPStatus.OK
        except (SwitchRefused, ValueError) as error:
            body = {"message": f"{error}"}
            status = HTTPStatus.BAD_REQUEST
        except NotFired as error:
            body = {"message": f"{error}"}
            status = HTTPStatus.CONFLICT
        headers = {"content-type": "application/json"}
        await respond(send, status, headers, f"{json.dumps(body)}\n".encode())


async def respond(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Send the whole response to an ASGI request."""
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def join_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the values of the headers by their names in lower case.

    Several headers of one name are joined with commas, as Signature Version 4 signs them.
    """
    texts: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        texts[key] = f"{texts[key]},{text}" if key in texts else text
    return texts


async def read_body(receive: Receive, most: float = math.inf) -> bytes:
    """Return the body of a request, joined from all its parts.

    Reading stops after the part with which the body is longer than `most` bytes.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        is_last = message["type"] != "http.request" or not message.get("more_body")
        if is_last or size > most:
            return b"".join(parts)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` for a request whose body was already read.

    Its first call returns the body, further calls return the messages that follow. One of them can
    be that the client has disconnected, which ends a long poll.
    """
    unread: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return unread.pop() if unread else await receive()

    return receive_again
