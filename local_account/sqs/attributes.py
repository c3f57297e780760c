"""Which queue attributes SQS refuses, and in which words.

Ranges and rules: SetQueueAttributes and CreateQueue in the API reference. Texts marked (recorded)
were seen from the real SQS; the others follow its habit, their codes are documented.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from local_account.sqs.refusal import Refusal

RANGES: Mapping[str, tuple[int, int]] = {
    "DelaySeconds": (0, 900),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
    "MaximumMessageSize": (1_024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoQueue": ("true", "false"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
FREE = frozenset({"KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "RedrivePolicy"})
SETTABLE = FREE | RANGES.keys() | CHOICES.keys()
FIFO_ONLY = ("ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")


@dataclass(frozen=True)
class Target:
    """The queue whose attributes are to change; `current` is empty for one to be created."""

    is_fifo: bool
    is_new: bool
    current: Mapping[str, str] = field(default_factory=dict)


def refusal_of(attributes: Mapping[str, str], target: Target) -> Refusal | None:
    """Why SQS refuses these attributes as a whole, or None; a refused call changes nothing."""
    for name, value in attributes.items():
        if refusal := _unknown(name, value, target) or _out_of_range(name, value):
            return refusal
    return _encrypted_twice(attributes) or _wrong_throughput_pair({**target.current, **attributes})


def _unknown(name: str, value: str, target: Target) -> Refusal | None:
    if name not in SETTABLE:
        return Refusal("InvalidAttributeName", f"Unknown Attribute {name}.")  # (recorded)
    if name == "FifoQueue":
        return _queue_type(value, target)
    if target.is_fifo or name not in FIFO_ONLY:
        return None
    if name == "ContentBasedDeduplication":
        return Refusal("InvalidAttributeName", f"Unknown Attribute {name}.")  # (recorded)
    return Refusal(  # (recorded)
        "InvalidAttributeName",
        f"You can specify the {name} only when FifoQueue is set to true.",
    )


def _queue_type(value: str, target: Target) -> Refusal | None:
    if value == "true" and (target.is_fifo or target.is_new):
        return None  # a new queue's name has to fit: that is refused as a name
    if not target.is_fifo:
        return Refusal("InvalidAttributeName", "Unknown Attribute FifoQueue.")  # (recorded)
    return Refusal(  # (recorded)
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    )


def _out_of_range(name: str, value: str) -> Refusal | None:
    if name in RANGES:
        least, most = RANGES[name]
        allowed = _is_whole(value) and least <= int(value) <= most
    elif name in CHOICES:
        allowed = value in CHOICES[name]
    elif name == "Policy" and value:
        allowed = is_json_object(value)
    else:
        allowed = True
    return None if allowed else invalid_attribute(name)


def invalid_attribute(name: str) -> Refusal:
    """InvalidAttributeValue for one attribute."""
    return Refusal("InvalidAttributeValue", f"Invalid value for the parameter {name}.")


def is_json_object(text: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _is_whole(value: str) -> bool:
    return value.isascii() and value.isdigit()


def _encrypted_twice(attributes: Mapping[str, str]) -> Refusal | None:
    if attributes.get("SqsManagedSseEnabled") != "true" or not attributes.get("KmsMasterKeyId"):
        return None
    return Refusal(
        "InvalidAttributeName",
        "You can use one type of server-side encryption (SSE) at one time. "
        "You can either enable KMS SSE or SQS SSE.",
    )


def _wrong_throughput_pair(after: Mapping[str, str]) -> Refusal | None:
    """Throughput per group is only allowed with deduplication per group."""
    if (
        after.get("FifoThroughputLimit") != "perMessageGroupId"
        or after.get("DeduplicationScope") == "messageGroup"
    ):
        return None
    return Refusal(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoThroughputLimit. Reason: perMessageGroupId is "
        "allowed only when the value for DeduplicationScope is messageGroup.",
    )
