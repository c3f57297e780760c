"""Queues that Mendq makes beside another: what they are called, and how they keep messages.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from hashlib import sha256

from functions.healing.facts import Facts
from functions.healing.queue_names import arn_of_name, parts_of

FIFO = ".fifo"
LONGEST_NAME = 80
LONGEST_RETENTION_SECONDS = 1_209_600


def name_beside(source_name: str, suffix: str) -> str:
    """The source's name with a suffix.

    Of a long name the beginning, and a few digits by which no two of them meet.
    """
    ending = FIFO if source_name.endswith(FIFO) else ""
    base = source_name.removesuffix(FIFO)
    if len(base) + len(suffix) + len(ending) > LONGEST_NAME:
        digits = f"-{sha256(base.encode()).hexdigest()[:8]}"
        base = base[: LONGEST_NAME - len(digits) - len(suffix) - len(ending)] + digits
    return f"{base}{suffix}{ending}"


def arn_beside(source_arn: str, suffix: str) -> str:
    """The ARN that goes with it; raises ValueError where `source_arn` is none."""
    source = parts_of(source_arn)
    named = arn_of_name(name_beside(source.name, suffix), source.region, source.account)
    assert named is not None  # noqa: S101 - a queue's name with a suffix is one
    return named


def keeping_attributes(source: Facts) -> dict[str, str]:
    """Messages are kept for 14 days and encrypted as the source's are.

    Without a key SQS encrypts a new queue with its own.
    """
    attributes = {"MessageRetentionPeriod": str(LONGEST_RETENTION_SECONDS)}
    if source.kms_key is not None:
        return attributes | {"KmsMasterKeyId": source.kms_key}
    return attributes | {"SqsManagedSseEnabled": "true"}
