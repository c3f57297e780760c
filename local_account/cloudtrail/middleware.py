"""The ASGI layer that records calls and their answers, as CloudTrail does.

It records calls in SQS's JSON protocol, and changes of Lambda functions, event source mappings and
KMS keys. Every record is added to the event history. A record that a trail logs is also
delivered: to the default bus and to the trail's bucket. Event source mappings poll inside
MiniStack, so their calls do not pass this layer and are not recorded. AWS does not document whether
CloudTrail records them.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from local_account.account_page import (
    AsgiApplication,
    AsgiMessage,
    AsgiReceive,
    AsgiSend,
    join_headers,
    read_body,
    replay_body,
)
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.event_history import EventHistory
from local_account.cloudtrail.record import (
    JSON_TARGET_PREFIX,
    HttpExchange,
    find_service,
    make_record,
)
from local_account.cloudtrail.service_changes import Change, find_change, make_record_of_change
from local_account.cloudtrail.trails import find_destinations
from local_account.where import HOST

# Calls come over the loopback interface without TLS. Policies can demand TLS with the condition key
# aws:SecureTransport, so each call gets a header that says that it came over TLS.
_TLS_HEADER = (b"x-forwarded-proto", b"https")
_REQUEST_ID_HEADER = "x-amzn-requestid"


@dataclass(frozen=True)
class CloudTrailRecorder:
    """ASGI application that passes all calls to `emulator`, and records those that it must."""

    emulator: AsgiApplication
    delivery: Delivery
    event_history: EventHistory

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _TLS_HEADER]}
        headers = join_headers(scope.get("headers", []))
        change = None
        is_sqs_call = headers.get("x-amz-target", "").startswith(JSON_TARGET_PREFIX)
        if scope["type"] == "http" and not is_sqs_call:
            path = scope["raw_path"].decode("latin-1")
            change = find_change(find_service(headers), scope["method"], path, headers)
        if not is_sqs_call and change is None:
            await self.emulator(scope, receive, send)
            return
        body = await read_body(receive)
        answer_messages: list[AsgiMessage] = []

        async def collect_answer(message: AsgiMessage) -> None:
            answer_messages.append(message)

        await self.emulator(scope, replay_body(body, receive), collect_answer)
        if answer_messages:
            start_message, *body_messages = answer_messages
            # MiniStack's denials have no request id.
            if _REQUEST_ID_HEADER not in join_headers(start_message["headers"]):
                request_id_header = (_REQUEST_ID_HEADER.encode(), str(uuid.uuid4()).encode())
                start_message["headers"] = [*start_message["headers"], request_id_header]
            # Record the call before the answer is sent: a client can look for the record at once.
            self._record_exchange(
                change,
                HttpExchange(
                    headers=headers,
                    body=body,
                    source_ip=(scope.get("client") or (HOST,))[0],
                    status=int(start_message["status"]),
                    answer_headers=join_headers(start_message["headers"]),
                    answer_body=b"".join(message.get("body", b"") for message in body_messages),
                ),
            )
        for message in answer_messages:
            await send(message)

    def _record_exchange(self, change: Change | None, exchange: HttpExchange) -> None:
        """Record a call, if a record can be made of it.

        Management events are added to the event history. Calls that a trail logs are queued for
        delivery.

        Args:
            change: The change of a function, a mapping or a key; None for a call to SQS.
            exchange: The call and its answer.
        """
        if change:
            record = make_record_of_change(change, exchange)
        else:
            record = make_record(exchange)
        if record is None:
            return
        self.event_history.add(record)
        if destinations := tuple(find_destinations(record)):
            self.delivery.deliver_later(record, destinations)
