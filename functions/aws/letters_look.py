"""Reads a message as boto3 receives it into a Letter; total: a sender's text never raises.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from functions.healing.letters import Letter, MessageAttribute

# Older than any queue: of a message that does not say when it was sent nothing is concluded.
_UNSAID = datetime.fromtimestamp(0, UTC)
_LONGEST_NUMBER = 15


def letter_of(message: Mapping[str, Any]) -> Letter:
    """With every attribute, as far as SQS was asked for them."""
    system = message.get("Attributes") or {}
    given = message.get("MessageAttributes") or {}
    return Letter(
        message_id=str(message.get("MessageId", "")),
        body=str(message.get("Body", "")),
        sent_at=_moment(str(system.get("SentTimestamp", ""))),
        receive_count=_whole(str(system.get("ApproximateReceiveCount", ""))) or 1,
        attributes={str(name): _attribute(each) for name, each in given.items()},
        source_arn=system.get("DeadLetterQueueSourceArn") or None,
        group_id=str(system.get("MessageGroupId", "")),
        deduplication_id=str(system.get("MessageDeduplicationId", "")),
        trace_header=str(system.get("AWSTraceHeader", "")),
    )


def _attribute(given: Mapping[str, Any]) -> MessageAttribute:
    data_type = str(given.get("DataType", "String"))
    if data_type.startswith("Binary"):
        return MessageAttribute(data_type, bytes(given.get("BinaryValue", b"")))
    return MessageAttribute(data_type, str(given.get("StringValue", "")))


def _moment(epoch_milliseconds: str) -> datetime:
    whole = _whole(epoch_milliseconds)
    return _UNSAID if whole is None else datetime.fromtimestamp(whole / 1000, UTC)


def _whole(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else None
