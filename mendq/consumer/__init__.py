"""A library for your own consumers: keep messages hidden while you work, and measure the work.

`VisibilityHeartbeat` extends visibility timeouts. `ProcessingTimes` publishes how long messages
take. The module `idempotent` does the work for each key once, and has a consumer to copy.

The library needs only boto3, so that you can copy this folder. See docs/consumers.md.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from random import randrange
from threading import Event, Lock, RLock, Thread
from time import time
from typing import TYPE_CHECKING, Any, Self

from .clock import read_sleep_counting_clock
from .writes import LOST_MESSAGE_CODES, Hold, change_messages, split_into_batches

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

__all__ = ["LONGEST_POLL_SECONDS", "ProcessingTimes", "VisibilityHeartbeat"]

_LOG = logging.getLogger(__name__)
LONGEST_POLL_SECONDS = 20
# How often within one visibility timeout the thread extends messages. Each time, it extends those
# whose timeout is half over.
_EXTENSIONS_PER_TIMEOUT = 8
# The most attempts to delete a message.
_DELETE_ATTEMPTS = 2
_PROCESSING_TIME_METRIC_NAME = "ProcessingSeconds"
_QUEUE_DIMENSION_NAME = "QueueName"
# The most values that CloudWatch accepts in one line in the embedded metric format.
MOST_VALUES_PER_LINE = 100
_METRIC_DEFINITION = {
    "Namespace": "Mendq/Consumer",
    "Dimensions": [[_QUEUE_DIMENSION_NAME]],
    "Metrics": [{"Name": _PROCESSING_TIME_METRIC_NAME, "Unit": "Seconds"}],
}


class VisibilityHeartbeat:
    """Receives messages of one queue and holds them, so that other consumers do not get them.

    A message is held until it is deleted, released or lost, or until `stop_extending` is called for
    it. Within a `with` block, the heartbeat extends the visibility timeouts on its own thread. The
    thread ends with the block and does not keep the process alive. Without a `with` block, call
    `keep` regularly.

    Leaving the block neither deletes nor releases messages: SQS returns a message whose work failed
    when its visibility timeout is over. Several threads may be in the block of one heartbeat at the
    same time; the heartbeat's thread ends when the last of them leaves.

    Args:
        sqs: A client that may call ReceiveMessage, DeleteMessage and ChangeMessageVisibility.
        queue_url: The queue.
        seconds: The visibility timeout of every receive and of every extension. SQS's limit of 12
            hours may make an extension shorter.
        clock: Returns the time in seconds. It must never go back, and must include the time while
            the machine sleeps (see `clock.py`).
        processing_times: Records the processing time of each message that the heartbeat deletes.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        seconds: int,
        clock: Callable[[], float] = read_sleep_counting_clock,
        processing_times: ProcessingTimes | None = None,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._visibility_seconds = seconds
        self._clock = clock
        self._processing_times = processing_times
        # Held messages by message id, in the order in which they were received.
        self._holds: dict[str, Hold] = {}
        self._lost_message_ids: set[str] = set()
        # A thread has this lock during every call to SQS, so that an extension cannot overtake a
        # release.
        self._write_lock = RLock()
        self._end_event = Event()
        self._thread: Thread | None = None
        # A separate lock: leaving the block must stop the thread even while the thread calls SQS.
        self._block_count_lock = Lock()
        self._open_block_count = 0

    def __enter__(self) -> Self:
        with self._block_count_lock:
            self._open_block_count += 1
            if self._open_block_count == 1:
                self._end_event = Event()
                self._thread = Thread(
                    target=self._extend_until_end_event,
                    args=(self._end_event,),
                    name="visibility",
                    daemon=True,
                )
                self._thread.start()
        return self

    def __exit__(self, *exception_details: object) -> None:
        with self._block_count_lock:
            self._open_block_count -= 1
            if self._open_block_count == 0 and self._thread is not None:
                self._end_event.set()
                self._thread.join()

    @property
    def is_lost(self) -> bool:
        """True if a message was lost: another consumer may have it, so stop the work on it."""
        return bool(self.lost)

    @property
    def lost(self) -> frozenset[str]:
        """Ids of messages that were neither deleted nor released and that others may have received.

        Their visibility timeout ran out, or SQS said that this consumer no longer holds them. A
        message that this consumer receives again is removed from the ids.
        """
        with self._write_lock:
            self._forget_expired_messages(self._clock())
            return frozenset(self._lost_message_ids)

    @property
    def held(self) -> frozenset[str]:
        """Ids of the messages that this consumer holds now."""
        with self._write_lock:
            return frozenset(self._forget_expired_messages(self._clock()))

    def receive(self, **arguments: Any) -> list[MessageTypeDef]:
        """Receive messages with one call of ReceiveMessage, hold them and return them.

        Args:
            arguments: Arguments of boto3's `receive_message`, except QueueUrl and
                VisibilityTimeout. Without WaitTimeSeconds, SQS may wait LONGEST_POLL_SECONDS.

        Raises:
            ValueError: WaitTimeSeconds, or LONGEST_POLL_SECONDS if it is missing, is not less than
                the visibility timeout.
            ClientError, BotoCoreError: The call failed.
        """
        if arguments.get("WaitTimeSeconds", LONGEST_POLL_SECONDS) >= self._visibility_seconds:
            problem = "WaitTimeSeconds must be given, and be less than the visibility timeout"
            raise ValueError(f"{problem} of {self._visibility_seconds} s")
        receive_started_at = self._clock()
        response = self._sqs.receive_message(
            QueueUrl=self._queue_url, VisibilityTimeout=self._visibility_seconds, **arguments
        )
        self.add(*response.get("Messages", []), received_at=receive_started_at)
        return response.get("Messages", [])

    def add(self, *messages: Mapping[str, Any], received_at: float) -> None:
        """Hold messages that other code received with the heartbeat's visibility timeout.

        If a message was received again, its newest receipt handle is used.

        Args:
            messages: The messages, as boto3 returned them.
            received_at: The time of the heartbeat's clock just before the receive.
        """
        hidden_until = received_at + self._visibility_seconds
        with self._write_lock:
            for message in messages:
                message_id = str(message["MessageId"])
                receipt_handle = str(message["ReceiptHandle"])
                self._holds[message_id] = Hold(
                    message_id, receipt_handle, received_at, hidden_until
                )
                self._lost_message_ids.discard(message_id)

    def keep(self) -> None:
        """Extend the visibility timeout of each held message whose timeout is half over.

        SQS allows no message to be held for longer than 12 hours after its receive. If an extension
        fails, no error is raised, and the next call tries again until the timeout ends and the
        message is lost. Errors that boto3 does not define, such as those of a proxy, are logged.
        """
        self._extend_due_messages(Event())

    def _extend_due_messages(self, end_event: Event) -> None:
        """Extend the messages whose visibility timeout is half over. Stop if `end_event` is set."""
        with self._write_lock:
            now = self._clock()
            current_holds = self._forget_expired_messages(now).values()
            due_holds = [
                hold
                for hold in current_holds
                if hold.is_extension_due(now, self._visibility_seconds)
            ]
        for batch in split_into_batches(due_holds):
            if end_event.is_set():
                return
            # Release the lock after each batch, so that a delete or release never waits for
            # thousands of extensions.
            with self._write_lock:
                now = self._clock()
                holds_by_id = self._forget_expired_messages(now)
                # A message may have been deleted, released or received again meanwhile.
                remaining_holds = [
                    hold for hold in batch if holds_by_id.get(hold.message_id) is hold
                ]
                self._try_to_extend_batch(remaining_holds, now)

    def release(self, *message_ids: str) -> None:
        """Make these messages visible to other consumers at once. Without ids, do nothing.

        The heartbeat does not extend a released message again. If the call to SQS fails, the
        message becomes visible when its visibility timeout is over.
        """
        with self._write_lock:
            released_holds = self._find_held_messages(message_ids)
            self._forget_messages(released_holds)
            for batch in split_into_batches(released_holds):
                self._change_visibility(batch, 0)

    def release_all(self) -> None:
        """Make every message that is still held visible to other consumers at once."""
        with self._write_lock:
            self.release(*self._forget_expired_messages(self._clock()))

    def stop_extending(self, *message_ids: str) -> None:
        """Stop extending these messages. This makes no call to SQS. Without ids, do nothing.

        SQS returns the messages again when their visibility timeout is over. Use this method if the
        work for a message failed and the block continues with other messages.
        """
        with self._write_lock:
            self._forget_messages(self._find_held_messages(message_ids))

    def delete(self, *message_ids: str) -> frozenset[str]:
        """Delete these messages if they are still held. Without ids, delete nothing.

        Returns:
            The ids of the messages that this call deleted. A message that SQS failed to delete is
            still held, unless it was lost. The other messages were no longer held.
        """
        with self._write_lock:
            holds = self._find_held_messages(message_ids)
            remaining_holds = holds
            for _ in range(_DELETE_ATTEMPTS):
                for batch in split_into_batches(remaining_holds):
                    self._delete_batch(batch)
                remaining_holds = [
                    hold for hold in holds if self._holds.get(hold.message_id) is hold
                ]
            deleted_message_ids = (
                frozenset(hold.message_id for hold in holds) - self.held - self._lost_message_ids
            )
            if self._processing_times is not None:
                for hold in holds:
                    if hold.message_id in deleted_message_ids:
                        self._processing_times.add(self._clock() - hold.received_at)
            return deleted_message_ids

    def delete_all(self) -> frozenset[str]:
        """Delete all messages that are still held, and return the ids of the deleted messages.

        Call it only if the work for every message is done, because it also deletes unfinished ones.
        """
        with self._write_lock:
            return self.delete(*self._forget_expired_messages(self._clock()))

    def _delete_batch(self, batch: Sequence[Hold]) -> None:
        """Delete at most ten messages. A message that SQS did not delete stays held or is lost."""
        error_code_by_id = change_messages(
            self._sqs.delete_message, self._sqs.delete_message_batch, self._queue_url, batch
        )
        self._forget_messages(hold for hold in batch if hold.message_id not in error_code_by_id)
        self._mark_lost(_select_lost_messages(batch, error_code_by_id))

    def _forget_expired_messages(self, now: float) -> Mapping[str, Hold]:
        """Mark messages as lost if their visibility timeout is over. Return the others, by id."""
        self._mark_lost(hold for hold in list(self._holds.values()) if hold.hidden_until <= now)
        return self._holds

    def _find_held_messages(self, message_ids: Sequence[str]) -> list[Hold]:
        """Return the holds of these messages, each once and in this order.

        Messages that are no longer held are left out. Raise TypeError if an id is not a text.
        Without this error, a caller that passes a list or None by mistake would not notice that
        nothing happens.
        """
        for message_id in message_ids:
            if not isinstance(message_id, str):
                id_type_name = type(message_id).__name__
                raise TypeError(
                    f"message ids are texts, not {id_type_name}: pass each id, such as *ids"
                )
        holds_by_id = self._forget_expired_messages(self._clock())
        unique_message_ids = dict.fromkeys(message_ids)
        return [
            holds_by_id[message_id]
            for message_id in unique_message_ids
            if message_id in holds_by_id
        ]

    def _try_to_extend_batch(self, holds: Sequence[Hold], now: float) -> None:
        """Call `_extend_batch`. Log every error, so that the caller continues with the next batch.

        After an error, `hidden_until` of the messages stays at the time that SQS confirmed last.
        """
        try:
            self._extend_batch(holds, now)
        except Exception:  # noqa: BLE001 - a client's hooks may raise anything
            _LOG.exception(
                "extending the visibility timeout failed for %d message(s); "
                "the next beat tries again",
                len(holds),
            )

    def _extend_batch(self, holds: Sequence[Hold], now: float) -> None:
        """Extend the visibility timeout of at most ten messages, within SQS's limit of 12 hours."""
        if not holds:
            return
        earliest_hold_limit_at = min(hold.hold_limit_at for hold in holds)
        seconds = min(self._visibility_seconds, int(earliest_hold_limit_at - now))
        error_code_by_id = self._change_visibility(holds, seconds)
        for hold in holds:
            if hold.message_id not in error_code_by_id:
                hold.hidden_until = now + seconds
        self._mark_lost(_select_lost_messages(holds, error_code_by_id))

    def _change_visibility(self, holds: Sequence[Hold], seconds: int) -> dict[str, str]:
        """Hide at most ten messages for `seconds` from now; 0 makes them visible.

        Return the error codes of messages for which this failed, by message id.
        """
        return change_messages(
            self._sqs.change_message_visibility,
            self._sqs.change_message_visibility_batch,
            self._queue_url,
            holds,
            VisibilityTimeout=seconds,
        )

    def _forget_messages(self, holds: Iterable[Hold]) -> None:
        """Forget these messages, so that they are not extended. They do not count as lost."""
        for hold in holds:
            del self._holds[hold.message_id]

    def _mark_lost(self, holds: Iterable[Hold]) -> None:
        """Forget these messages, so that they are not extended, and mark them as lost."""
        for hold in holds:
            del self._holds[hold.message_id]
            self._lost_message_ids.add(hold.message_id)

    def _extend_until_end_event(self, end_event: Event) -> None:
        """Extend messages regularly until `end_event` is set. The heartbeat's thread runs this.

        No error ends the thread, because the work on the messages continues. A client's hooks may
        raise anything: timeouts of gevent and cancellations of asyncio are no `Exception`, and
        Python ends a thread without a word after SystemExit.
        """
        while not end_event.wait(self._visibility_seconds / _EXTENSIONS_PER_TIMEOUT):
            try:
                self._extend_due_messages(end_event)
            except BaseException:  # noqa: BLE001
                # A handler or a filter of the log may fail too.
                with suppress(BaseException):
                    _LOG.exception("a beat of the heartbeat failed; the next beat tries again")


