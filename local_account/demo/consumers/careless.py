"""A typical faulty consumer: it works until its work is slow or fails, or a message comes twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class CarelessConsumer:
    """A consumer that deletes all messages of a batch at its end."""

    sqs: SQSClient
    queue_url: str
    handle_order: Callable[[Mapping[str, Any]], object]

    def consume(self) -> None:
        """Receive a batch, handle its messages one by one, and then delete them all.

        Three faults: the visibility timeout of the last messages ends while the first are handled.
        If one message fails, those before it are handled and never deleted. And no check finds a
        message that was handled before.
        """
        response = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        messages = response.get("Messages", [])
        for message in messages:
            self.handle_order(json.loads(message["Body"]))
        for message in messages:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
