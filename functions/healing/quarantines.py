"""The queue that keeps letters which came back: named after the source, never read by itself.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Mapping

from functions.healing.companions import (
    FIFO,
    LONGEST_RETENTION_SECONDS,
    arn_beside,
    keeping_attributes,
    name_beside,
)
from functions.healing.facts import Facts
from functions.healing.policy_grants import is_open_to_everybody

SUFFIX = "-quarantine"


def name_for(source_name: str) -> str:
    """The name of the quarantine of a queue."""
    return name_beside(source_name, SUFFIX)


def arn_for(source_arn: str) -> str:
    """The ARN that goes with it; raises ValueError where `source_arn` is none."""
    return arn_beside(source_arn, SUFFIX)


def is_quarantine(queue_name: str) -> bool:
    """By its name; whose it is, its letters' marks say."""
    return queue_name.removesuffix(FIFO).endswith(SUFFIX)


def attributes_of_new(source: Facts) -> dict[str, str]:
    """What the quarantine of this source is made with."""
    attributes = keeping_attributes(source)
    return attributes | {"FifoQueue": "true"} if source.is_fifo else attributes


def unfit(source: Facts, attributes: Mapping[str, str]) -> str | None:
    """Why a queue that is there under the name keeps no letters safe; None where it does."""
    if attributes.get("RedrivePolicy"):
        return "it has a RedrivePolicy: its letters would leave it by being read"
    policy = attributes.get("Policy", "")
    if policy and is_open_to_everybody(policy):
        return "its policy lets everybody in"
    is_encrypted = attributes.get("KmsMasterKeyId") or (
        source.kms_key is None and attributes.get("SqsManagedSseEnabled") == "true"
    )
    if not is_encrypted:
        return "its letters are not encrypted as the source's are"
    if int(attributes.get("MessageRetentionPeriod", "0")) < LONGEST_RETENTION_SECONDS:
        return f"it keeps letters for less than {LONGEST_RETENTION_SECONDS} seconds"
    return None
