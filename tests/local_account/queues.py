"""Queues for tests: each with a name of its own, and ways to fail on it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount

# A wait ends as soon as it has happened; only a failure takes this long, on any machine.
PATIENCE_SECONDS = 300


@dataclass
class Queue:
    """A queue and the client that made it."""

    sqs: Any
    url: str
    is_fifo: bool

    @property
    def arn(self) -> str:
        return self.attributes("QueueArn")["QueueArn"]

    def attributes(self, *names: str) -> dict[str, str]:
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names or ["All"])
        found: dict[str, str] = answer["Attributes"]
        return found

    def send(self, body: str = "hello", group: str = "") -> None:
        its_own = f"{uuid.uuid4()}"
        fifo = {"MessageGroupId": group or its_own, "MessageDeduplicationId": its_own}
        self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **(fifo if self.is_fifo else {}))

    def receive(self, seconds: int | None = None) -> str:
        """The handle of one message; waits until there is one."""
        hidden = {} if seconds is None else {"VisibilityTimeout": seconds}
        answer = self.sqs.receive_message(QueueUrl=self.url, WaitTimeSeconds=10, **hidden)
        handle: str = answer["Messages"][0]["ReceiptHandle"]
        return handle

    def receive_some(self, **options: Any) -> list[dict[str, Any]]:
        """As many messages as one call gives, which may be none."""
        answer = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, **options)
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    def delete(self, handle: str) -> None:
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=handle)

    def change(self, handle: str, seconds: int) -> None:
        self.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=handle, VisibilityTimeout=seconds
        )

    def set(self, **attributes: str) -> None:
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes=attributes)

    def count(self, name: str = "ApproximateNumberOfMessages") -> int:
        return int(self.attributes(name)[name])

    def expired_handle(self) -> str:
        """The handle of a message that is visible again and that nobody has received since."""
        self.send()
        handle = self.receive(seconds=1)
        eventually(lambda: self.count() == 1)
        return handle


def new_queue(
    account: LocalAccount,
    *,
    fifo: bool = False,
    tags: Mapping[str, str] | None = None,
    **attributes: str,
) -> Queue:
    """Create a queue; FIFO ones need their type said."""
    sqs = account.client("sqs")
    name = f"test-{uuid.uuid4()}" + (".fifo" if fifo else "")
    said = {"FifoQueue": "true", **attributes} if fifo else attributes
    url = sqs.create_queue(QueueName=name, Attributes=said, tags=dict(tags or {}))["QueueUrl"]
    return Queue(sqs, url, fifo)


def error_of(call: Callable[[], object]) -> tuple[str, str]:
    """The code and message with which a call fails; a call that does not fail is the failure."""
    with pytest.raises(ClientError) as failed:
        call()
    error = failed.value.response["Error"]
    return error["Code"], error["Message"]


def eventually(
    happened: Callable[[], object], seconds: float = PATIENCE_SECONDS, every_seconds: float = 0.05
) -> None:
    """Return as soon as it happened; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every_seconds)


def fail_late(queue: Queue, times: int) -> None:
    """Delete that many messages of a FIFO queue when its own visibility timeout on them has
    ended.
    """
    for _ in range(times):
        queue.send()
    received: list[Any] = []
    while len(received) < times:
        received += queue.receive_some()
    eventually(lambda: queue.count() == times)
    for message in received:
        code, text = error_of(partial(queue.delete, message["ReceiptHandle"]))
        assert code == "InvalidParameterValue"
        assert text.endswith("The receipt handle has expired.")
