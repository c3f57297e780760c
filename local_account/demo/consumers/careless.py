"""A consumer as many are written: it works until something is slow, fails, or comes twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class Careless:
    """`work` does one order."""

    sqs: SQSClient
    queue_url: str
    work: Callable[[Mapping[str, Any]], object]

    def consume(self) -> None:
        """Receive once, do what came, and delete it all at the end.

        While the first is worked on, the visibility timeout of the last runs out. One that fails
        takes those before it along: they are done and never deleted. Nobody asks whether it was
        done before.
        """
        answer = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        messages = answer.get("Messages", [])
        for message in messages:
            self.work(json.loads(message["Body"]))
        for message in messages:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
