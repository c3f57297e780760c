"""The ASGI layer that gives every SQS call and its answer to CloudTrail.

Event source mappings poll inside MiniStack, so their calls do not pass here and are not recorded.
AWS does not document whether it records them.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from local_account.account_page import (
    Application,
    Message,
    Receive,
    Send,
    join_headers,
    read_body,
    replay_body,
)
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.record import JSON_TARGET, Exchange, record_of
from local_account.cloudtrail.trails import destinations_of
from local_account.where import HOST

# Calls come over the loopback interface without TLS. Policies can demand TLS by the condition key
# aws:SecureTransport, so each call is marked as one that came over TLS.
_ENDED_TLS = (b"x-forwarded-proto", b"https")
_REQUEST_ID = "x-amzn-requestid"


@dataclass(frozen=True)
class CloudTrail:
    """ASGI application that passes calls to `emulator` and records those to SQS."""

    emulator: Application
    delivery: Delivery
    history: EventHistory

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _ENDED_TLS]}
        headers = join_headers(scope.get("headers", []))
        if not headers.get("x-amz-target", "").startswith(JSON_TARGET):
            await self.emulator(scope, receive, send)
            return
        body = await read_body(receive)
        answer: list[Message] = []

        async def hold_back(message: Message) -> None:
            answer.append(message)

        await self.emulator(scope, replay_body(body, receive), hold_back)
        if answer:
            start, *rest = answer
            if _REQUEST_ID not in join_headers(start["headers"]):  # as in MiniStack's denials
                new_id = (_REQUEST_ID.encode(), str(uuid.uuid4()).encode())
                start["headers"] = [*start["headers"], new_id]
            # Record the call before the answer is sent: a client can look for the record at once.
            self._take(
                Exchange(
                    headers=headers,
                    body=body,
                    source_ip=(scope.get("client") or (HOST,))[0],
                    status=int(start["status"]),
                    answer_headers=join_headers(start["headers"]),
                    answer_body=b"".join(message.get("body", b"") for message in rest),
                )
            )
        for message in answer:
            await send(message)

    def _take(self, exchange: Exchange) -> None:
        """Add a call to the event history, and deliver its record if a trail logs it."""
        if record := record_of(exchange):
            self.history.take(record)
            if destinations := tuple(destinations_of(record)):
                self.delivery.take(record, destinations)
