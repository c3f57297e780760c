"""The ASGI layer that sees every SQS call and its answer, and has it recorded.

What the pollers of event source mappings do inside MiniStack is no call here and leaves no record;
whether AWS records theirs is not documented.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.identity import account_of, as_seen_by, identity_of
from local_account.cloudtrail.record import Spelling, owner_of, record_of
from local_account.cloudtrail.trails import destinations_of
from local_account.sqs.calls import Answer, Call, is_sqs_call, read_answer, read_call
from local_account.where import HOST, REGION

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Calls whose signature nobody's account can be found for are not in anybody's trail.
_NOT_SIGNED = frozenset(
    {
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidToken",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_XML_REQUEST_ID = re.compile(rb"<RequestId>[^<]*</RequestId>")


class CloudTrail:
    """An ASGI application around the emulator's."""

    def __init__(
        self,
        emulator: Application,
        delivery: Delivery,
        history: EventHistory,
        spelling: Spelling = Spelling.QUERY,
    ) -> None:
        self._emulator = emulator
        self._delivery = delivery
        self._history = history
        self._spelling = spelling

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_sqs_call(headers := _text(scope["headers"])):
            await self._emulator(scope, receive, send)
            return
        body = await _whole_body(receive)
        answer = _Collected()
        await self._emulator(scope, _replay(body, receive), answer.collect)
        answer.same_request_id()
        # Recorded before it is sent: who has the answer may look for the record.
        self._record(scope, headers, body, answer)
        for message in answer.messages:
            await send(message)

    def _record(
        self,
        scope: MutableMapping[str, Any],
        headers: dict[str, str],
        body: bytes,
        collected: _Collected,
    ) -> None:
        source_ip = (scope.get("client") or (HOST,))[0]
        call = read_call(headers, scope["path"], body, source_ip, REGION)
        if call is None or not collected.messages:
            return
        answer = read_answer(collected.status, collected.headers, collected.body)
        if answer.error_name in _NOT_SIGNED:
            return
        self.take(call, answer)

    def take(self, call: Call, answer: Answer) -> None:
        """Record a call in the event history, and where a trail logs it."""
        caller = identity_of(call.access_key, account_of(call.access_key))
        identity = as_seen_by(caller, owner_of(call, caller))
        record = record_of(call, answer, identity, datetime.now(UTC), self._spelling)
        self._history.take(record)
        if destinations := destinations_of(record, record["recipientAccountId"]):
            self._delivery.take(record, destinations)


class _Collected:
    """An answer, held back until it is recorded."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def collect(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return _text(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages[1:])

    def same_request_id(self) -> None:
        """MiniStack's denials carry none, its XML another than their header; AWS's carry one."""
        if not self.messages:
            return
        if "x-amzn-requestid" not in self.headers:
            given = (b"x-amzn-requestid", str(uuid.uuid4()).encode())
            self.messages[0]["headers"] = [*self.messages[0]["headers"], given]
        if "xml" not in self.headers.get("content-type", ""):
            return
        request_id = self.headers.get("x-amzn-requestid", "").encode()
        if len(request_id) == 36:  # a UUID for a UUID: the length stays
            element = b"<RequestId>" + request_id + b"</RequestId>"
            for message in self.messages[1:]:
                message["body"] = _XML_REQUEST_ID.sub(element, message.get("body", b""))


def _text(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever follows: a long poll notices its client leaving."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
