"""A heartbeat that extends the visibility timeout of received messages while work on them lasts.

This folder needs botocore alone, so that consumers can use it as it is: docs/consumers.md.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event, RLock, Thread
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .holds import Hold, Holds
from .writes import LOST, Writes, tens

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

LONGEST_POLL_SECONDS = 20
# How often it beats within one visibility timeout; what is past its half is extended.
_BEATS = 8
_DELETES = 2


class VisibilityHeartbeat:
    """Messages of one queue, held until each is deleted, released or lost.

    `seconds` is the visibility timeout that they are received with, and what every extension asks
    for again.

    As a context manager it extends them on a thread of its own, which never outlives the block nor
    keeps a process alive. Leaving the block neither deletes nor releases: a message whose work
    failed comes again when its visibility timeout is over. Without the block, call `keep` now and
    then.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        seconds: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._sqs, self._queue_url, self._seconds, self._clock = sqs, queue_url, seconds, clock
        self._holds, self._writes = Holds(seconds), Writes(sqs, queue_url)
        # Held through every call: nothing that is written here can overtake a release.
        self._writing = RLock()
        self._over = Event()
        self._heart: Thread | None = None

    def __enter__(self) -> Self:
        self._over.clear()
        self._heart = Thread(target=self._beat, name="visibility", daemon=True)
        self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._heart is not None:
            self._heart.join()

    @property
    def is_lost(self) -> bool:
        """True once a message that was neither deleted nor released went to others: stop work."""
        return bool(self.lost)

    @property
    def lost(self) -> frozenset[str]:
        """Message ids whose visibility timeout ran out, or that SQS says are somebody else's."""
        with self._writing:
            self._holds.lose_what_ran_out(self._clock())
            return self._holds.lost

    @property
    def held(self) -> frozenset[str]:
        """Message ids."""
        with self._writing:
            self._holds.lose_what_ran_out(self._clock())
            return self._holds.held

    def receive(self, **asked: Any) -> list[MessageTypeDef]:
        """Hold what one ReceiveMessage finds, and return it.

        `asked` is what boto3 takes, without QueueUrl and VisibilityTimeout. Raises what boto3
        raises, and ValueError where a receive may wait for longer than the visibility timeout.
        """
        if asked.get("WaitTimeSeconds", LONGEST_POLL_SECONDS) >= self._seconds:
            raise ValueError(
                "WaitTimeSeconds must be given, and be less than the visibility timeout of "
                f"{self._seconds} s"
            )
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
        with self._writing:
            for each in messages:
                self._holds.add(str(each["MessageId"]), str(each["ReceiptHandle"]), received_at)

    def keep(self) -> None:
        """Extend whatever is past the half of its time; the last extension ends at 12 hours.

        Never raises for what SQS answers: what could not be extended is tried again at the next
        beat, until its time is over and it is lost.
        """
        self._keep(Event())

    def _keep(self, over: Event) -> None:
        with self._writing:
            now = self._clock()
            self._holds.lose_what_ran_out(now)
            due = self._holds.due(now)
        for ten in tens(due):
            if over.is_set():
                return
            # Whoever deletes or releases waits for ten, not for thousands.
            with self._writing:
                now = self._clock()
                still = [each for each in ten if self._holds.has(each, now)]
                if still:
                    self._extend(still, now)

    def release(self, *message_ids: str) -> None:
        """Let others have these, or all, at once; nothing is written about them after that."""
        with self._writing:
            released = self._still_held(message_ids)
            self._holds.drop(released)
            for ten in tens(released):
                self._writes.change(ten, 0)

    def delete(self, *message_ids: str) -> frozenset[str]:
        """Delete these, or all, where they are held still; the ids of those that are gone now.

        What is not among them was lost, or SQS did not take the delete: it will come again.
        """
        with self._writing:
            asked = [each.message_id for each in self._still_held(message_ids)]
            for _ in range(_DELETES):
                for ten in tens(self._holds.among(asked)):
                    refused = self._writes.delete(ten)
                    self._holds.drop(each for each in ten if each.message_id not in refused)
                    self._lose(ten, refused)
            return frozenset(asked) - self.held - self._holds.lost

    def _still_held(self, message_ids: Sequence[str]) -> list[Hold]:
        self._holds.lose_what_ran_out(self._clock())
        return self._holds.among(message_ids) if message_ids else self._holds.every

    def _extend(self, holds: Sequence[Hold], now: float) -> None:
        seconds = min(self._seconds, int(min(each.last_at for each in holds) - now))
        refused = self._writes.change(holds, seconds)
        for each in holds:
            if each.message_id not in refused:
                each.until = now + seconds
        self._lose(holds, refused)

    def _lose(self, holds: Iterable[Hold], refused: Mapping[str, str]) -> None:
        self._holds.lose(each for each in holds if refused.get(each.message_id) in LOST)

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / _BEATS):
            self._keep(self._over)
