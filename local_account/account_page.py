"""What the account says of itself, and what it can be told, beside AWS's calls.

Each page is a name below /_mendq/ and a function: GET shows what stands, PUT or POST with JSON
changes or does it. Calls are signed like AWS's. docs/local-account.md lists them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
# A page gets the JSON that was sent, None for GET.
Page = Callable[[Any], Mapping[str, Any]]
PREFIX = "/_mendq/"


class SwitchRefused(Exception):
    """What was asked of the running account cannot be done; the text is one line with the
    remedy.
    """


class NotFired(Exception):
    """The reason why a schedule's target was not invoked."""


def sent(asked: object, kind: type[T], example: str) -> T:
    """What was sent, as a value of that kind; raise SwitchRefused and say how to send it."""
    try:
        return msgspec.convert(asked, kind)
    except msgspec.ValidationError as mistake:
        raise SwitchRefused(f"{mistake}; send {example}") from None


@dataclass(frozen=True)
class AccountPage:
    """An ASGI application around another: it answers a few paths itself.

    Pages raise SwitchRefused or NotFired.
    """

    inner: Application
    pages: Mapping[str, Page]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        name = scope["path"].removeprefix(PREFIX) if scope["type"] == "http" else ""
        page = self.pages.get(name)
        if page is None:
            await self.inner(scope, receive, send)
            return
        content = await whole_body(receive)
        try:
            status, body = 200, page(None if scope["method"] == "GET" else json.loads(content))
        except (SwitchRefused, ValueError) as refused:
            status, body = 400, {"message": f"{refused}"}
        except NotFired as refused:
            status, body = 409, {"message": f"{refused}"}
        headers = {"content-type": "application/json"}
        await respond(send, status, headers, f"{json.dumps(body)}\n".encode())


async def respond(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Answer a request."""
    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})


def joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their name in lower case; several of one name as SigV4 signs them."""
    texts: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        texts[key] = f"{texts[key]},{text}" if key in texts else text
    return texts


async def whole_body(receive: Receive, most: float = math.inf) -> bytes:
    """The body of a request, however many parts it comes in; beyond `most` bytes no further."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if message["type"] != "http.request" or not message.get("more_body") or size > most:
            return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever follows: a long poll notices its client leaving."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
