"""For people's own consumers: a heartbeat, and the publishing of how long messages take.

This folder needs boto3 alone, so that consumers can use it as it is: docs/consumers.md.
`idempotent` has a consumer to copy, and what does a thing once for each key.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from random import randrange
from threading import Event, Lock, RLock, Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self

from .writes import LOST, Hold, tens, write

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

__all__ = ["LONGEST_POLL_SECONDS", "ProcessingTimes", "VisibilityHeartbeat"]

LONGEST_POLL_SECONDS = 20
# How often it beats within one visibility timeout; what is past its half is extended.
_BEATS = 8
_DELETES = 2
# CloudWatch makes metrics of such lines where they arrive in its Logs; it takes 100 values in each.
_METRIC, _DIMENSION, MOST_VALUES = "ProcessingSeconds", "QueueName", 100
_SERIES = {
    "Namespace": "Mendq/Consumer",
    "Dimensions": [[_DIMENSION]],
    "Metrics": [{"Name": _METRIC, "Unit": "Seconds"}],
}


class VisibilityHeartbeat:
    """Messages of one queue, held until each is deleted, released or lost.

    `seconds` is the visibility timeout that they are received with, and what every extension asks
    for again.

    As a context manager it extends them on a thread of its own, which never outlives the block nor
    keeps a process alive. Leaving the block neither deletes nor releases: a message whose work
    failed comes again when its visibility timeout is over. Several threads may be in the block of
    one heartbeat at the same time; the last one to leave ends its thread. Without the block, call
    `keep` now and then. `processing_times` counts each message that it deletes.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        seconds: int,
        clock: Callable[[], float] = monotonic,
        processing_times: ProcessingTimes | None = None,
    ) -> None:
        self._sqs, self._queue_url, self._seconds, self._clock = sqs, queue_url, seconds, clock
        self._processing_times = processing_times
        # In the order in which they came; what is dropped from it is not lost.
        self._holds: dict[str, Hold] = {}
        self._lost: set[str] = set()
        # Held through every call: nothing that is written here can overtake a release.
        self._writing = RLock()
        self._over = Event()
        self._heart: Thread | None = None
        # Not the lock above: leaving the block must stop the thread in the middle of a call.
        self._entering = Lock()
        self._blocks = 0

    def __enter__(self) -> Self:
        with self._entering:
            self._blocks += 1
            if self._blocks == 1:
                self._over = Event()
                self._heart = Thread(
                    target=self._beat, args=(self._over,), name="visibility", daemon=True
                )
                self._heart.start()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._entering:
            self._blocks -= 1
            if self._blocks == 0 and self._heart is not None:
                self._over.set()
                self._heart.join()

    @property
    def is_lost(self) -> bool:
        """True once a message that was neither deleted nor released went to others: stop work."""
        return bool(self.lost)

    @property
    def lost(self) -> frozenset[str]:
        """Message ids whose visibility timeout ran out, or that SQS says are somebody else's."""
        with self._writing:
            self._held_at(self._clock())
            return frozenset(self._lost)

    @property
    def held(self) -> frozenset[str]:
        """Message ids."""
        with self._writing:
            return frozenset(self._held_at(self._clock()))

    def receive(self, **asked: Any) -> list[MessageTypeDef]:
        """Hold what one ReceiveMessage finds, and return it.

        `asked` is what boto3 takes, without QueueUrl and VisibilityTimeout. Raises what boto3
        raises, and ValueError where a receive may wait for longer than the visibility timeout.
        """
        if asked.get("WaitTimeSeconds", LONGEST_POLL_SECONDS) >= self._seconds:
            rule = "WaitTimeSeconds must be given, and be less than the visibility timeout"
            raise ValueError(f"{rule} of {self._seconds} s")
        before = self._clock()
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url, VisibilityTimeout=self._seconds, **asked
        )
        self.add(*answer.get("Messages", []), received_at=before)
        return answer.get("Messages", [])

    def add(self, *messages: Mapping[str, Any], received_at: float) -> None:
        """Hold these too, as boto3 received them; `received_at` is the clock before that.

        One that was received again is held by its newest handle.
        """
        until = received_at + self._seconds
        with self._writing:
            for each in messages:
                name, handle = str(each["MessageId"]), str(each["ReceiptHandle"])
                self._holds[name] = Hold(name, handle, received_at, until)
                self._lost.discard(name)

    def keep(self) -> None:
        """Extend whatever is past the half of its time; the last extension ends at 12 hours.

        Never raises for what SQS answers: what could not be extended is tried again at the next
        beat, until its time is over and it is lost.
        """
        self._keep(Event())

    def _keep(self, over: Event) -> None:
        with self._writing:
            now = self._clock()
            due = [each for each in self._held_at(now).values() if each.is_due(now, self._seconds)]
        for ten in tens(due):
            if over.is_set():
                return
            # Whoever deletes or releases waits for ten, not for thousands.
            with self._writing:
                now = self._clock()
                held = self._held_at(now)
                self._extend([each for each in ten if held.get(each.message_id) is each], now)

    def release(self, *message_ids: str) -> None:
        """Make these messages visible to other consumers at once. Without ids, do nothing.

        The heartbeat does not extend a released message again.
        """
        with self._writing:
            released = self._among(message_ids)
            self._drop(released)
            for ten in tens(released):
                self._change(ten, 0)

    def release_all(self) -> None:
        """Make every message that is still held visible to other consumers at once."""
        with self._writing:
            self.release(*self._held_at(self._clock()))

    def stop_extending(self, *message_ids: str) -> None:
        """Hold these messages no longer and write nothing. Without ids, do nothing.

        They come again when their visibility timeout is over. Use it for work that failed, if the
        block goes on with other messages.
        """
        with self._writing:
            self._drop(self._among(message_ids))

    def delete(self, *message_ids: str) -> frozenset[str]:
        """Delete those of these messages that are still held. Without ids, delete nothing.

        Returns:
            The ids of the messages that are gone now. Every other message was lost, or SQS did not
            take the delete: it comes again.
        """
        with self._writing:
            asked = left = self._among(message_ids)
            for _ in range(_DELETES):
                for ten in tens(left):
                    calls = self._sqs.delete_message, self._sqs.delete_message_batch
                    refused = write(*calls, self._queue_url, ten)
                    self._drop(each for each in ten if each.message_id not in refused)
                    self._give_up(each for each in ten if refused.get(each.message_id) in LOST)
                left = [each for each in asked if self._holds.get(each.message_id) is each]
            gone = frozenset(each.message_id for each in asked) - self.held - self._lost
            times = self._processing_times
            for each in asked:
                if times is not None and each.message_id in gone:
                    times.add(self._clock() - each.received_at)
            return gone

    def delete_all(self) -> frozenset[str]:
        """Delete every message that is still held, and return the ids of those that are gone now.

        Use it only if the work of every message is done. It deletes the others too.
        """
        with self._writing:
            return self.delete(*self._held_at(self._clock()))

    def _held_at(self, now: float) -> Mapping[str, Hold]:
        """The holds by message id, after those that ran out were lost."""
        self._give_up(each for each in [*self._holds.values()] if each.until <= now)
        return self._holds

    def _among(self, message_ids: Sequence[str]) -> list[Hold]:
        """Return those of these messages that are still held, in this order and each once.

        Raises TypeError if an id is no text. A generator or None in place of ids would name no
        held message, and the messages that were meant would come again.
        """
        if strange := [each for each in message_ids if not isinstance(each, str)]:
            kind = type(strange[0]).__name__
            raise TypeError(f"message ids are texts, not {kind}: pass each id, such as *ids")
        held = self._held_at(self._clock())
        return [held[name] for name in dict.fromkeys(message_ids) if name in held]

    def _extend(self, holds: Sequence[Hold], now: float) -> None:
        if not holds:
            return
        seconds = min(self._seconds, int(min(each.last_at for each in holds) - now))
        refused = self._change(holds, seconds)
        for each in holds:
            if each.message_id not in refused:
                each.until = now + seconds
        self._give_up(each for each in holds if refused.get(each.message_id) in LOST)

    def _change(self, holds: Sequence[Hold], seconds: int) -> dict[str, str]:
        """Hide them for so long from now on; 0 makes them visible."""
        calls = self._sqs.change_message_visibility, self._sqs.change_message_visibility_batch
        return write(*calls, self._queue_url, holds, VisibilityTimeout=seconds)

    def _drop(self, holds: Iterable[Hold]) -> None:
        for each in holds:
            del self._holds[each.message_id]

    def _give_up(self, holds: Iterable[Hold]) -> None:
        for each in holds:
            del self._holds[each.message_id]
            self._lost.add(each.message_id)

    def _beat(self, over: Event) -> None:
        while not over.wait(self._seconds / _BEATS):
            self._keep(over)


