"""A careless consumer: it works longer than its lease and deletes too late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

WORKERS = 3


@dataclass
class Consumer:
    """Three workers on one FIFO queue, a message group each; `tell` hears every outcome."""

    sqs: SQSClient
    queue_url: str
    works_seconds: float
    tell: Callable[[str | None], None]
    _enough: threading.Event = field(default_factory=threading.Event)
    _workers: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Send one message a group, then receive, work and delete until told to stop."""
        for group in range(WORKERS):
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=f"work {group}",
                MessageGroupId=f"group-{group}",
                MessageDeduplicationId=f"work-{group}",
            )
        self._workers = [
            threading.Thread(target=self._work, name=f"{self.queue_url}#{n}", daemon=True)
            for n in range(WORKERS)
        ]
        for worker in self._workers:
            worker.start()

    def put_down(self) -> None:
        """Have every worker put its message down, soon."""
        self._enough.set()

    def stop(self) -> None:
        """Return when every worker has put its message down."""
        self.put_down()
        for worker in self._workers:
            worker.join(timeout=self.works_seconds + 5)

    def _work(self) -> None:
        while not self._enough.is_set():
            answer = self.sqs.receive_message(
                QueueUrl=self.queue_url, MaxNumberOfMessages=1, WaitTimeSeconds=1
            )
            for message in answer.get("Messages", []):
                self._enough.wait(self.works_seconds)
                if not self._enough.is_set():
                    self._delete(message["ReceiptHandle"])

    def _delete(self, receipt_handle: str) -> None:
        try:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=receipt_handle)
        except ClientError as error:
            self.tell(error.response["Error"]["Message"])
        else:
            self.tell(None)
