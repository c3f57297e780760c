"""Looks at one queue: its attributes and its tags.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone, code_of, looking
from functions.healing.error_codes import canonical
from functions.healing.queue_names import parts_of


def queue_url(clients: Clients, queue_arn: str) -> str:
    """The queue's URL at our own endpoint; an event's URL is never used."""
    queue = parts_of(queue_arn)
    return f"{clients.sqs.meta.endpoint_url}/{queue.account}/{queue.name}"


def tags_of(clients: Clients, queue_arn: str) -> Mapping[str, str] | None:
    """The queue's tags; None where there is no such queue. Raises FactsUnavailable."""
    with looking(f"tags of {queue_arn}"):
        try:
            answer = clients.sqs.list_queue_tags(QueueUrl=queue_url(clients, queue_arn))
        except ClientError as error:
            if canonical(code_of(error)) == "NonExistentQueue":
                return None
            raise
    return answer.get("Tags", {})


def attributes_of(clients: Clients, queue_arn: str) -> Mapping[str, str]:
    """The queue's attributes as SQS spells them. Raises QueueGone or FactsUnavailable."""
    with looking(f"attributes of {queue_arn}"):
        try:
            answer = clients.sqs.get_queue_attributes(
                QueueUrl=queue_url(clients, queue_arn), AttributeNames=["All"]
            )
        except ClientError as error:
            if canonical(code_of(error)) == "NonExistentQueue":
                raise QueueGone(queue_arn) from error
            raise
    return {str(name): value for name, value in answer.get("Attributes", {}).items()}
