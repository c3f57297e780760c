"""Values that SQS accepts for the attributes of a queue, and settings that it refuses together.

SQS refuses a call that creates or changes a queue with other values, so a template with such a
queue cannot be deployed.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mendq.model.queue import (
    FIFO_SUFFIX,
    LONGEST_RETENTION_SECONDS,
    MAXIMUM_QUEUE_NAME_LENGTH,
    parse_json_object,
)

QUEUE_NAME_PROPERTY = "QueueName"
REDRIVE_POLICY_ATTRIBUTE = "RedrivePolicy"
DLQ_ARN_KEY = "deadLetterTargetArn"
RECEIVE_COUNT_KEY = "maxReceiveCount"
_NAME_REGEX = re.compile(r"[A-Za-z0-9_-]+")
_QUEUE_URL_REGEX = re.compile(r"https?://")
_WHOLE_NUMBER_REGEX = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class NumberRange:
    """The whole numbers that SQS accepts for an attribute, both ends included."""

    minimum: int
    maximum: int

    def __contains__(self, number: int) -> bool:
        return self.minimum <= number <= self.maximum

    def __str__(self) -> str:
        return f"{self.minimum:,} to {self.maximum:,}"


RANGE_BY_ATTRIBUTE: Mapping[str, NumberRange] = {
    "DelaySeconds": NumberRange(0, 900),
    "KmsDataKeyReusePeriodSeconds": NumberRange(60, 86_400),
    "MaximumMessageSize": NumberRange(1_024, 1_048_576),
    "MessageRetentionPeriod": NumberRange(60, LONGEST_RETENTION_SECONDS),
    "ReceiveMessageWaitTimeSeconds": NumberRange(0, 20),
    "VisibilityTimeout": NumberRange(0, 43_200),
}
# `maxReceiveCount` of a RedrivePolicy.
RECEIVE_COUNT_RANGE = NumberRange(1, 1_000)


@dataclass(frozen=True)
class QueueRefusal:
    """A reason why SQS refuses a queue.

    Attributes:
        attribute: The attribute at fault, or `QueueName`.
        because: The reason, as a sentence with the value.
        advice: What to change, as an imperative.
    """

    attribute: str
    because: str
    advice: str


def find_range_refusal(attribute: str, number: int) -> QueueRefusal | None:
    """Return why SQS refuses a number for an attribute; None if SQS accepts it."""
    number_range = RANGE_BY_ATTRIBUTE.get(attribute)
    if number_range is None or number in number_range:
        return None
    return QueueRefusal(
        attribute,
        f"SQS refuses the queue: its {attribute} is {number:,}, and SQS accepts {number_range}",
        f"set {attribute} to a number from {number_range}",
    )


def list_combination_refusals(attributes: Mapping[str, str]) -> Iterator[QueueRefusal]:
    """Yield each reason why SQS refuses these attributes together.

    Args:
        attributes: The attributes of a new queue and its `QueueName`, as far as they are known.
    """
    is_fifo = attributes.get("FifoQueue") == "true"
    queue_name = attributes.get(QUEUE_NAME_PROPERTY, "")
    has_fifo_name = queue_name.endswith(FIFO_SUFFIX)
    if is_fifo and queue_name and not has_fifo_name:
        yield QueueRefusal(
            QUEUE_NAME_PROPERTY,
            f"SQS refuses the queue: the name of a FIFO queue must end with {FIFO_SUFFIX}",
            f"let the name end with {FIFO_SUFFIX}",
        )
    elif has_fifo_name and not is_fifo:
        yield QueueRefusal(
            QUEUE_NAME_PROPERTY,
            f"SQS refuses the queue: only a FIFO queue may have a name that ends with "
            f"{FIFO_SUFFIX}",
            f"make it a FIFO queue, or leave {FIFO_SUFFIX} out of its name",
        )
    elif queue_name and not _is_valid_name(queue_name):
        yield QueueRefusal(
            QUEUE_NAME_PROPERTY,
            "SQS refuses the queue: a name has at most "
            f"{MAXIMUM_QUEUE_NAME_LENGTH} letters, digits, hyphens and underscores",
            "change the name",
        )
    if attributes.get("ContentBasedDeduplication") == "true" and not (is_fifo or has_fifo_name):
        yield QueueRefusal(
            "ContentBasedDeduplication",
            "SQS refuses the queue: only a FIFO queue has ContentBasedDeduplication",
            "leave ContentBasedDeduplication out, or make it a FIFO queue",
        )
    if attributes.get("SqsManagedSseEnabled") == "true" and attributes.get("KmsMasterKeyId"):
        yield QueueRefusal(
            "SqsManagedSseEnabled",
            "SQS refuses the queue: it may have a KMS key or keys that SQS owns, and not both",
            "leave SqsManagedSseEnabled or KmsMasterKeyId out",
        )


def _is_valid_name(queue_name: str) -> bool:
    """Return True if SQS accepts the name, or if a tool replaces a part of it at deployment."""
    if "{" in queue_name:
        return True
    if queue_name == FIFO_SUFFIX:
        # The name is an empty default, in place of which the caller of a module gives a name.
        return True
    is_short_enough = len(queue_name) <= MAXIMUM_QUEUE_NAME_LENGTH
    base_name = queue_name.removesuffix(FIFO_SUFFIX)
    return is_short_enough and _NAME_REGEX.fullmatch(base_name) is not None


def _read_redrive_policy(redrive_policy: object) -> dict[str, Any] | None:
    """Return the mapping of a RedrivePolicy, or of its JSON text. None if it is neither."""
    if isinstance(redrive_policy, str):
        return parse_json_object(redrive_policy)
    return redrive_policy if isinstance(redrive_policy, dict) else None


def find_redrive_key(redrive_policy: object, key: str) -> object:
    """Return the value of a redrive policy's key; None if it has none.

    A key in other letters counts too, such as `DeadLetterTargetArn`: SQS refuses it, and it tells
    what the author means.
    """
    document = _read_redrive_policy(redrive_policy)
    if document is None:
        return None
    return next((value for name, value in document.items() if name.lower() == key.lower()), None)


def find_redrive_refusal(redrive_policy: object) -> QueueRefusal | None:
    """Return why SQS refuses a RedrivePolicy; None if SQS accepts it, or if that is not known.

    Args:
        redrive_policy: The JSON text, or the mapping.
    """
    document = _read_redrive_policy(redrive_policy)
    if document is None:
        return None
    for key in (DLQ_ARN_KEY, RECEIVE_COUNT_KEY):
        if key not in document:
            return _refuse_redrive_policy(
                f"it has no {key}, in these letters",
                f"give {DLQ_ARN_KEY} and {RECEIVE_COUNT_KEY} in {REDRIVE_POLICY_ATTRIBUTE}, with "
                "upper and lower case as here",
            )
    dlq_arn = document[DLQ_ARN_KEY]
    if isinstance(dlq_arn, str) and _QUEUE_URL_REGEX.match(dlq_arn):
        return _refuse_redrive_policy(
            f"{DLQ_ARN_KEY} is the URL of a queue and not its ARN",
            f"give the ARN of the DLQ as {DLQ_ARN_KEY}",
        )
    count_text = str(document[RECEIVE_COUNT_KEY])
    if _WHOLE_NUMBER_REGEX.fullmatch(count_text) and int(count_text) not in RECEIVE_COUNT_RANGE:
        return _refuse_redrive_policy(
            f"{RECEIVE_COUNT_KEY} is {int(count_text):,}, and SQS accepts {RECEIVE_COUNT_RANGE}",
            f"set {RECEIVE_COUNT_KEY} to a number from {RECEIVE_COUNT_RANGE}",
        )
    return None


def _refuse_redrive_policy(reason: str, advice: str) -> QueueRefusal:
    because = f"SQS refuses the RedrivePolicy: {reason}"
    return QueueRefusal(REDRIVE_POLICY_ATTRIBUTE, because, advice)
