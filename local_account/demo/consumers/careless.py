"""A typical faulty consumer: it fails if work is slow, work fails, or a message comes twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class CarelessConsumer:
    """A consumer that deletes the messages of a batch only after it has handled all of them."""

    sqs: SQSClient
    queue_url: str
    handle_order: Callable[[Mapping[str, Any]], object]

    def consume(self) -> None:
        """Receive a batch, handle its messages one by one, and then delete them all.

        This has three faults. The visibility timeout of the last messages can end while the first
        are handled. If one message fails, the messages before it were handled, but are not deleted.
        And a message that was handled before is handled again.
        """
        response = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        messages = response.get("Messages", [])
        for message in messages:
            self.handle_order(json.loads(message["Body"]))
        for message in messages:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
