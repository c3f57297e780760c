"""Answer the HTTP pages with which a client reads and changes the local account itself.

Each page is a path below /_mendq/ and a function. GET shows the current state, if the page has one;
PUT or POST with a JSON body changes it or starts an action. Requests are signed like calls to AWS.
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

RequestValue = TypeVar("RequestValue")
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApplication = Callable[[AsgiMessage, AsgiReceive, AsgiSend], Awaitable[None]]
# The argument of a page is the request's JSON body, or None for GET.
PageFunction = Callable[[Any], Mapping[str, Any]]
PAGE_PREFIX = "/_mendq/"


class SwitchRefused(Exception):
    """Raised if the account cannot do what a request asks. The text is one line, for the client."""


class ScheduleNotFired(Exception):
    """Raised if the target of a schedule was not invoked. The text is the reason."""


def parse_request(
    body: object, value_type: type[RequestValue], request_example: str
) -> RequestValue:
    """Convert a request's JSON body to a value of type `value_type`.

    Raises SwitchRefused, with `request_example` as the remedy, if the body does not fit.
    """
    try:
        return msgspec.convert(body, value_type)
    except msgspec.ValidationError as error:
        raise SwitchRefused(f"{error}; send {request_example}") from None


@dataclass(frozen=True)
class AccountPage:
    """ASGI application that answers `pages` and passes all other requests to `next_application`.

    The status is 400 if the page raises SwitchRefused or ValueError, or if the body is not JSON. It
    is 409 if the page raises ScheduleNotFired.
    """

    next_application: AsgiApplication
    pages: Mapping[str, PageFunction]

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        page_name = scope["path"].removeprefix(PAGE_PREFIX) if scope["type"] == "http" else ""
        page = self.pages.get(page_name)
        if page is None:
            await self.next_application(scope, receive, send)
            return
        request_body = await read_body(receive)
        page_content: Mapping[str, Any]
        try:
            page_content = page(None if scope["method"] == "GET" else json.loads(request_body))
            status = HTTPStatus.OK
        except (SwitchRefused, ValueError) as error:
            page_content = {"message": f"{error}"}
            status = HTTPStatus.BAD_REQUEST
        except ScheduleNotFired as error:
            page_content = {"message": f"{error}"}
            status = HTTPStatus.CONFLICT
        headers = {"content-type": "application/json"}
        await send_response(send, status, headers, f"{json.dumps(page_content)}\n".encode())


async def send_response(
    send: AsgiSend, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """Send the whole response to an ASGI request."""
    encoded_headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded_headers})
    await send({"type": "http.response.body", "body": body})


def join_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the values of the headers by their names in lower case.

    Several headers of one name are joined with commas, as Signature Version 4 signs them.
    """
    value_by_header_name: dict[str, str] = {}
    for name, value in headers:
        lower_name = name.decode("latin-1").lower()
        value_text = value.decode("utf-8", "replace")
        value_by_header_name[lower_name] = (
            f"{value_by_header_name[lower_name]},{value_text}"
            if lower_name in value_by_header_name
            else value_text
        )
    return value_by_header_name


async def read_body(receive: AsgiReceive, maximum_bytes: float = math.inf) -> bytes:
    """Return the body of a request, joined from all its parts.

    Stop reading as soon as the body is longer than `maximum_bytes`. The result is then longer than
    `maximum_bytes`, but not the whole body.
    """
    parts: list[bytes] = []
    byte_count = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        parts.append(part)
        byte_count += len(part)
        is_last = message["type"] != "http.request" or not message.get("more_body")
        if is_last or byte_count > maximum_bytes:
            return b"".join(parts)


def replay_body(body: bytes, receive: AsgiReceive) -> AsgiReceive:
    """Return an ASGI `receive` for a request whose body was already read.

    The first call of the result returns the body. Further calls return the next messages of
    `receive`, such as the client's disconnect, which ends a long poll.
    """
    unread_messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_replayed() -> AsgiMessage:
        return unread_messages.pop() if unread_messages else await receive()

    return receive_replayed
