"""The ASGI layer that sees every SQS call and its answer, and has it recorded.

What the pollers of event source mappings do inside MiniStack is no call here and leaves no record;
whether AWS records theirs is not documented.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from local_account.account_page import (
    Application,
    Message,
    Receive,
    Send,
    joined,
    replayed,
    whole_body,
)
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.record import JSON_TARGET, Exchange, record_of
from local_account.cloudtrail.trails import destinations_of
from local_account.where import HOST

# The loopback interface stands in for TLS, which policies demand as aws:SecureTransport: the
# account sees every call as a proxy that ends TLS would tell it.
_ENDED_TLS = (b"x-forwarded-proto", b"https")
_REQUEST_ID = "x-amzn-requestid"


@dataclass(frozen=True)
class CloudTrail:
    """An ASGI application around the emulator's."""

    emulator: Application
    delivery: Delivery
    history: EventHistory

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _ENDED_TLS]}
        headers = joined(scope.get("headers", []))
        if not headers.get("x-amz-target", "").startswith(JSON_TARGET):
            await self.emulator(scope, receive, send)
            return
        body, answer = await whole_body(receive), list[Message]()

        async def hold_back(message: Message) -> None:
            answer.append(message)

        await self.emulator(scope, replayed(body, receive), hold_back)
        if answer:
            start, *rest = answer
            if _REQUEST_ID not in joined(start["headers"]):  # as in MiniStack's denials
                given = (_REQUEST_ID.encode(), str(uuid.uuid4()).encode())
                start["headers"] = [*start["headers"], given]
            # Recorded before it is sent: who has the answer may look for the record.
            self._take(
                Exchange(
                    headers=headers,
                    body=body,
                    source_ip=(scope.get("client") or (HOST,))[0],
                    status=int(start["status"]),
                    answer_headers=joined(start["headers"]),
                    answer_body=b"".join(each.get("body", b"") for each in rest),
                )
            )
        for message in answer:
            await send(message)

    def _take(self, exchange: Exchange) -> None:
        """Record a call in the event history, and where a trail logs it."""
        if record := record_of(exchange):
            self.history.take(record)
            if destinations := tuple(destinations_of(record)):
                self.delivery.take(record, destinations)
