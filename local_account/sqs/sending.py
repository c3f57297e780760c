"""What SendMessage and SendMessageBatch refuse, where MiniStack does not.

A message's attributes count in its size; a batch for a FIFO queue fails as a whole when one entry
lacks an id (recorded), while entries that are too long fail alone.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import sqs

from local_account.sqs.message_handlers import raised
from local_account.sqs.refusal import Refusal

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Send = Callable[[Parameters, str], dict[str, Any]]
BIGGEST_BYTES = "1048576"


def install() -> None:
    """Hook the sending of one message and of a batch, before they are locked; once per process."""
    sqs._act_send_message = sqs._HANDLERS["SendMessage"] = _sized(sqs._act_send_message)
    sqs._HANDLERS["SendMessageBatch"] = _with_ids(sqs._HANDLERS["SendMessageBatch"])


def size_bytes(data: Parameters) -> int:
    """What SQS counts of a message: its body, and names, types and values of its attributes."""
    total = len(str(data.get("MessageBody") or "").encode())
    for name, value in (data.get("MessageAttributes") or {}).items():
        total += len(name.encode()) + len(str(value.get("DataType") or "").encode())
        total += len(str(value.get("StringValue") or "").encode())
        total += _decoded_bytes(value.get("BinaryValue") or b"")
    return total


def _decoded_bytes(value: str | bytes) -> int:
    try:
        return len(base64.b64decode(value))
    except (binascii.Error, ValueError):
        return len(value)


def too_long(data: Parameters, attributes: Mapping[str, str]) -> Refusal | None:
    """Why a message does not fit its queue, or None."""
    most = attributes.get("MaximumMessageSize", BIGGEST_BYTES)
    if size_bytes(data) <= int(most):
        return None
    return Refusal(  # (recorded); as the entries of a batch spell the code
        "InvalidParameterValue",
        f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes.",
    )


def id_missing(entries: list[Parameters], attributes: Mapping[str, str]) -> Refusal | None:
    """Why a whole batch for a FIFO queue is refused, or None."""
    if any(not each.get("MessageGroupId") for each in entries):
        return Refusal(  # (recorded; SendMessage's code for it is another)
            "InvalidParameterValueException",
            "The request must contain the parameter MessageGroupId.",
        )
    if attributes.get("ContentBasedDeduplication") == "true":
        return None
    if all(each.get("MessageDeduplicationId") for each in entries):
        return None
    return Refusal(  # (recorded)
        "InvalidParameterValueException",
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly",
    )


def _sized(send: Send) -> Send:
    def sending(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:SendMessage")
        if data.get("MessageBody") and (refusal := too_long(data, queue["attributes"])):
            raise raised(refusal)
        return send(data, url)

    return sending


def _with_ids(send_batch: Send) -> Send:
    def sending(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:SendMessage")
        entries = data.get("Entries") or []
        if queue["is_fifo"] and (refusal := id_missing(entries, queue["attributes"])):
            raise raised(refusal)
        answer = send_batch(data, url)
        _keep_traces(queue, entries, answer)
        return answer

    return sending


def _keep_traces(queue: Queue, entries: list[Parameters], answer: Mapping[str, Any]) -> None:
    """Of a batch MiniStack drops AWSTraceHeader, which a single message keeps."""
    ids = {each["Id"]: each["MessageId"] for each in answer["Successful"]}
    traces = {
        ids.get(each.get("Id")): system["AWSTraceHeader"]["StringValue"]
        for each in entries
        if "AWSTraceHeader" in (system := each.get("MessageSystemAttributes") or {})
    }
    for message in queue["messages"] if traces else ():
        if message["id"] in traces:
            message["sys"]["AWSTraceHeader"] = traces[message["id"]]