class ProcessingTimes:
    """How long messages of one queue took: at most one line each `every_seconds`.

    A line says the queue's name and seconds, and nothing of a message; of more than a hundred
    messages it has a hundred, each as likely as any other. It goes to standard output, or to
    `sink`. Nothing that writing raises reaches who works on a message: that line is lost.

    Safe for threads. Keep one for as long as the process lives, and `publish` what is left when it
    ends: nothing is written by itself while no message is done.
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
        self._sink, self._every_seconds, self._clock = sink, every_seconds, clock
        self._begun_at, self._done = clock(), 0
        self._seconds: list[float] = []
        self._lock = Lock()

    def add(self, seconds: float) -> None:
        """Record the seconds from the receive of a message to the end of its work.

        Values that are not finite are left out: CloudWatch drops a line with NaN or Infinity.
        """
        if not _is_finite(seconds):
            return
        with self._lock:
            self._done += 1
            at = randrange(self._done)  # noqa: S311 - nothing secret
            if len(self._seconds) < MOST_VALUES:
                self._seconds.append(round(seconds, 3))
            elif at < MOST_VALUES:
                self._seconds[at] = round(seconds, 3)
        if self._clock() - self._begun_at >= self._every_seconds:
            self.publish()

    def publish(self) -> None:
        """Write a line of what was counted since the last; none where nothing was."""
        now = self._clock()
        with self._lock:
            values, self._seconds, self._done, self._begun_at = self._seconds, [], 0, now
        about = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [_SERIES]}
        line = json.dumps({"_aws": about, _DIMENSION: self._queue_name, _METRIC: values})
        with suppress(Exception):
            if values:
                (self._sink or _to_standard_output)(line)


def _is_finite(seconds: float) -> bool:
    """Return True if the value is a finite number. Raise nothing for other values."""
    try:
        return isfinite(seconds)
    except (OverflowError, TypeError, ValueError):
        return False


def _to_standard_output(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - where Lambda and containers have their logs read