def _select_lost_messages(holds: Iterable[Hold], error_code_by_id: Mapping[str, str]) -> list[Hold]:
    """Return the messages whose error code from SQS means that another consumer may have them."""
    return [hold for hold in holds if error_code_by_id.get(hold.message_id) in LOST_MESSAGE_CODES]


class ProcessingTimes:
    """Publishes how long messages of one queue took, as a CloudWatch metric.

    It writes lines in CloudWatch's embedded metric format; CloudWatch Logs turns them into metrics.
    A line has the queue's name and processing times in seconds, and no content of messages. If more
    than a hundred messages were done since the last line, it has a random sample of a hundred.

    Use one object for the whole life of the process; it is safe for threads. A line is written only
    when a message is done, so call `publish` when the process ends. If a line cannot be written, it
    is lost and no error is raised.

    Args:
        queue_url: The queue.
        sink: Writes a line; by default to standard output.
        every_seconds: The shortest time between two lines in seconds, except for `publish`.
        clock: Returns the time in seconds since 1970.
    """

    def __init__(
        self,
        queue_url: str,
        *,
        sink: Callable[[str], Any] | None = None,
        every_seconds: float = 60,
        clock: Callable[[], float] = time,
    ) -> None:
        self._queue_name = queue_url.rstrip("/").rpartition("/")[2]
        self._sink = sink
        self._every_seconds = every_seconds
        self._clock = clock
        # The time when the current line began, and the number of messages done since then.
        self._begun_at = clock()
        self._done_count = 0
        # A random sample of their processing times.
        self._sample_seconds: list[float] = []
        self._lock = Lock()

    def add(self, seconds: float) -> None:
        """Record the seconds from the receive of a message until the work on it was done.

        Write a line if `every_seconds` have passed since the last line. Ignore a value that is not
        a finite number, because CloudWatch drops a line with NaN or Infinity.
        """
        if not _is_finite(seconds):
            return
        with self._lock:
            self._done_count += 1
            # Reservoir sampling: each message is as likely as any other to be in the sample.
            random_sample_index = randrange(self._done_count)  # noqa: S311 - nothing secret
            if len(self._sample_seconds) < MOST_VALUES_PER_LINE:
                self._sample_seconds.append(round(seconds, 3))
            elif random_sample_index < MOST_VALUES_PER_LINE:
                self._sample_seconds[random_sample_index] = round(seconds, 3)
        if self._clock() - self._begun_at >= self._every_seconds:
            self.publish()

    def publish(self) -> None:
        """Write a line with the processing times since the last line, if there are any."""
        now = self._clock()
        with self._lock:
            sample_seconds = self._sample_seconds
            self._sample_seconds = []
            self._done_count = 0
            self._begun_at = now
        if not sample_seconds:
            return
        metric_metadata = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [_METRIC_DEFINITION]}
        metric_line = json.dumps(
            {
                "_aws": metric_metadata,
                _QUEUE_DIMENSION_NAME: self._queue_name,
                _PROCESSING_TIME_METRIC_NAME: sample_seconds,
            }
        )
        write_line = self._sink or _print_line
        # An error of the sink must not disturb the work on messages.
        with suppress(Exception):
            write_line(metric_line)


def _is_finite(seconds: float) -> bool:
    """Return True if the value is a finite number, and False for every other value."""
    try:
        return isfinite(seconds)
    except (OverflowError, TypeError, ValueError):
        return False


def _print_line(line: str) -> None:
    """Write a line to standard output, from which Lambda and containers collect logs."""
    print(line, flush=True)  # noqa: T201 - standard output is the log
