"""Calls that SQS takes without a word although something is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from local_account.demo.traffic import Caller

MOST_ENTRIES = 10


@dataclass(frozen=True)
class Races:
    """Consumers of a standard queue that work longer than they hold: every late delete is fine.

    While one works the message is visible again, another receives it, and both delete it. There are
    more than a message has holders meanwhile, so that somebody idle always receives it again. Most
    messages are done at once: were all of them slow, the counts could be those of retries as well.
    """

    works_seconds: float
    messages: int = 4
    quick: int = 400
    workers: int = 16
    convincing: int = 460
    noun: ClassVar[str] = "delete"
    well: ClassVar[str] = "answered 200"

    def prepare(self, caller: Caller) -> None:
        send(caller, self.messages + self.quick)

    def work(self, caller: Caller) -> None:
        answer = caller.sqs.receive_message(
            QueueUrl=caller.queue_url, MaxNumberOfMessages=1, WaitTimeSeconds=1
        )
        slow = {body_of(n) for n in range(self.messages)}
        for message in answer.get("Messages", []):
            if message["Body"] in slow and caller.enough.wait(self.works_seconds):
                return
            delete = partial(
                caller.sqs.delete_message,
                QueueUrl=caller.queue_url,
                ReceiptHandle=message["ReceiptHandle"],
            )
            caller.attempt(delete)


@dataclass(frozen=True)
class Crashes:
    """Consumers that receive a message and die of it, each time: no delete at all."""

    messages: int = 120
    workers: int = 2
    convincing: int = 45
    noun: ClassVar[str] = "receive"
    well: ClassVar[str] = "that ended in a crash"

    def prepare(self, caller: Caller) -> None:
        send(caller, self.messages)

    def work(self, caller: Caller) -> None:
        caller.attempt(
            lambda: caller.sqs.receive_message(
                QueueUrl=caller.queue_url, MaxNumberOfMessages=MOST_ENTRIES, WaitTimeSeconds=1
            )
        )
        caller.enough.wait(0.2)


@dataclass(frozen=True)
class Nobody:
    """A queue that nobody calls: it is its configuration that will hurt."""

    workers: int = 0
    convincing: int = 0
    noun: ClassVar[str] = "call"
    well: ClassVar[str] = "made"

    def prepare(self, caller: Caller) -> None:
        """Nothing."""

    def work(self, caller: Caller) -> None:
        """Nothing."""


def body_of(n: int) -> str:
    return f"work {n}"


def send(caller: Caller, messages: int) -> None:
    """So many messages, as many to a call as SQS takes."""
    for first in range(0, messages, MOST_ENTRIES):
        caller.sqs.send_message_batch(
            QueueUrl=caller.queue_url,
            Entries=[
                {"Id": f"{n}", "MessageBody": body_of(n)}
                for n in range(first, min(first + MOST_ENTRIES, messages))
            ],
        )
