"""How many messages lie in each of the queues that a letter may be in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class Whereabouts:
    """So many messages in each; `handled` are letters that were handled since they went back."""

    source: int = 0
    dead_letters: int = 0
    quarantine: int = 0
    handled: int = 0


def messages_in(sqs: SQSClient, queue_url: str) -> int:
    """Visible or held."""
    answer = sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )
    return sum(map(int, answer["Attributes"].values()))


def is_there(sqs: SQSClient, queue_name: str) -> bool:
    """Without a call that fails, which would be an incident."""
    urls = sqs.list_queues(QueueNamePrefix=queue_name).get("QueueUrls", [])
    return any(each.endswith(f"/{queue_name}") for each in urls)
