"""Receive messages of one queue and move them into another: first sent, then deleted.

So none is ever lost: a crash between the two leaves a second copy, never none. Whatever is held and
was not moved is visible again as soon as the mover is left; after a crash, when its visibility
timeout is over.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from mendq.aws.errors import looking
from mendq.consumer import VisibilityHeartbeat
from mendq.model.queue import FIFO
from mendq.redrive.messages import Message, MessageAttribute, MoveResult, NotMoved
from mendq.redrive.send_batches import Destination, FifoOrder, Sent, send

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# What a crash costs: nobody sees what was held for so long.
VISIBILITY_SECONDS = 120
# How many messages are looked at, and held, at once.
MOST_HELD = 5_000
MOST_RECEIVED = 10
# For whoever holds messages to write down how far they came, when they are let go of.
SECONDS_TO_END = 5
LOST = "its visibility timeout was over before it was sent"


class MessageMover:
    """Messages taken out of one queue and kept from everybody else until they are put somewhere.

    A context manager; leaving it makes visible again whatever is still held, unless somebody who
    cannot wait interrupts it, or too few `remaining_seconds` are left. That, or a crash, hides them
    for VISIBILITY_SECONDS. A FIFO group is opened, to see what it hides, where `may_open` says yes.
    Looking is receiving: a queue with a RedrivePolicy of its own would have messages taken from it
    for being looked at.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        clock: Callable[[], float] = monotonic,
        remaining_seconds: Callable[[], float] = lambda: inf,
        may_open: Callable[[], bool] = lambda: True,
    ) -> None:
        self._sqs, self._queue_url = sqs, queue_url
        self._remaining_seconds, self._may_open = remaining_seconds, may_open
        self._held = VisibilityHeartbeat(sqs, queue_url, seconds=VISIBILITY_SECONDS, clock=clock)
        # The ids that were seen of each FIFO group, and the groups that may hide more behind them.
        self._groups: dict[str, set[str]] = {}
        self._may_go_on: dict[str, None] = {}
        self._is_opening = False
        # FIFO groups of which a message could not be sent: nothing behind it may overtake it.
        self._stopped_groups: set[str] = set()
        self._ready: list[Message] = []
        # Never to be given (again): what was, and the copies that this mover has sent.
        self._given: set[str] = set()
        self._sent: set[str] = set()

    def __enter__(self) -> Self:
        self._held.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        held = sorted(self._held.held)
        try:
            if kind is not KeyboardInterrupt:
                for at in range(0, len(held), MOST_RECEIVED):
                    if self._remaining_seconds() <= SECONDS_TO_END:
                        break
                    self._held.release(*held[at : at + MOST_RECEIVED])
        finally:
            self._held.__exit__(kind, *error)

    def take(self, most: int) -> list[Message]:
        """Receive at most so many more, fewer only where the queue shows no others.

        Each is given once: one that comes again stays held, one that was sent already is deleted,
        and the copies that this mover has sent are not given either. Of a FIFO group no more than
        the first ten that stay can be seen, and nothing is given behind a message that could not be
        sent. Raises FactsUnavailable or QueueRefusesUs.
        """
        while len(self._ready) < most:
            received = self._shown(most - len(self._ready))
            if not received:
                break
            new = [each for each in received if self._is_new(each)]
            for each in received:
                self._groups.setdefault(each.group_id, set()).add(each.message_id)
            new = [each for each in new if each.group_id not in self._stopped_groups]
            self._may_go_on |= dict.fromkeys(each.group_id for each in new)
            self._ready += new
        messages, self._ready = self._ready[:most], self._ready[most:]
        return messages

    def put(
        self,
        messages: Sequence[Message],
        to: Destination,
        may_go: Callable[[int], bool] = lambda _: True,
    ) -> Iterator[MoveResult]:
        """Send them on and delete them here; yields what became of every batch.

        `may_go` is asked before each with its size, may take its time, and ends it by a no. What
        this mover holds no more is not sent. Never raises for what SQS answers.
        """
        order = FifoOrder(messages, to)
        while (batch := order.next_batch()) and may_go(len(batch)):
            yield self._put(batch, order, to)

    def release(self, message_ids: Collection[str]) -> None:
        """Make these messages visible to other consumers at once."""
        self._held.release(*message_ids)

    @property
    def in_flight_here(self) -> int:
        """How many are kept from everybody else now, at most."""
        return len(self._held.held)

    def delete(self, messages: Iterable[Message]) -> frozenset[str]:
        """Delete these where they are held still; the message ids of those that are gone."""
        return self._held.delete(*(message.message_id for message in messages))

    def _shown(self, most: int) -> list[Message]:
        """What SQS shows by itself, and of a FIFO queue what it hides behind what is held.

        Of a group it shows ten at a time, and none while one is held: the groups are let go for
        that, each in its turn, and received from their beginning while the others stay held. A
        group may go on for as long as looking at it brings something new, or messages leave it; of
        one that ten are held of it can bring nothing. Empty where the queue shows no others.
        """
        if not self._is_opening:
            received = self._receive(most)
            self._is_opening = not received and self._hides_some()
            if not self._is_opening:
                return received
        while self._may_go_on and self._may_open():
            group = next(iter(self._may_go_on))
            del self._may_go_on[group]
            held = self._groups[group] & self._held.held
            if 0 < len(held) < MOST_RECEIVED:
                self._held.release(*held)
                if received := self._receive(MOST_RECEIVED):
                    return received
        self._is_opening = False
        return self._receive(most)

    def _hides_some(self) -> bool:
        if not (self._queue_url.endswith(FIFO) and self._may_go_on and self._may_open()):
            return False
        name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with looking(f"attributes of {self._queue_url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=[name])
        return int(answer["Attributes"][name]) > 0

    def _receive(self, most: int) -> list[Message]:
        with looking(f"messages in {self._queue_url}"):
            messages = self._held.receive(
                MaxNumberOfMessages=min(most, MOST_RECEIVED),
                # SQS asks all of its servers then: an empty answer means that there is none.
                WaitTimeSeconds=1,
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
        goes = [each for each in batch if each.message_id in held]
        lost = [each.message_id for each in batch if each.message_id not in held]
        sent = send(self._sqs, goes, to) if goes else Sent()
        went = [each for each in goes if each.message_id in sent.copies]
        self._sent |= sent.copies.keys()
        self._given |= set(sent.copies.values())
        gone = self.delete(went)
        if to.is_fifo:
            self._stop_groups_of(each for each in batch if each.message_id not in sent.copies)
        still_open = {each.group_id for each in went} - self._stopped_groups
        for group in still_open & self._groups.keys():
            self._groups[group] -= gone
            self._may_go_on |= {group: None} if self._groups[group] else {}
        order.settle(batch, gone, is_hopeless=sent.is_hopeless)
        return MoveResult(
            moved=len(gone),
            copied=len(went) - len(gone),
            unmarked=sum(not to.can_mark(each) for each in went),
            failed=(*(NotMoved(each, "lost", LOST, passes=True) for each in lost), *sent.refused),
        )

    def _stop_groups_of(self, unsent: Iterable[Message]) -> None:
        """Give no further message of their groups."""
        self._stopped_groups |= {message.group_id for message in unsent}
        for group in self._stopped_groups:
            self._may_go_on.pop(group, None)
        self._ready = [each for each in self._ready if each.group_id not in self._stopped_groups]


def message_of(message: Mapping[str, Any]) -> Message:
    """With every attribute, as far as SQS was asked for them."""
    system = message.get("Attributes") or {}
    given = message.get("MessageAttributes") or {}
    first = int(system.get("ApproximateFirstReceiveTimestamp") or 0)
    return Message(
        message_id=str(message.get("MessageId", "")),
        body=str(message.get("Body", "")),
        # Older than any queue where it does not say: nothing is concluded from that.
        sent_at=datetime.fromtimestamp(int(system.get("SentTimestamp", 0)) / 1000, UTC),
        receive_count=int(system.get("ApproximateReceiveCount", 1)),
        attributes={str(name): _attribute(each) for name, each in given.items()},
        source_arn=system.get("DeadLetterQueueSourceArn") or None,
        group_id=str(system.get("MessageGroupId", "")),
        deduplication_id=str(system.get("MessageDeduplicationId", "")),
        trace_header=str(system.get("AWSTraceHeader", "")),
        first_received_at=datetime.fromtimestamp(first / 1000, UTC) if first else None,
    )


def _attribute(given: Mapping[str, Any]) -> MessageAttribute:
    data_type = str(given.get("DataType", "String"))
    if data_type.startswith("Binary"):
        return MessageAttribute(data_type, bytes(given.get("BinaryValue", b"")))
    return MessageAttribute(data_type, str(given.get("StringValue", "")))
