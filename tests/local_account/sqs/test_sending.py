"""The size of a message, and what a batch for a FIFO queue has to say."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.sqs.sending import id_missing, size_bytes, too_long

BODY = {"MessageBody": "x" * 1024}
ENTRY = {"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ({}, 0),
        ({"MessageBody": "x"}, 1),
        ({"MessageBody": "\u20ac"}, 3),
        ({"MessageBody": "x", "MessageAttributes": None}, 1),
        (
            {
                "MessageBody": "x",
                "MessageAttributes": {"ab": {"DataType": "String", "StringValue": "\u20ac"}},
            },
            1 + 2 + 6 + 3,
        ),
        (
            {"MessageAttributes": {"b": {"DataType": "Binary", "BinaryValue": "AAAA"}}},
            1 + 6 + 3,
        ),
    ],
)
def test_body_and_attributes_count(message: dict[str, Any], size: int) -> None:
    assert size_bytes(message) == size


def test_a_message_of_the_queues_size_fits() -> None:
    assert too_long(BODY, {"MaximumMessageSize": "1024"}) is None
    refusal = too_long(BODY, {"MaximumMessageSize": "1023"})
    assert refusal is not None
    assert refusal.message.endswith("Message must be shorter than 1023 bytes.")


def test_without_the_attribute_the_limit_is_a_mebibyte() -> None:
    assert too_long({"MessageBody": "x" * 1_048_576}, {}) is None
    assert too_long({"MessageBody": "x" * 1_048_577}, {}) is not None


@pytest.mark.parametrize(
    ("left_out", "attributes", "said"),
    [
        (None, {}, None),
        ("MessageDeduplicationId", {"ContentBasedDeduplication": "true"}, None),
        ("MessageDeduplicationId", {"ContentBasedDeduplication": "false"}, "provided explicitly"),
        ("MessageDeduplicationId", {}, "provided explicitly"),
        ("MessageGroupId", {"ContentBasedDeduplication": "true"}, "parameter MessageGroupId."),
    ],
)
def test_one_entry_without_an_id_is_enough(
    left_out: str | None, attributes: dict[str, str], said: str | None
) -> None:
    other = {name: value for name, value in ENTRY.items() if name != left_out}
    refusal = id_missing([ENTRY, other], attributes)
    if said is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.message.endswith(said)
