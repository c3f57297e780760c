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
from math import isfinite
from typing import Any

from mendq.model.admission import UNKNOWN_TEXT
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
# A word is no number in any notation, and no stand-in for a value that is not known.
_WORD_REGEX = re.compile(r"[A-Za-z][A-Za-z -]{0,60}")
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
# The properties of a queue in CloudFormation, which refuses all others.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
QUEUE_PROPERTIES = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "QueueName",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "Tags",
    "VisibilityTimeout",
)
BOOLEAN_ATTRIBUTES = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# The values of attributes that only FIFO queues have.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
_SCOPE_ATTRIBUTE = "DeduplicationScope"
_LIMIT_ATTRIBUTE = "FifoThroughputLimit"
_GROUP_SCOPE = "messageGroup"
_LIMIT_PER_GROUP = "perMessageGroupId"
CHOICES_BY_ATTRIBUTE: Mapping[str, tuple[str, ...]] = {
    _SCOPE_ATTRIBUTE: (_GROUP_SCOPE, "queue"),
    _LIMIT_ATTRIBUTE: (_LIMIT_PER_GROUP, "perQueue"),
}
REDRIVE_ALLOW_POLICY_ATTRIBUTE = "RedriveAllowPolicy"
_PERMISSION_KEY = "redrivePermission"
_SOURCES_KEY = "sourceQueueArns"
_PERMISSION_BY_QUEUE = "byQueue"
_REDRIVE_PERMISSIONS = ("allowAll", "denyAll", _PERMISSION_BY_QUEUE)
_MOST_ALLOWED_SOURCES = 10
_MOST_SHOWN_CHARACTERS = 60
# What a tool replaces at deployment: a dynamic reference, or a variable.
_REPLACED_TEXT_REGEX = re.compile(r"\$\{|\{\{|^$")


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


def find_name_refusal(property_name: str) -> QueueRefusal | None:
    """Return why CloudFormation refuses a property of a queue; None if a queue has the property."""
    if property_name in QUEUE_PROPERTIES or "::" in property_name:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - heal starts faster without it

    similar_names = get_close_matches(property_name, QUEUE_PROPERTIES, 1)
    shown_name = property_name[:_MOST_SHOWN_CHARACTERS]
    spelled_as = f", or write it as {similar_names[0]}" if similar_names else ""
    return QueueRefusal(
        property_name,
        f"CloudFormation refuses the queue: it has no property {shown_name!r}",
        f"leave {shown_name!r} out{spelled_as}",
    )


def find_value_refusal(attribute: str, value_text: str) -> QueueRefusal | None:
    """Return why SQS refuses a value of an attribute; None if SQS accepts it.

    None also if a tool replaces a part of the text at deployment, and for attributes whose values
    are neither numbers, booleans nor one of a few words.
    """
    if _REPLACED_TEXT_REGEX.search(value_text):
        return None
    if attribute in RANGE_BY_ATTRIBUTE:
        if _WHOLE_NUMBER_REGEX.fullmatch(value_text):
            return find_range_refusal(attribute, int(value_text))
        if _is_whole_number(value_text):
            return None
        return _refuse_value(attribute, value_text, "a whole number")
    if attribute in BOOLEAN_ATTRIBUTES:
        is_boolean = value_text.lower() in ("true", "false")
        return None if is_boolean else _refuse_value(attribute, value_text, "true or false")
    choices = CHOICES_BY_ATTRIBUTE.get(attribute, (value_text,))
    if value_text in choices:
        return None
    return _refuse_value(attribute, value_text, " or ".join(choices))


def _is_whole_number(value_text: str) -> bool:
    """Return True if the text is a whole number in another form, such as `3e1` or `30.0`.

    True also for a number that is too large to tell: a tool writes it as `inf`.
    """
    try:
        number = float(value_text)
    except ValueError:
        return False
    return not isfinite(number) or number.is_integer()


