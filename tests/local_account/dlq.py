"""DLQ messages for tests: a queue, its DLQ, and what died in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, eventually, new_queue

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


def new_pipe(account: LocalAccount, *, fifo: bool = False, dead: Queue | None = None) -> Pipe:
    dead = dead or new_queue(account, fifo=fifo)
    return Pipe(new_queue(account, fifo=fifo, RedrivePolicy=naming(dead)), dead)


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


def tasks(dead: Queue, most: int = 10) -> list[dict[str, Any]]:
    """As ListMessageMoveTasks tells of them."""
    answer = dead.sqs.list_message_move_tasks(SourceArn=dead.arn, MaxResults=most)
    found: list[dict[str, Any]] = answer.get("Results", [])
    return found


def ended(dead: Queue, status: str) -> dict[str, Any]:
    """The newest task, once it has that status."""
    eventually(lambda: tasks(dead)[0]["Status"] == status)
    return tasks(dead)[0]
