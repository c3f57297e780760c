"""The kinds of calls that consumers and senders make to the queues of a story."""

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

SEND_INTERVAL_SECONDS = 1.0
THREAD_STOP_TIMEOUT_SECONDS = 15
MAXIMUM_BATCH_ENTRIES = 10


@dataclass(frozen=True)
class Caller:
    """A client of one queue.

    Attributes:
        sqs: boto3 client that makes the calls.
        queue_url: URL of the queue.
        report_call: Is called after each call that `attempt_call` makes: with the error message, or
            None if the call succeeded.
        stop_requested: Is set when the caller must stop.
    """

    sqs: SQSClient
    queue_url: str
    report_call: Callable[[str | None], None]
    stop_requested: Event = field(default_factory=Event)

    def attempt_call(self, call: Callable[[], object]) -> bool:
        """Make a call and report its result. Return False if AWS answered with an error."""
        try:
            call()
        except ClientError as error:
            self.report_call(error.response["Error"]["Message"])
            return False
        self.report_call(None)
        return True

    def receive(self, **parameters: Any) -> list[dict[str, Any]]:
        """Receive messages with a long poll of one second, without a report of the call.

        `parameters` are further parameters of ReceiveMessage.
        """
        response: Any = self.sqs.receive_message(
            QueueUrl=self.queue_url, WaitTimeSeconds=1, **parameters
        )
        return list(response.get("Messages", []))

    def delete(self, message: Mapping[str, Any]) -> bool:
        """Delete a received message. Return True if SQS answered without an error."""
        receipt_handle = message["ReceiptHandle"]
        delete_message = self.sqs.delete_message
        return self.attempt_call(
            partial(delete_message, QueueUrl=self.queue_url, ReceiptHandle=receipt_handle)
        )


def send_bodies(caller: Caller, bodies: list[str]) -> None:
    """Send one message for each body, in batches of at most ten."""
    for batch_start in range(0, len(bodies), MAXIMUM_BATCH_ENTRIES):
        batch_bodies = bodies[batch_start : batch_start + MAXIMUM_BATCH_ENTRIES]
        caller.sqs.send_message_batch(
            QueueUrl=caller.queue_url,
            Entries=[
                {"Id": f"{number}", "MessageBody": body} for number, body in enumerate(batch_bodies)
            ],
        )


def make_bodies(message_count: int) -> list[str]:
    """Return `message_count` different message bodies."""
    return [f"work {number}" for number in range(message_count)]