def _refuse_value(attribute: str, value_text: str, accepted: str) -> QueueRefusal:
    shown_text = value_text[:_MOST_SHOWN_CHARACTERS]
    return QueueRefusal(
        attribute,
        f"AWS refuses the queue: its {attribute} is {shown_text!r}, and SQS accepts {accepted}",
        f"set {attribute} to {accepted}",
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
    yield from _list_throughput_refusals(attributes, is_fifo=is_fifo or has_fifo_name)
    if attributes.get("SqsManagedSseEnabled") == "true" and attributes.get("KmsMasterKeyId"):
        yield QueueRefusal(
            "SqsManagedSseEnabled",
            "SQS refuses the queue: it may have a KMS key or keys that SQS owns, and not both",
            "leave SqsManagedSseEnabled or KmsMasterKeyId out",
        )


def _list_throughput_refusals(
    attributes: Mapping[str, str], *, is_fifo: bool
) -> Iterator[QueueRefusal]:
    """Yield why SQS refuses the settings for the throughput of a FIFO queue."""
    for attribute in CHOICES_BY_ATTRIBUTE:
        if attributes.get(attribute) and not is_fifo:
            yield QueueRefusal(
                attribute,
                f"SQS refuses the queue: only a FIFO queue has {attribute}",
                f"leave {attribute} out, or make it a FIFO queue",
            )
    if (
        attributes.get(_LIMIT_ATTRIBUTE) == _LIMIT_PER_GROUP
        and attributes.get(_SCOPE_ATTRIBUTE) == "queue"
    ):
        yield QueueRefusal(
            _LIMIT_ATTRIBUTE,
            f"SQS refuses the queue: a {_LIMIT_ATTRIBUTE} of {_LIMIT_PER_GROUP} needs the "
            f"{_SCOPE_ATTRIBUTE} {_GROUP_SCOPE}",
            f"set {_SCOPE_ATTRIBUTE} to {_GROUP_SCOPE}",
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
    is_word = _WORD_REGEX.fullmatch(count_text) is not None and count_text != UNKNOWN_TEXT
    if is_word:
        return _refuse_redrive_policy(
            f"{RECEIVE_COUNT_KEY} is {count_text!r}, and SQS accepts {RECEIVE_COUNT_RANGE}",
            f"set {RECEIVE_COUNT_KEY} to a number from {RECEIVE_COUNT_RANGE}",
        )
    if _WHOLE_NUMBER_REGEX.fullmatch(count_text) and int(count_text) not in RECEIVE_COUNT_RANGE:
        return _refuse_redrive_policy(
            f"{RECEIVE_COUNT_KEY} is {int(count_text):,}, and SQS accepts {RECEIVE_COUNT_RANGE}",
            f"set {RECEIVE_COUNT_KEY} to a number from {RECEIVE_COUNT_RANGE}",
        )
    return None


def find_redrive_allow_refusal(redrive_allow_policy: object) -> QueueRefusal | None:
    """Return why SQS refuses a RedriveAllowPolicy; None if SQS accepts it, or if that is not known.

    Args:
        redrive_allow_policy: The JSON text, or the mapping.
    """
    document = _read_redrive_policy(redrive_allow_policy)
    if not document:
        return None
    permission = document.get(_PERMISSION_KEY)
    if permission is None:
        return _refuse_redrive_allow_policy(
            f"it has no {_PERMISSION_KEY}, in these letters",
            f"give {_PERMISSION_KEY}: {', '.join(_REDRIVE_PERMISSIONS)}",
        )
    if not isinstance(permission, str) or permission == UNKNOWN_TEXT:
        return None
    if permission not in _REDRIVE_PERMISSIONS:
        if _REPLACED_TEXT_REGEX.search(permission):
            return None
        return _refuse_redrive_allow_policy(
            f"its {_PERMISSION_KEY} is {permission[:_MOST_SHOWN_CHARACTERS]!r}, and SQS accepts "
            f"{', '.join(_REDRIVE_PERMISSIONS)}",
            f"set {_PERMISSION_KEY} to one of {', '.join(_REDRIVE_PERMISSIONS)}",
        )
    source_arns = document.get(_SOURCES_KEY)
    if permission != _PERMISSION_BY_QUEUE and source_arns:
        return _refuse_redrive_allow_policy(
            f"only {_PERMISSION_BY_QUEUE} takes {_SOURCES_KEY}", f"leave {_SOURCES_KEY} out"
        )
    if isinstance(source_arns, list) and len(source_arns) > _MOST_ALLOWED_SOURCES:
        return _refuse_redrive_allow_policy(
            f"it names {len(source_arns):,} queues, and SQS accepts {_MOST_ALLOWED_SOURCES}",
            "set allowAll, which takes no list",
        )
    return None


def _refuse_redrive_allow_policy(reason: str, advice: str) -> QueueRefusal:
    because = f"SQS refuses the RedriveAllowPolicy: {reason}"
    return QueueRefusal(REDRIVE_ALLOW_POLICY_ATTRIBUTE, because, advice)


def _refuse_redrive_policy(reason: str, advice: str) -> QueueRefusal:
    because = f"SQS refuses the RedrivePolicy: {reason}"
    return QueueRefusal(REDRIVE_POLICY_ATTRIBUTE, because, advice)
