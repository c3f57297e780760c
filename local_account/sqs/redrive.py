"""Which redrive policies SQS refuses.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local_account.sqs.attributes import invalid_attribute, is_json_object
from local_account.sqs.refusal import Refusal, invalid_parameter

MOST_RECEIVES = 1_000
MOST_SOURCES = 10
_PERMISSIONS = ("allowAll", "denyAll", "byQueue")


@dataclass(frozen=True)
class DeadLetterQueue:
    """What of a dead-letter queue decides whether a source may name it."""

    is_fifo: bool
    redrive_allow_policy: str


FindQueue = Callable[[str], DeadLetterQueue | None]


def redrive_policy_refusal(
    policy: str, source_arn: str, source_is_fifo: bool, find_queue: FindQueue
) -> Refusal | None:
    """Why a RedrivePolicy cannot be set on `source_arn`, or None; empty text removes it."""
    if not policy:
        return None
    content = json.loads(policy) if is_json_object(policy) else None
    if content is None:
        return invalid_attribute("RedrivePolicy")
    reason = _shape(content) or _target(content, source_arn, source_is_fifo, find_queue)
    return invalid_parameter(policy, "RedrivePolicy", reason) if reason else None


def _shape(policy: Mapping[str, Any]) -> str | None:
    for name in ("deadLetterTargetArn", "maxReceiveCount"):
        if not policy.get(name) and policy.get(name) != 0:
            return f"Redrive policy does not contain mandatory attribute: {name}."
    receives = str(policy["maxReceiveCount"])
    if not receives.isdigit() or not 1 <= int(receives) <= MOST_RECEIVES:
        return (
            f"Invalid value for maxReceiveCount: {receives}, "
            f"valid values are from 1 to {MOST_RECEIVES} both inclusive."
        )
    return None


def _target(
    policy: Mapping[str, Any], source_arn: str, source_is_fifo: bool, find_queue: FindQueue
) -> str | None:
    target_arn = str(policy["deadLetterTargetArn"])
    if target_arn.rpartition(":")[0] != source_arn.rpartition(":")[0]:
        return "Dead letter target must be in the account and the Region of the source queue."
    target = find_queue(target_arn)
    if target is None:
        return "Dead letter target does not exist."
    if target.is_fifo != source_is_fifo:
        return "Dead letter target must be of the same type, FIFO or standard, as the source."
    if not _allows(target.redrive_allow_policy, source_arn):
        return "Dead letter target does not allow this source queue (RedriveAllowPolicy)."
    return None


def _allows(policy: str, source_arn: str) -> bool:
    content = json.loads(policy) if policy else {}
    permission = content.get("redrivePermission", "allowAll")
    if permission == "byQueue":
        return source_arn in content.get("sourceQueueArns", ())
    return bool(permission == "allowAll")


def redrive_allow_policy_refusal(policy: str) -> Refusal | None:
    """Why a RedriveAllowPolicy cannot be set, or None; empty text removes it."""
    if not policy:
        return None
    content = json.loads(policy) if is_json_object(policy) else {}
    permission, sources = content.get("redrivePermission"), content.get("sourceQueueArns")
    if permission not in _PERMISSIONS:
        return invalid_parameter(
            policy, "RedriveAllowPolicy", "redrivePermission is allowAll, denyAll or byQueue."
        )
    if (permission == "byQueue") != bool(sources):
        return invalid_parameter(
            policy, "RedriveAllowPolicy", "sourceQueueArns goes with byQueue, and only with it."
        )
    if sources and not (isinstance(sources, list) and len(sources) <= MOST_SOURCES):
        return invalid_parameter(
            policy, "RedriveAllowPolicy", f"Amazon SQS allows up to {MOST_SOURCES} source queues."
        )
    return None
