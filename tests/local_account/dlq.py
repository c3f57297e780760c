"""DLQ messages for tests: a queue, its DLQ, and what died in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.local_account.queues import Queue, eventually

MOST_ENTRIES = 10


@dataclass(frozen=True)
class Pipe:
    """A source and the queue of its DLQ messages, which takes what failed once."""

    source: Queue
    dead: Queue

    def die(self, *bodies: str, **more: Any) -> None:
        """Send messages and receive each often enough that it dies."""
        before = self.dead.count()
        for body in bodies:
            fifo = {"MessageGroupId": f"of {body}", "MessageDeduplicationId": f"once {body}"}
            given = fifo | more if self.source.is_fifo else more
            self.source.sqs.send_message(QueueUrl=self.source.url, MessageBody=body, **given)

        def all_died() -> bool:
            for _ in range(2):
                self.source.sqs.receive_message(
                    QueueUrl=self.source.url, MaxNumberOfMessages=10, VisibilityTimeout=0
                )
            return self.dead.count() >= before + len(bodies)

        eventually(all_died)


def naming(dead: Queue, receives: int = 1) -> str:
    """A RedrivePolicy."""
    return json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": receives})


def received(queue: Queue, how_many: int) -> list[dict[str, Any]]:
    """So many messages, each received once with all that SQS tells of it, and deleted."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        answer = queue.sqs.receive_message(
            QueueUrl=queue.url,
            MaxNumberOfMessages=MOST_ENTRIES,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        for message in answer.get("Messages", []):
            found.append(message)
            queue.delete(message["ReceiptHandle"])
        return len(found) >= how_many

    eventually(enough)
    return found


def bodies(messages: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(each["Body"] for each in messages)
