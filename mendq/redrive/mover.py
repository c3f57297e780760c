"""Receive messages of one queue and move them into another: first sent, then deleted.

So none is ever lost: a crash between the two leaves a second copy, never none. Whatever is held and
was not moved is visible again as soon as the mover is left; after a crash, when its visibility
timeout is over.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mendq.aws.errors import looking
from mendq.consumer import VisibilityHeartbeat
from mendq.model.queue import FIFO
from mendq.redrive.messages import Message, MessageAttribute
from mendq.redrive.send_batches import (
    Destination,
    FifoOrder,
    MoveResult,
    Sent,
    send,
    why_unfit,
)

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# What a crash costs: nobody sees what was held for so long.
VISIBILITY_SECONDS = 120
# How many messages are looked at, and held, at once.
MOST_HELD = 5_000
MOST_RECEIVED = 10


class HeldFifoGroups:
    """Which groups of a FIFO queue may go on behind what is held: SQS shows no more of those.

    It hands out nothing of a group of which something is in flight, and ten messages at most at a
    time. So a group is opened: let go, and received from its beginning while the others stay held.
    A group may go on for as long as looking at it brings something new, or messages leave it."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}
        self._may_go_on: dict[str, None] = {}

    def note(self, received: Iterable[Message], new: Collection[str]) -> None:
        """`new` are the ids of those that were not seen before."""
        for each in received:
            self._ids.setdefault(each.group_id, set()).add(each.message_id)
            if each.message_id in new:
                self._may_go_on[each.group_id] = None

    def lose(self, messages: Iterable[Message]) -> None:
        """They were deleted: others may be among the first ten now."""
        for each in messages:
            stay = self._ids.get(each.group_id, set())
            stay.discard(each.message_id)
            if stay:
                self._may_go_on[each.group_id] = None

    def next_to_open(self) -> frozenset[str] | None:
        """The ids of a group that was held; None where none can hide anything."""
        for group in self._may_go_on:
            del self._may_go_on[group]
            return frozenset(self._ids[group])
        return None

    def __bool__(self) -> bool:
        return bool(self._may_go_on)


