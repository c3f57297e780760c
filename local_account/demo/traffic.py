"""The calls that a story's queues get: each kind is a value that a queue's trouble names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar

from botocore.exceptions import ClientError
from msgspec import Struct

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SEND_EVERY_SECONDS = 1.0
STOP_SECONDS = 15
MOST_ENTRIES = 10


@dataclass(frozen=True)
class Caller:
    """Somebody with a client of one queue; `report` hears how each call ended, None for well."""

    sqs: SQSClient
    queue_url: str
    report: Callable[[str | None], None]
    enough: Event = field(default_factory=Event)

    def attempt(self, call: Callable[[], object]) -> bool:
        """Make a call that may be refused, report its end, and return whether it ended well."""
        try:
            call()
        except ClientError as error:
            self.report(error.response["Error"]["Message"])
            return False
        self.report(None)
        return True

    def receive(self, **more: Any) -> list[dict[str, Any]]:
        """Receive with a short long poll."""
        answer: Any = self.sqs.receive_message(QueueUrl=self.queue_url, WaitTimeSeconds=1, **more)
        return list(answer.get("Messages", []))

    def delete(self, message: Mapping[str, Any]) -> bool:
        """Delete a received message, and return whether SQS took it."""
        handle = message["ReceiptHandle"]
        delete = self.sqs.delete_message
        return self.attempt(partial(delete, QueueUrl=self.queue_url, ReceiptHandle=handle))


def send(caller: Caller, bodies: list[str]) -> None:
    """Send messages, as many to a call as SQS takes."""
    for first in range(0, len(bodies), MOST_ENTRIES):
        some = bodies[first : first + MOST_ENTRIES]
        caller.sqs.send_message_batch(
            QueueUrl=caller.queue_url,
            Entries=[{"Id": f"{n}", "MessageBody": body} for n, body in enumerate(some)],
        )


def numbered(messages: int) -> list[str]:
    """The bodies of so many messages."""
    return [f"work {n}" for n in range(messages)]


class Traffic(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One kind of calls by `workers` threads: what people call one, and one that ended well.

    So many that ended well are `convincing`: the queue works again, or enough of them went on
    for a scan to see what no call says.
    """

    workers: int
    convincing: int
    noun: ClassVar[str] = "call"
    well: ClassVar[str] = "made"

    def prepare(self, caller: Caller) -> None:
        """Do once what the calls need."""

    def work(self, caller: Caller) -> None:
        """Do one round of a worker; return soon after `caller.enough` is set."""


class Nobody(Traffic, frozen=True, kw_only=True, tag="nobody"):
    """A queue that nobody calls: it is its configuration that will hurt."""

    workers: int = 0
    convincing: int = 0


class Extensions(Nobody, frozen=True, kw_only=True, tag="extensions"):
    """Requests for more time: the script of the redrive has the consumers that make them."""

    convincing: int = 2
    noun: ClassVar[str] = "extension"
    well: ClassVar[str] = "given"


class LateDeletes(Traffic, frozen=True, kw_only=True, tag="late deletes"):
    """Careless consumers of a FIFO queue, one message group each, that work for too long.

    With `goes_on` every message that was deleted in time is followed by another.
    """

    works_seconds: float
    workers: int = 3
    goes_on: bool = False
    convincing: int = 1
    noun: ClassVar[str] = "delete"
    well: ClassVar[str] = "in time"

    def prepare(self, caller: Caller) -> None:
        """Send the first message of each group."""
        for group in range(self.workers):
            self._send(caller, f"group-{group}")

    @staticmethod
    def _send(caller: Caller, group: str) -> None:
        own: Any = {"MessageGroupId": group, "MessageDeduplicationId": uuid.uuid4().hex}
        caller.sqs.send_message(QueueUrl=caller.queue_url, MessageBody=f"work of {group}", **own)

    def work(self, caller: Caller) -> None:
        """Receive, work, and delete when the visibility timeout may have ended."""
        for message in caller.receive(MessageSystemAttributeNames=["MessageGroupId"]):
            if caller.enough.wait(self.works_seconds):
                return
            if caller.delete(message) and self.goes_on:
                self._send(caller, message["Attributes"]["MessageGroupId"])


class Sends(Traffic, frozen=True, kw_only=True, tag="sends"):
    """A sender of the same body again and again; `more` stands in each request.

    `with_own_id` adds another deduplication id each time; `is_read` has every message that
    was accepted received and deleted.
    """

    body_bytes: int = 20
    more: dict[str, str] = {}
    with_own_id: bool = False
    is_read: bool = False
    workers: int = 1
    convincing: int = 3
    noun: ClassVar[str] = "send"
    well: ClassVar[str] = "accepted"

    def work(self, caller: Caller) -> None:
        """Send one message, and pause."""
        own = {"MessageDeduplicationId": uuid.uuid4().hex} if self.with_own_id else {}
        more: Any = {"MessageBody": "x" * self.body_bytes, **self.more, **own}
        send = partial(caller.sqs.send_message, QueueUrl=caller.queue_url, **more)
        if caller.attempt(send) and self.is_read:
            for message in caller.receive():
                handle = message["ReceiptHandle"]
                caller.sqs.delete_message(QueueUrl=caller.queue_url, ReceiptHandle=handle)
        caller.enough.wait(SEND_EVERY_SECONDS)


class Races(Traffic, frozen=True, kw_only=True, tag="races"):
    """Consumers of a standard queue that work for too long: every late delete is answered 200.

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
        """Send the slow messages and the quick ones."""
        send(caller, numbered(self.messages + self.quick))

    def work(self, caller: Caller) -> None:
        """Receive one, work if it is a slow one, and delete it."""
        slow = numbered(self.messages)
        for message in caller.receive(MaxNumberOfMessages=1):
            if message["Body"] in slow and caller.enough.wait(self.works_seconds):
                return
            caller.delete(message)


class Crashes(Traffic, frozen=True, kw_only=True, tag="crashes"):
    """Consumers that receive messages and die of them, each time: no delete at all."""

    messages: int = 120
    workers: int = 2
    convincing: int = 45
    noun: ClassVar[str] = "receive"
    well: ClassVar[str] = "that ended in a crash"

    def prepare(self, caller: Caller) -> None:
        """Send the messages."""
        send(caller, numbered(self.messages))

    def work(self, caller: Caller) -> None:
        """Receive, and do no more."""
        caller.attempt(partial(caller.receive, MaxNumberOfMessages=MOST_ENTRIES))
        caller.enough.wait(0.2)


@contextmanager
def consuming(
    consume: Callable[[], object], workers: int, enough: Event | None = None
) -> Iterator[None]:
    """Threads that do nothing else; each ends its round when the block is left."""
    enough = enough or Event()

    def work() -> None:
        while not enough.is_set():
            consume()

    threads = [Thread(target=work, daemon=True) for _ in range(workers)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        enough.set()
        for each in threads:
            each.join(timeout=STOP_SECONDS)


@dataclass
class Running:
    """The calls of one kind to one queue, from `start` until `stop` has returned."""

    traffic: Traffic
    caller: Caller
    _calls: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Begin to call."""
        self.traffic.prepare(self.caller)
        work, enough = partial(self.traffic.work, self.caller), self.caller.enough
        self._calls.enter_context(consuming(work, self.traffic.workers, enough))

    def put_down(self) -> None:
        """Tell every worker to stop soon."""
        self.caller.enough.set()

    def stop(self) -> None:
        """Return when every worker has stopped."""
        self._calls.close()
