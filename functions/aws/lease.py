"""Keeps received messages to whoever works on them, for as long as the work takes.

This file needs botocore alone, so that consumers can use it as it is: docs/consumers.md.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Event, RLock, Thread
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

# SQS counts from the receive, and no extension counts anew.
LONGEST_SECONDS = 43_200
LONGEST_POLL_SECONDS = 20
MOST_ENTRIES = 10
# How often the heart beats within one lease; what is past its half is extended.
_BEATS = 8
_DELETES = 2
# What SQS says of a message that is somebody else's by now, or gone. Of a standard queue it may
# say nothing at all, so the clock decides too.
_LOST = frozenset(
    {
        "InvalidParameterValue",
        "MessageNotInflight",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ReceiptHandleIsInvalid",
    }
)
_UNANSWERED = ""


@dataclass
class _Hold:
    handle: str
    received_at: float
    until: float


_Ten = tuple[tuple[str, _Hold], ...]
_Call = Callable[..., Any]


class Lease:
    """Messages of one queue, held until each is deleted, released or lost.

    `seconds` is the visibility timeout that they are received with, and what every extension asks
    for again.

    As a context manager it extends them on a thread of its own, which never outlives the block nor
    keeps a process alive. Leaving the block neither deletes nor releases: a message whose work
    failed comes again when its lease is over. Without the block, call `keep` now and then.
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
        self._held: dict[str, _Hold] = {}
        self._lost: set[str] = set()
        # Held through every call: nothing that is written here can overtake a release.
        self._writing = RLock()
        self._over = Event()
        self._heart: Thread | None = None

    def __enter__(self) -> Self:
        self._over.clear()
        self._heart = Thread(target=self._beat, name="lease", daemon=True)
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
        """Whether a message went from us that was neither deleted nor released: stop the work."""
        return bool(self.lost)

    @property
    def lost(self) -> frozenset[str]:
        """Message ids; their leases ran out, or SQS says that they are somebody else's."""
        with self._writing:
            self._see_what_ran_out()
            return frozenset(self._lost)

    @property
    def held(self) -> frozenset[str]:
        """Message ids."""
        with self._writing:
            self._see_what_ran_out()
            return frozenset(self._held)

    def receive(self, **asked: Any) -> list[MessageTypeDef]:
        """What one ReceiveMessage finds, held; `asked` as boto3 takes it, without queue and lease.

        Raises what boto3 raises, and ValueError where a receive may wait for longer than the lease.
        """
        if asked.get("WaitTimeSeconds", LONGEST_POLL_SECONDS) >= self._seconds:
            raise ValueError(
                f"WaitTimeSeconds must be given, and be less than the lease of {self._seconds} s"
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
                until = received_at + self._seconds
                hold = _Hold(str(each["ReceiptHandle"]), received_at, until)
                self._held[str(each["MessageId"])] = hold
                self._lost.discard(str(each["MessageId"]))

    def keep(self) -> None:
        """Extend whatever is past the half of its time; the last extension ends at 12 hours.

        Never raises for what SQS answers: what could not be extended is tried again at the next
        beat, until its time is over and it is lost.
        """
        self._keep(Event())

    def _keep(self, over: Event) -> None:
        with self._writing:
            self._see_what_ran_out()
            now = self._clock()
            due = [(key, each) for key, each in self._held.items() if self._is_due(each, now)]
        for ten in _tens(due):
            if over.is_set():
                return
            # Whoever deletes or releases waits for ten, not for thousands.
            with self._writing:
                now = self._clock()
                still = tuple(each for each in ten if self._holds(*each, now))
                if still:
                    self._extend(still, now)

    def release(self, *message_ids: str) -> None:
        """Let others have these, or all, at once; nothing is written about them after that."""
        with self._writing:
            released = self._still_held(message_ids)
            for key, _ in released:
                del self._held[key]
            for ten in _tens(released):
                self._change(ten, 0)

    def delete(self, *message_ids: str) -> frozenset[str]:
        """Delete these, or all, where they are held still; the ids of those that are gone now.

        What is not among them was lost, or SQS did not take the delete: it will come again.
        """
        with self._writing:
            asked = self._still_held(message_ids)
            for _ in range(_DELETES):
                for ten in _tens([each for each in asked if each[0] in self._held]):
                    self._delete(ten)
            return frozenset(key for key, _ in asked if key not in self.held | self._lost)

    def _still_held(self, message_ids: Iterable[str]) -> list[tuple[str, _Hold]]:
        self._see_what_ran_out()
        asked = tuple(message_ids) or tuple(self._held)
        return [(key, self._held[key]) for key in asked if key in self._held]

    def _see_what_ran_out(self) -> None:
        now = self._clock()
        self._lose(key for key, each in self._held.items() if each.until <= now)

    def _lose(self, message_ids: Iterable[str]) -> None:
        for key in tuple(message_ids):
            del self._held[key]
            self._lost.add(key)

    def _holds(self, message_id: str, hold: _Hold, now: float) -> bool:
        return self._held.get(message_id) is hold and hold.until > now

    def _is_due(self, hold: _Hold, now: float) -> bool:
        can_last = hold.received_at + LONGEST_SECONDS
        return now >= hold.until - self._seconds / 2 and can_last - hold.until >= 1

    def _extend(self, holds: _Ten, now: float) -> None:
        left = min(hold.received_at for _, hold in holds) + LONGEST_SECONDS - now
        seconds = min(self._seconds, int(left))
        refused = self._change(holds, seconds)
        for key, hold in holds:
            if key not in refused:
                hold.until = now + seconds
        self._lose(key for key, code in refused.items() if code in _LOST)

    def _change(self, holds: _Ten, seconds: int) -> dict[str, str]:
        calls = (self._sqs.change_message_visibility, self._sqs.change_message_visibility_batch)
        return self._refused(*calls, holds, {"VisibilityTimeout": seconds})

    def _delete(self, holds: _Ten) -> None:
        calls = (self._sqs.delete_message, self._sqs.delete_message_batch)
        refused = self._refused(*calls, holds, {})
        for key, _ in holds:
            if key not in refused:
                del self._held[key]
        self._lose(key for key, code in refused.items() if code in _LOST)

    def _refused(
        self, single: _Call, batch: _Call, holds: _Ten, more: Mapping[str, int]
    ) -> dict[str, str]:
        """By message id, the code for each that SQS did not take.

        One alone goes by the single call: CloudTrail records no refusal within a batch.
        """
        entries = [
            {"Id": str(number), "ReceiptHandle": hold.handle, **more}
            for number, (_, hold) in enumerate(holds)
        ]
        try:
            if len(entries) == 1:
                single(QueueUrl=self._queue_url, ReceiptHandle=holds[0][1].handle, **more)
                return {}
            answer = batch(QueueUrl=self._queue_url, Entries=entries)
        except ClientError as error:
            return dict.fromkeys((key for key, _ in holds), _code(error.response.get("Error", {})))
        except BotoCoreError:
            return dict.fromkeys((key for key, _ in holds), _UNANSWERED)
        taken = {each["Id"] for each in answer.get("Successful", [])}
        codes = {each["Id"]: _code(each) for each in answer.get("Failed", [])}
        return {
            key: codes.get(str(number), _UNANSWERED)
            for number, (key, _) in enumerate(holds)
            if str(number) not in taken
        }

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / _BEATS):
            self._keep(self._over)


def _code(error: Mapping[str, Any]) -> str:
    return str(error.get("Code", "")).rpartition(".")[2].removesuffix("Exception")


def _tens(holds: Iterable[tuple[str, _Hold]]) -> Iterator[_Ten]:
    left = iter(holds)
    while ten := tuple(islice(left, MOST_ENTRIES)):
        yield ten