class Traffic(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Calls of the same kind, made by `workers` threads.

    Attributes:
        workers: Number of threads.
        convincing_calls: Number of successful calls after which the story continues: the queue
            works again, or a scan has enough to measure.
        call_noun: The word for a call in what the demo prints.
        success_words: The words for a call that succeeded.
    """

    workers: int
    convincing_calls: int
    call_noun: ClassVar[str] = "call"
    success_words: ClassVar[str] = "made"

    def prepare(self, caller: Caller) -> None:
        """Prepare the queue, once, before the first call. By default, do nothing."""

    def make_next_calls(self, caller: Caller) -> None:
        """Make one worker's next calls. By default, do nothing.

        A subclass must return soon after `caller.stop_requested` is set.
        """


class NoCalls(Traffic, frozen=True, kw_only=True, tag="nobody"):
    """No calls: the queue's configuration alone shows the fault."""

    workers: int = 0
    convincing_calls: int = 0


class Extensions(NoCalls, frozen=True, kw_only=True, tag="extensions"):
    """Requests for a longer visibility timeout, which the consumers of the redrive story make."""

    convincing_calls: int = 2
    call_noun: ClassVar[str] = "extension"
    success_words: ClassVar[str] = "given"


class LateDeletes(Traffic, frozen=True, kw_only=True, tag="late deletes"):
    """Consumers of a FIFO queue that need longer for a message than the visibility timeout.

    They delete messages too late until the timeout is long enough. There are as many message groups
    as consumers.

    Attributes:
        works_seconds: How long a consumer works on a message.
        goes_on: True if another message is sent after each message that was deleted in time.
    """

    works_seconds: float
    workers: int = 3
    goes_on: bool = False
    convincing_calls: int = 1
    call_noun: ClassVar[str] = "delete"
    success_words: ClassVar[str] = "in time"

    def prepare(self, caller: Caller) -> None:
        """Send the first message of each group."""
        for group_number in range(self.workers):
            self._send(caller, f"group-{group_number}")

    @staticmethod
    def _send(caller: Caller, group_id: str) -> None:
        caller.sqs.send_message(
            QueueUrl=caller.queue_url,
            MessageBody=f"work of {group_id}",
            MessageGroupId=group_id,
            MessageDeduplicationId=uuid.uuid4().hex,
        )

    def make_next_calls(self, caller: Caller) -> None:
        """Receive a message, work for `works_seconds`, and delete the message.

        If the delete succeeded and `goes_on` is True, send the next message of the group. If the
        traffic ends during the work, the message is not deleted.
        """
        for message in caller.receive(MessageSystemAttributeNames=["MessageGroupId"]):
            if caller.stop_requested.wait(self.works_seconds):
                return
            if caller.delete(message) and self.goes_on:
                self._send(caller, message["Attributes"]["MessageGroupId"])


class Sends(Traffic, frozen=True, kw_only=True, tag="sends"):
    """A sender that sends the same body again and again.

    Attributes:
        body_bytes: Length of the body.
        more: Further parameters of SendMessage.
        with_own_id: True if each send has a new deduplication id.
        is_read: True if a worker also receives and deletes messages after a successful send.
    """

    body_bytes: int = 20
    more: dict[str, str] = {}
    with_own_id: bool = False
    is_read: bool = False
    workers: int = 1
    convincing_calls: int = 3
    call_noun: ClassVar[str] = "send"
    success_words: ClassVar[str] = "accepted"

    def make_next_calls(self, caller: Caller) -> None:
        """Send one message, receive and delete messages if `is_read`, and pause."""
        parameters: Any = {"MessageBody": "x" * self.body_bytes, **self.more}
        if self.with_own_id:
            parameters["MessageDeduplicationId"] = uuid.uuid4().hex
        send_message = partial(caller.sqs.send_message, QueueUrl=caller.queue_url, **parameters)
        if caller.attempt_call(send_message) and self.is_read:
            for message in caller.receive():
                receipt_handle = message["ReceiptHandle"]
                caller.sqs.delete_message(QueueUrl=caller.queue_url, ReceiptHandle=receipt_handle)
        caller.stop_requested.wait(SEND_INTERVAL_SECONDS)


class Races(Traffic, frozen=True, kw_only=True, tag="races"):
    """Consumers of a standard queue that work too long on some messages.

    SQS answers every late delete with 200. While one consumer works, the message becomes visible
    again, another consumer receives the message, and both delete it. There are enough consumers, so
    that an idle one always receives the message. Most messages are handled at once: if all were
    slow, the metrics would look like those of retries.

    Attributes:
        works_seconds: How long a consumer works on a slow message.
        messages: Number of slow messages.
        quick_messages: Number of messages that are handled at once.
    """

    works_seconds: float
    messages: int = 4
    quick_messages: int = 400
    workers: int = 16
    convincing_calls: int = 460
    call_noun: ClassVar[str] = "delete"
    success_words: ClassVar[str] = "answered 200"

    def prepare(self, caller: Caller) -> None:
        """Send the slow messages and the quick ones."""
        send_bodies(caller, make_bodies(self.messages + self.quick_messages))

    def make_next_calls(self, caller: Caller) -> None:
        """Receive a message and delete it. Delete a slow message only after `works_seconds`.

        If the traffic ends during this time, the slow message is not deleted.
        """
        slow_bodies = make_bodies(self.messages)
        for message in caller.receive(MaxNumberOfMessages=1):
            if message["Body"] in slow_bodies and caller.stop_requested.wait(self.works_seconds):
                return
            caller.delete(message)


class Crashes(Traffic, frozen=True, kw_only=True, tag="crashes"):
    """Consumers that crash on every message: they receive and never delete."""

    messages: int = 120
    workers: int = 2
    convincing_calls: int = 45
    call_noun: ClassVar[str] = "receive"
    success_words: ClassVar[str] = "that ended in a crash"

    def prepare(self, caller: Caller) -> None:
        """Send the messages."""
        send_bodies(caller, make_bodies(self.messages))

    def make_next_calls(self, caller: Caller) -> None:
        """Receive messages without handling or deleting them."""
        caller.attempt_call(partial(caller.receive, MaxNumberOfMessages=MAXIMUM_BATCH_ENTRIES))
        caller.stop_requested.wait(0.2)


@contextmanager
def run_consumers(
    consume: Callable[[], object], worker_count: int, stop_requested: Event | None = None
) -> Iterator[None]:
    """Call `consume` again and again in `worker_count` threads, until `stop_requested` is set.

    It is set at the end of the block at the latest. Each thread then finishes its current call. The
    block's end waits for each thread, at most THREAD_STOP_TIMEOUT_SECONDS.
    """
    stop_requested = stop_requested or Event()

    def work_until_stopped() -> None:
        while not stop_requested.is_set():
            consume()

    threads = [Thread(target=work_until_stopped, daemon=True) for _ in range(worker_count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop_requested.set()
        for thread in threads:
            thread.join(timeout=THREAD_STOP_TIMEOUT_SECONDS)


@dataclass
class RunningTraffic:
    """The calls of one kind to one queue. They begin with `start`, and end with `ask_to_stop`."""

    traffic: Traffic
    caller: Caller
    _running_calls: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Prepare the queue, and start the threads that make the calls."""
        self.traffic.prepare(self.caller)
        work_once = partial(self.traffic.make_next_calls, self.caller)
        self._running_calls.enter_context(
            run_consumers(work_once, self.traffic.workers, self.caller.stop_requested)
        )

    def ask_to_stop(self) -> None:
        """Ask every worker to stop. Do not wait for the workers."""
        self.caller.stop_requested.set()

    def stop(self) -> None:
        """Ask every worker to stop, and wait for each, at most THREAD_STOP_TIMEOUT_SECONDS.

        If the calls were not started, do nothing.
        """
        self._running_calls.close()
