"""CreateQueue, SetQueueAttributes, DeleteQueue: AWS's refusals in front of MiniStack's handlers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

from local_account.sqs.attributes import Target, refusal_of
from local_account.sqs.message_handlers import raised
from local_account.sqs.queue_names import DeletedNames, name_refusal
from local_account.sqs.redrive import (
    DeadLetterQueue,
    redrive_allow_policy_refusal,
    redrive_policy_refusal,
)
from local_account.sqs.refusal import Refusal

Parameters = Mapping[str, Any]
Handler = Callable[[Parameters, str], dict[str, Any]]
STANDARD_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")


def refusing_create_queue(create_queue: Handler, deleted: DeletedNames) -> Handler:
    """CreateQueue that refuses what AWS refuses."""

    def handler(data: Parameters, url: str) -> dict[str, Any]:
        name = str(data.get("QueueName") or "")
        is_fifo = (data.get("Attributes") or {}).get("FifoQueue") == "true"
        if not is_fifo and name and not STANDARD_NAME.fullmatch(name):
            raise sqs._Err(
                "InvalidParameterValueException",
                "Can only include alphanumeric characters, hyphens, or underscores. "
                "1 to 80 in length",
            )
        arn = f"arn:aws:sqs:{get_region()}:{get_account_id()}:{name}"
        target = Target(is_fifo=is_fifo and bool(FIFO_NAME.fullmatch(name)), is_new=True)
        _refuse(data, arn, target)
        existing = sqs._queue_by_arn(arn)
        if existing is not None:
            refusal = name_refusal(existing["attributes"], _attributes(data))
        else:
            refusal = deleted.refusal(arn)
        if refusal:
            raise raised(refusal)
        answer = create_queue(data, url)
        if existing is None:
            _encrypt(sqs._get_q(answer["QueueUrl"])["attributes"])
        return answer

    return handler


def noting_delete_queue(delete_queue: Handler, deleted: DeletedNames) -> Handler:
    """DeleteQueue after which the name is not free at once."""

    def handler(data: Parameters, url: str) -> dict[str, Any]:
        arn = sqs._get_q(data.get("QueueUrl") or url)["attributes"]["QueueArn"]
        answer = delete_queue(data, url)
        deleted.deleted(arn)
        return answer

    return handler


def refusing_set_queue_attributes(set_queue_attributes: Handler) -> Handler:
    """SetQueueAttributes that refuses what AWS refuses, before anything is changed."""

    def handler(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:SetQueueAttributes")
        current = queue["attributes"]
        _refuse(data, current["QueueArn"], Target(queue["is_fifo"], is_new=False, current=current))
        result = set_queue_attributes(data, url)
        _switch_encryption(current, data.get("Attributes") or {})
        return result

    return handler


def _attributes(data: Parameters) -> dict[str, str]:
    return {name: str(value) for name, value in (data.get("Attributes") or {}).items()}


def _refuse(data: Parameters, arn: str, target: Target) -> None:
    attributes = _attributes(data)
    refusal = refusal_of(attributes, target) or _redrive_refusal(attributes, arn, target)
    if refusal:
        raise raised(refusal)


def _redrive_refusal(attributes: Mapping[str, str], arn: str, target: Target) -> Refusal | None:
    policy = attributes.get("RedrivePolicy", "")
    return redrive_policy_refusal(
        policy, arn, target.is_fifo, _find_dead_letter_queue
    ) or redrive_allow_policy_refusal(attributes.get("RedriveAllowPolicy", ""))


def _find_dead_letter_queue(arn: str) -> DeadLetterQueue | None:
    queue = sqs._queue_by_arn(arn)
    if queue is None:
        return None
    policy = queue["attributes"].get("RedriveAllowPolicy", "")
    return DeadLetterQueue(queue["is_fifo"], _text(policy))


def _text(policy: object) -> str:
    """CloudFormation may leave an object where the API leaves its text."""
    return policy if isinstance(policy, str) else json.dumps(policy)


def _encrypt(attributes: dict[str, str]) -> None:
    """SQS's own keys encrypt what nobody said anything about.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-sqs-sse-queue.html
    """
    by_sqs = "false" if attributes.get("KmsMasterKeyId") else "true"
    attributes.setdefault("SqsManagedSseEnabled", by_sqs)


def _switch_encryption(current: dict[str, str], attributes: Mapping[str, str]) -> None:
    """A queue has one kind of encryption: the new one ends the other."""
    if attributes.get("SqsManagedSseEnabled") == "true":
        current.pop("KmsMasterKeyId", None)
    elif attributes.get("KmsMasterKeyId"):
        current["SqsManagedSseEnabled"] = "false"
