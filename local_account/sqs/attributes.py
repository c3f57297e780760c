"""Which queue attributes and redrive policies SQS refuses where MiniStack takes them.

Texts marked (recorded) were seen from the real SQS; the others follow its habit, their codes are
documented: SetQueueAttributes and CreateQueue in the API reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

CHOICES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoQueue": ("true", "false"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
RANGES = frozenset(
    {
        *("DelaySeconds", "KmsDataKeyReusePeriodSeconds", "MaximumMessageSize"),
        *("MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds", "VisibilityTimeout"),
    }
)
DOCUMENTS = frozenset({"Policy", "RedriveAllowPolicy", "RedrivePolicy"})
SETTABLE = {"KmsMasterKeyId"} | DOCUMENTS | RANGES | CHOICES.keys()
MOST_SOURCES = 10


@dataclass(frozen=True)
class Refusal:
    """The reason why SQS would not do something; `name` as in the JSON protocol."""

    name: str
    message: str
    status: int = 400


@dataclass(frozen=True)
class Target:
    """The queue whose attributes are to change; `current` is empty for one to be created."""

    arn: str
    is_fifo: bool
    is_new: bool
    current: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DlqFacts:
    """What of a DLQ decides whether a source may name it."""

    is_fifo: bool
    redrive_allow_policy: str


FindQueue = Callable[[str], DlqFacts | None]


def invalid_parameter(value: object, parameter: str, reason: str) -> Refusal:
    """InvalidParameterValue, whose text repeats the caller's value."""
    return Refusal(
        "InvalidParameterValueException",
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}",
    )


def refusal_of(
    attributes: Mapping[str, str], target: Target, find_queue: FindQueue
) -> Refusal | None:
    """Tell why SQS refuses these attributes as a whole, or None; a refused call changes nothing."""
    for name, value in attributes.items():
        if refusal := _unknown(name, value, target) or _invalid(name, value):
            return refusal
    return (
        _pair_refusal(attributes, {**target.current, **attributes})
        or _redrive_policy_refusal(attributes.get("RedrivePolicy", ""), target, find_queue)
        or _redrive_allow_policy_refusal(attributes.get("RedriveAllowPolicy", ""))
    )


def _unknown(name: str, value: str, target: Target) -> Refusal | None:
    unknown = Refusal("InvalidAttributeName", f"Unknown Attribute {name}.")  # (recorded)
    if name not in SETTABLE:
        return unknown
    if name == "FifoQueue":
        if value == "true" and (target.is_fifo or target.is_new):
            return None
        change = _invalid_attribute(name, " Reason: Modifying queue type is not supported.")
        return change if target.is_fifo else unknown  # (both recorded)
    if target.is_fifo or name in SETTABLE - CHOICES.keys() or name == "SqsManagedSseEnabled":
        return None
    if name == "ContentBasedDeduplication":
        return unknown
    message = f"You can specify the {name} only when FifoQueue is set to true."  # (recorded)
    return Refusal("InvalidAttributeName", message)


def _invalid(name: str, value: str) -> Refusal | None:
    """MiniStack itself refuses numbers out of their range."""
    is_valid = value in CHOICES[name] if name in CHOICES else True
    if name in DOCUMENTS and value:
        is_valid = bool(_object(value))
    return None if is_valid else _invalid_attribute(name)


def _invalid_attribute(name: str, reason: str = "") -> Refusal:
    return Refusal("InvalidAttributeValue", f"Invalid value for the parameter {name}.{reason}")


def _object(text: str) -> dict[str, Any]:
    """The JSON object that a text is, an empty one for any other text."""
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _pair_refusal(asked: Mapping[str, str], after: Mapping[str, str]) -> Refusal | None:
    """Refuse two encryptions at once, and throughput per group without deduplication per group."""
    if asked.get("SqsManagedSseEnabled") == "true" and asked.get("KmsMasterKeyId"):
        return Refusal(
            "InvalidAttributeName",
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE.",
        )
    per_group = after.get("FifoThroughputLimit") == "perMessageGroupId"
    if per_group and after.get("DeduplicationScope") != "messageGroup":
        reason = (
            " Reason: perMessageGroupId is allowed only when the value for DeduplicationScope is "
            "messageGroup."
        )
        return _invalid_attribute("FifoThroughputLimit", reason)
    return None


def _redrive_policy_refusal(policy: str, source: Target, find_queue: FindQueue) -> Refusal | None:
    """Tell why a source may not name this queue; MiniStack itself refuses a wrong shape.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    if not (arn := dlq_arn(policy)):
        return None
    dead = find_queue(arn)
    if dead is None:
        return invalid_parameter(policy, "RedrivePolicy", "DLQ message target does not exist.")
    allows = _object(dead.redrive_allow_policy)
    permission = allows.get("redrivePermission", "allowAll")
    if dead.is_fifo != source.is_fifo:
        reason = "DLQ message target must be of the same type, FIFO or standard, as the source."
    elif permission == "denyAll" or (
        permission == "byQueue" and source.arn not in allows.get("sourceQueueArns", ())
    ):
        reason = "DLQ message target does not allow the source queue in its redrive allow policy."
    else:
        return None
    return invalid_parameter(policy, "RedrivePolicy", reason)


def dlq_arn(policy: object) -> str:
    """The queue that a RedrivePolicy names, or empty text; CloudFormation leaves an object."""
    content = policy if isinstance(policy, Mapping) else _object(str(policy or ""))
    return str(content.get("deadLetterTargetArn", ""))


def _redrive_allow_policy_refusal(policy: str) -> Refusal | None:
    content = _object(policy)
    permission, sources = content.get("redrivePermission"), content.get("sourceQueueArns")
    if not policy:
        return None
    if permission not in ("allowAll", "denyAll", "byQueue"):
        reason = "redrivePermission is allowAll, denyAll or byQueue."
    elif (permission == "byQueue") != bool(sources):
        reason = "sourceQueueArns goes with byQueue, and only with it."
    elif sources and not (isinstance(sources, list) and len(sources) <= MOST_SOURCES):
        reason = f"Amazon SQS allows up to {MOST_SOURCES} source queues."
    else:
        return None
    return invalid_parameter(policy, "RedriveAllowPolicy", reason)