class MessageMover:
    """Messages taken out of one queue and kept from everybody else until they are put somewhere.

    A context manager; leaving it makes visible again whatever is still held. A crash hides them for
    `visibility_seconds`, a receive waits `wait_seconds` for a first message: SQS asks all of its
    servers then, so that an empty answer means that there is none. Looking is receiving: a queue
    with a RedrivePolicy of its own would have messages taken from it for being looked at.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        visibility_seconds: int = VISIBILITY_SECONDS,
        wait_seconds: int = 1,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._sqs, self._queue_url, self._wait_seconds = sqs, queue_url, wait_seconds
        self._held = VisibilityHeartbeat(sqs, queue_url, seconds=visibility_seconds, clock=clock)
        self._groups, self._is_opening = HeldFifoGroups(), False
        self._ready: list[Message] = []
        # Never to be given (again): what was, and the copies that this mover has sent.
        self._given: set[str] = set()
        self._sent: set[str] = set()
        self._going: frozenset[str] = frozenset()
        self._is_abandoned = False

    def __enter__(self) -> Self:
        self._held.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if not self._is_abandoned:
                self._held.release()
        finally:
            self._held.__exit__(kind, error, traceback)

    def take(self, most: int) -> list[Message]:
        """Receive at most so many more, fewer only where the queue shows no others.

        Each is given once: one that comes again stays held, one that was sent already is deleted,
        and the copies that this mover has sent are not given either. Of a FIFO group no more than
        the first ten that stay can be seen. Raises FactsUnavailable or QueueRefusesUs.
        """
        while len(self._ready) < most:
            received = self._shown(most - len(self._ready))
            if not received:
                break
            new = [each for each in received if self._is_new(each)]
            self._groups.note(received, {each.message_id for each in new})
            self._ready += new
        messages, self._ready = self._ready[:most], self._ready[most:]
        return messages

    def put(self, messages: Sequence[Message], to: Destination) -> Iterator[MoveResult]:
        """Send them on and delete them here; yields after every batch, so that one can slow down.

        What this mover holds no more are not sent. Never raises for what SQS answers.
        """
        order = FifoOrder(messages, to)
        while batch := order.next_batch():
            yield self._put(batch, order, to)

    def release(self, messages: Iterable[Message]) -> None:
        """Let others have these at once."""
        if ids := [each.message_id for each in messages]:
            self._held.release(*ids)

    def let_go(self) -> Iterator[int]:
        """Let others have whatever is held, ten by ten: yields how many are so far, first 0."""
        ids = sorted(self._held.held)
        yield 0
        for at in range(0, len(ids), MOST_RECEIVED):
            self._going = frozenset(ids[at : at + MOST_RECEIVED])
            self._held.release(*self._going)
            self._going = frozenset()
            yield min(at + MOST_RECEIVED, len(ids))

    def abandon(self) -> int:
        """How many stay hidden until their visibility timeout is over: for whoever cannot wait."""
        self._is_abandoned = True
        return self.in_flight_here

    @property
    def in_flight_here(self) -> int:
        """How many are kept from everybody else now, at most."""
        return len(self._held.held | self._going)

    def delete(self, messages: Iterable[Message]) -> frozenset[str]:
        """Delete these where they are held still; the message ids of those that are gone."""
        ids = [each.message_id for each in messages]
        return self._held.delete(*ids) if ids else frozenset()

    def _shown(self, most: int) -> list[Message]:
        """What SQS shows by itself, and of a FIFO queue what it hides behind what is held.

        Of a group it shows none while one is held: the groups are let go for that, each in its
        turn, and received from their beginning. Empty where the queue shows no others.
        """
        if not self._is_opening:
            received = self._receive(most)
            self._is_opening = not received and self._hides_some()
            if not self._is_opening:
                return received
        while (ids := self._groups.next_to_open()) is not None:
            if held := ids & self._held.held:
                self._held.release(*held)
                if received := self._receive(MOST_RECEIVED):
                    return received
        self._is_opening = False
        return self._receive(most)

    def _hides_some(self) -> bool:
        if not (self._queue_url.endswith(FIFO) and self._groups):
            return False
        name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with looking(f"attributes of {self._queue_url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=[name])
        return int(answer["Attributes"][name]) > 0

    def _receive(self, most: int) -> list[Message]:
        with looking(f"messages in {self._queue_url}"):
            messages = self._held.receive(
                MaxNumberOfMessages=min(most, MOST_RECEIVED),
                WaitTimeSeconds=self._wait_seconds,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [message_of(each) for each in messages]

    def _is_new(self, message: Message) -> bool:
        if message.message_id in self._sent:
            self._held.delete(message.message_id)
            return False
        if message.message_id in self._given:
            return False
        self._given.add(message.message_id)
        return True

    def _put(self, batch: Sequence[Message], order: FifoOrder, to: Destination) -> MoveResult:
        held = self._held.held
        stays = [each for message in batch if (each := why_unfit(message, held, to))]
        unfit = {each.message_id for each in stays}
        goes = [each for each in batch if each.message_id not in unfit]
        sent = send(self._sqs, goes, to) if goes else Sent({})
        went = [each for each in goes if each.message_id in sent.copies]
        self._sent |= sent.copies.keys()
        self._given |= set(sent.copies.values())
        gone = self.delete(went)
        self._groups.lose(each for each in went if each.message_id in gone)
        passing = {each.message_id for each in (*stays, *sent.refused) if each.passes}
        passing |= sent.copies.keys()
        waits = order.settle(batch, gone, passing, is_hopeless=sent.is_hopeless)
        return MoveResult(
            moved=len(gone),
            copied=len(went) - len(gone),
            unmarked=tuple(each.fingerprint for each in went if not to.can_mark(each)),
            failed=(*stays, *sent.refused, *waits),
        )


def message_of(message: Mapping[str, Any]) -> Message:
    """With every attribute, as far as SQS was asked for them."""
    system = message.get("Attributes") or {}
    given = message.get("MessageAttributes") or {}
    return Message(
        message_id=str(message.get("MessageId", "")),
        body=str(message.get("Body", "")),
        # Older than any queue where it does not say: nothing is concluded from that.
        sent_at=datetime.fromtimestamp(_whole(system.get("SentTimestamp")) / 1000, UTC),
        receive_count=_whole(system.get("ApproximateReceiveCount")) or 1,
        attributes={str(name): _attribute(each) for name, each in given.items()},
        source_arn=system.get("DeadLetterQueueSourceArn") or None,
        group_id=str(system.get("MessageGroupId", "")),
        deduplication_id=str(system.get("MessageDeduplicationId", "")),
        trace_header=str(system.get("AWSTraceHeader", "")),
    )


def _attribute(given: Mapping[str, Any]) -> MessageAttribute:
    data_type = str(given.get("DataType", "String"))
    if data_type.startswith("Binary"):
        return MessageAttribute(data_type, bytes(given.get("BinaryValue", b"")))
    return MessageAttribute(data_type, str(given.get("StringValue", "")))


def _whole(text: Any) -> int:
    """The number that SQS says; 0 where it says none."""
    is_number = isinstance(text, str) and re.fullmatch(r"[0-9]{1,15}", text)
    return int(text) if is_number else 0
