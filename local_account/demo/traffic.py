"""The calls that a story's queues get: each kind is a value that a queue's trouble names."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SEND_EVERY_SECONDS = 1.0
STOP_SECONDS = 15
Tell = Callable[[str | None], None]


@dataclass(frozen=True)
class Caller:
    """Somebody with a client of one queue; `tell` hears how each call ended, None for well."""

    sqs: SQSClient
    queue_url: str
    tell: Tell
    enough: threading.Event = field(default_factory=threading.Event)

    def attempt(self, call: Callable[[], object]) -> bool:
        """Make a call that may be refused, and tell; whether it ended well."""
        try:
            call()
        except ClientError as error:
            self.tell(error.response["Error"]["Message"])
            return False
        self.tell(None)
        return True


class Traffic(Protocol):
    """One kind of calls: what people call one, what they say of one that ended well.

    So many that ended well are `convincing`: the queue works again, or enough of them went on
    for a sweep to see what no call says.
    """

    noun: ClassVar[str]
    well: ClassVar[str]

    @property
    def convincing(self) -> int:
        """How many."""

    @property
    def workers(self) -> int:
        """How many there are."""

    def prepare(self, caller: Caller) -> None:
        """Do once what the calls need."""

    def work(self, caller: Caller) -> None:
        """One round of a worker's; it returns soon after `caller.enough` is set."""


@dataclass(frozen=True)
class LateDeletes:
    """Careless consumers of a FIFO queue, a message group each: they work longer than they hold.

    With `goes_on` every message that was deleted in time is followed by another.
    """

    works_seconds: float
    workers: int = 3
    goes_on: bool = False
    noun: ClassVar[str] = "delete"
    well: ClassVar[str] = "in time"
    convincing: ClassVar[int] = 1

    def prepare(self, caller: Caller) -> None:
        for group in range(self.workers):
            self._send(caller, f"group-{group}")

    @staticmethod
    def _send(caller: Caller, group: str) -> None:
        caller.sqs.send_message(
            QueueUrl=caller.queue_url,
            MessageBody=f"work of {group}",
            MessageGroupId=group,
            MessageDeduplicationId=uuid.uuid4().hex,
        )

    def work(self, caller: Caller) -> None:
        answer = caller.sqs.receive_message(
            QueueUrl=caller.queue_url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        for message in answer.get("Messages", []):
            if caller.enough.wait(self.works_seconds):
                return
            if self._delete(caller, message["ReceiptHandle"]) and self.goes_on:
                self._send(caller, message["Attributes"]["MessageGroupId"])

    @staticmethod
    def _delete(caller: Caller, receipt_handle: str) -> bool:
        return caller.attempt(
            lambda: caller.sqs.delete_message(
                QueueUrl=caller.queue_url, ReceiptHandle=receipt_handle
            )
        )


@dataclass(frozen=True)
class Sends:
    """A sender that sends the same body again and again; `more` stands in each request.

    `with_own_id` adds a deduplication id, another one each time; `is_read` has every message that
    was accepted received and deleted.
    """

    body_bytes: int = 20
    more: Mapping[str, Any] = field(default_factory=dict)
    with_own_id: bool = False
    is_read: bool = False
    workers: int = 1
    noun: ClassVar[str] = "send"
    well: ClassVar[str] = "accepted"
    convincing: ClassVar[int] = 3

    def prepare(self, caller: Caller) -> None:
        """Nothing: a send needs nothing before it."""

    def work(self, caller: Caller) -> None:
        more = dict(self.more)
        if self.with_own_id:
            more["MessageDeduplicationId"] = uuid.uuid4().hex
        was_accepted = caller.attempt(
            lambda: caller.sqs.send_message(
                QueueUrl=caller.queue_url,
                MessageBody="x" * self.body_bytes,
                **more,
            )
        )
        if was_accepted and self.is_read:
            self._read(caller)
        caller.enough.wait(SEND_EVERY_SECONDS)

    @staticmethod
    def _read(caller: Caller) -> None:
        answer = caller.sqs.receive_message(QueueUrl=caller.queue_url, WaitTimeSeconds=1)
        for message in answer.get("Messages", []):
            caller.sqs.delete_message(
                QueueUrl=caller.queue_url, ReceiptHandle=message["ReceiptHandle"]
            )


@dataclass
class Running:
    """The calls of one kind to one queue, from `start` until `stop` has returned."""

    traffic: Traffic
    caller: Caller
    _workers: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self.traffic.prepare(self.caller)
        self._workers = [
            threading.Thread(target=self._work, name=f"{self.caller.queue_url}#{n}", daemon=True)
            for n in range(self.traffic.workers)
        ]
        for worker in self._workers:
            worker.start()

    def put_down(self) -> None:
        """Have every worker stop, soon."""
        self.caller.enough.set()

    def stop(self) -> None:
        """Return when every worker has stopped."""
        self.put_down()
        for worker in self._workers:
            worker.join(timeout=STOP_SECONDS)

    def _work(self) -> None:
        while not self.caller.enough.is_set():
            self.traffic.work(self.caller)
