"""The ASGI layer that sees every SQS call and its answer, and has it recorded.

What the pollers of event source mappings do inside MiniStack is no call here and leaves no record;
whether AWS records theirs is not documented.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from local_account.account_page import Application, Message, Receive, Send, whole_body
from local_account.cloudtrail.calls import JSON_TARGET, Answer, Call, read_answer, read_call
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.record import account_of, as_seen_by, identity_of, owner_of, record_of
from local_account.cloudtrail.trails import destinations_of
from local_account.where import HOST, REGION

# Calls whose signature nobody's account can be found for are not in anybody's trail.
_NOT_SIGNED = frozenset(
    {
        *("IncompleteSignature", "InvalidClientTokenId", "InvalidToken"),
        *("MissingAuthenticationToken", "SignatureDoesNotMatch", "UnrecognizedClientException"),
    }
)
# The loopback interface stands in for TLS, which policies demand as aws:SecureTransport: the
# account sees every call as a proxy that ends TLS would tell it.
_ENDED_TLS = (b"x-forwarded-proto", b"https")


@dataclass(frozen=True)
class CloudTrail:
    """An ASGI application around the emulator's."""

    emulator: Application
    delivery: Delivery
    history: EventHistory

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _ENDED_TLS]}
        headers = _text(scope.get("headers", []))
        if not headers.get("x-amz-target", "").startswith(JSON_TARGET):
            await self.emulator(scope, receive, send)
            return
        body = await whole_body(receive)
        answer = _Collected()
        await self.emulator(scope, _replay(body, receive), answer.collect)
        if answer.messages:
            answer.give_request_id()
            # Recorded before it is sent: who has the answer may look for the record.
            self._record(scope, headers, body, answer)
        for message in answer.messages:
            await send(message)

    def _record(
        self, scope: Message, headers: dict[str, str], body: bytes, collected: _Collected
    ) -> None:
        source_ip = (scope.get("client") or (HOST,))[0]
        call = read_call(headers, body, source_ip, REGION)
        answer = read_answer(collected.status, collected.headers, collected.body)
        if call is not None and answer.error_name not in _NOT_SIGNED:
            self.take(call, answer)

    def take(self, call: Call, answer: Answer) -> None:
        """Record a call in the event history, and where a trail logs it."""
        caller = identity_of(call.access_key, account_of(call.access_key))
        identity = as_seen_by(caller, owner_of(call, caller))
        record = record_of(call, answer, identity, datetime.now(UTC))
        self.history.take(record)
        if destinations := destinations_of(record, record["recipientAccountId"]):
            self.delivery.take(record, destinations)


@dataclass(frozen=True)
class _Collected:
    """An answer, held back until it is recorded."""

    messages: list[Message] = field(default_factory=list)

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

    def give_request_id(self) -> None:
        """MiniStack's denials carry no id; AWS's do."""
        if "x-amzn-requestid" not in self.headers:
            given = (b"x-amzn-requestid", str(uuid.uuid4()).encode())
            self.messages[0]["headers"] = [*self.messages[0]["headers"], given]


def _text(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever follows: a long poll notices its client leaving."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
