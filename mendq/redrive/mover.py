"""Move messages of one queue to another: receive, send, and only then delete.

No message is ever lost: a crash between sending and deleting leaves a second copy. The mover
"holds" the messages that it has received: it extends their visibility timeout, so that no other
consumer receives them. Messages that it has not moved become visible again when the `with` block
ends. After a crash, this happens when their visibility timeout is over.

Messages keep all their attributes. A call sends at most ten messages and 1 MiB. In a FIFO queue the
next message of a group goes only after the one before it has gone.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import md5, sha256
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.errors import PASSING, code_of, is_passing, translate_aws_errors
from mendq.consumer import VisibilityHeartbeat
from mendq.model.failed_call import canonical_code
from mendq.model.queue import FIFO, on_fifo
from mendq.redrive.messages import UNANSWERED, Message, MessageAttribute, MoveResult, NotMoved

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# The visibility timeout of received messages. After a crash they stay hidden for up to this time.
VISIBILITY_SECONDS = 120
# The most messages that a caller may hold at once.
MOST_HELD = 5_000
# SQS's maximum of messages in one ReceiveMessage.
MOST_RECEIVED = 10
# Seconds that the mover leaves to its caller after the messages are released, to store results.
SECONDS_TO_END = 5
# SQS's maximum of messages in one SendMessageBatch.
MOST_ENTRIES = 10
# The largest batch, and the largest message that a queue can be configured to take.
MOST_BYTES = 1_048_576
LOST = "its visibility timeout was over before it was sent"
# Errors that pass without a change, although their HTTP status does not show it.
_PASSING = PASSING | {"KmsThrottled", "OverLimit"}
# Errors of a whole batch that a single one of its messages may have caused.
_OF_ONE_MESSAGE = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "MissingParameter",
        "UnsupportedOperation",
    }
)


class Destination(Struct, frozen=True):
    """The queue that messages go to, and how they are marked there.

    Attributes:
        run_id: The case or command that sends the messages. It is part of the deduplication ids: a
            FIFO queue drops a message that the same run sends again within five minutes.
        mark: Returns the message with an attribute by which Mendq recognizes it later. A message
            without room for the attribute is sent without it.
        most_bytes: The queue's MaximumMessageSize.
    """

    queue_arn: str
    queue_url: str
    run_id: str
    mark: Callable[[Message], Message]
    most_bytes: int = MOST_BYTES

    @property
    def is_fifo(self) -> bool:
        return on_fifo(self.queue_arn)

    def can_mark(self, message: Message) -> bool:
        """Return True if the message has room for the mark."""
        return self.mark(message).fits(self.most_bytes)

    def as_sent(self, message: Message) -> Message:
        """Return the message with the mark, or unchanged if it has no room for the mark."""
        return self.mark(message) if self.can_mark(message) else message


class SendResult(Struct):
    """The result of sending a batch.

    Attributes:
        copies: The new message id by the old one, for each message that SQS accepted.
        refused: Messages that SQS did not accept, each with the reason.
        is_hopeless: True if SQS would now refuse any other message too.
    """

    copies: dict[str, str] = field(default_factory=dict)
    refused: list[NotMoved] = field(default_factory=list)
    is_hopeless: bool = False


class SendOrder:
    """Messages that wait to be sent.

    If the destination is a FIFO queue, the messages of a group are sent one after another. A
    standard queue keeps no order, so there messages do not wait for each other.
    """

    def __init__(self, messages: Iterable[Message], destination: Destination) -> None:
        self._destination = destination
        # Waiting messages by group id, or by message id on a standard queue.
        self._lanes: dict[str, deque[Message]] = {}
        for message in messages:
            self._lanes.setdefault(self._find_lane(message), deque()).append(message)

    def next_batch(self) -> list[Message]:
        """Return the messages of the next batch: the first of each group, as many as one call can
        send.

        For a standard queue, each message is a group of its own. Empty if no message is left.
        """
        batch: list[Message] = []
        left = MOST_BYTES
        for lane in self._lanes.values():
            size = self._destination.as_sent(lane[0]).size_bytes
            if len(batch) == MOST_ENTRIES or (batch and size > left):
                break
            batch.append(lane[0])
            left -= size
        return batch

    def settle(self, batch: Iterable[Message], gone: Collection[str], *, is_hopeless: bool) -> None:
        """Remove a batch after the attempt to send it.

        Args:
            batch: The messages that `next_batch` returned.
            gone: Ids of the messages that were sent and deleted. If a message is not among them,
                the later messages of its group are not tried.
            is_hopeless: True if no other message should be tried.
        """
        for message in batch:
            name = self._find_lane(message)
            lane = self._lanes.pop(name)
            lane.popleft()
            if lane and message.message_id in gone:
                self._lanes[name] = lane
        if is_hopeless:
            self._lanes.clear()

    def _find_lane(self, message: Message) -> str:
        return message.group_id if self._destination.is_fifo else message.message_id


class MessageMover:
    """Receives messages of one queue, keeps them from other consumers, and moves or releases them.

    Use it in a `with` statement. At the end of the block, the messages that it still holds become
    visible again, unless a second Ctrl-C interrupts that or too few `remaining_seconds` are left.
    Then they stay hidden for VISIBILITY_SECONDS, as after a crash.

    SQS returns only the first messages of a FIFO group while these are held. To see the others, the
    mover releases the first ones and receives the group again ("opens the group"), if `may_open`
    returns True.

    SQS counts each receive of a message. If the queue has a RedrivePolicy itself, SQS moves
    messages to the DLQ named there if the mover receives them too often.
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
        self._sqs = sqs
        self._queue_url = queue_url
        self._remaining_seconds = remaining_seconds
        self._may_open = may_open
        self._held = VisibilityHeartbeat(sqs, queue_url, seconds=VISIBILITY_SECONDS, clock=clock)
        # Ids of the messages that were received, by FIFO group.
        self._groups: dict[str, set[str]] = {}
        # Groups that may hide more messages, in the order in which they are opened.
        self._groups_to_open: dict[str, None] = {}
        self._is_opening = False
        # FIFO groups of which a message could not be sent: no later message may overtake it.
        self._stopped_groups: set[str] = set()
        self._ready: list[Message] = []
        # Ids of messages that `take` must not return: those it has returned already, and new
        # copies.
        self._given: set[str] = set()
        self._sent: set[str] = set()

    def __enter__(self) -> Self:
        self._held.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        held = sorted(self._held.held)
        try:
            if kind is not KeyboardInterrupt:
                for start in range(0, len(held), MOST_RECEIVED):
                    if self._remaining_seconds() <= SECONDS_TO_END:
                        break
                    self.release(held[start : start + MOST_RECEIVED])
        finally:
            self._held.__exit__(kind, *error)

    def take(self, most: int) -> list[Message]:
        """Receive and return messages that this method has not returned before.

        A message that SQS returns a second time stays held. A message that `put` has sent already
        is deleted. If a message of a FIFO group could not be sent, no later message of the group is
        returned.

        Args:
            most: The number of messages to return. Fewer are returned only if SQS returns no other.

        Raises:
            FactsUnavailable: SQS does not answer.
            QueueRefusesUs: The queue's own policy forbids it.
        """
        while len(self._ready) < most:
            batch = self._receive_shown(most - len(self._ready))
            if not batch:
                break
            for message in batch:
                is_new = self._is_new(message)
                self._groups.setdefault(message.group_id, set()).add(message.message_id)
                if is_new and message.group_id not in self._stopped_groups:
                    self._groups_to_open[message.group_id] = None
                    self._ready.append(message)
        messages = self._ready[:most]
        self._ready = self._ready[most:]
        return messages

    def put(
        self,
        messages: Sequence[Message],
        destination: Destination,
        may_go: Callable[[int], bool] = lambda _: True,
    ) -> Iterator[MoveResult]:
        """Send messages and delete them here. Yield the result of each batch.

        A message whose visibility timeout is over is not sent, because another consumer may have
        it. An error that SQS returns is part of the result and not raised.

        Args:
            messages: Messages that `take` returned.
            destination: The queue to which they are sent.
            may_go: Called before each batch with the number of its messages. It may wait. If it
                returns False, the move ends.
        """
        order = SendOrder(messages, destination)
        while (batch := order.next_batch()) and may_go(len(batch)):
            yield self._put_batch(batch, order, destination)

    def release(self, message_ids: Collection[str]) -> None:
        """Make these messages visible to other consumers at once."""
        self._held.release(*message_ids)

    @property
    def in_flight_here(self) -> int:
        """The number of messages that the mover holds now; some may have become visible already."""
        return len(self._held.held)

    def delete(self, messages: Iterable[Message]) -> frozenset[str]:
        """Delete the messages that are still held. Return the ids of the deleted ones."""
        return self._held.delete(*(message.message_id for message in messages))

    def _receive_shown(self, most: int) -> list[Message]:
        """Receive the next messages: first all that SQS returns, then hidden ones of FIFO groups.

        SQS returns at most ten messages of a FIFO group, and none while one of the group is held.
        So the mover releases one group at a time and receives it from its beginning, while the
        other groups stay held. It does so again as long as new messages of the group are returned,
        or messages of the group were sent. A group with ten held messages is not opened, because a
        receive would return the same ten.

        Returns:
            The received messages, which may include known ones. Empty if SQS returns no other.
        """
        if not self._is_opening:
            batch = self._receive(most)
            self._is_opening = not batch and self._hides_messages()
            if not self._is_opening:
                return batch
        while self._groups_to_open and self._may_open():
            group = next(iter(self._groups_to_open))
            del self._groups_to_open[group]
            held = self._groups[group] & self._held.held
            if 0 < len(held) < MOST_RECEIVED:
                self._held.release(*held)
                if batch := self._receive(MOST_RECEIVED):
                    return batch
        self._is_opening = False
        return self._receive(most)

    def _hides_messages(self) -> bool:
        """Return True if a FIFO queue has visible messages that SQS does not return now.

        They are behind held messages of their groups. False if the mover may not open groups.
        """
        if not (self._queue_url.endswith(FIFO) and self._groups_to_open and self._may_open()):
            return False
        name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with translate_aws_errors(f"attributes of {self._queue_url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=[name])
        return int(answer["Attributes"][name]) > 0

    def _receive(self, most: int) -> list[Message]:
        """Receive up to `most` messages, ten at most, with all their attributes."""
        with translate_aws_errors(f"messages in {self._queue_url}"):
            messages = self._held.receive(
                MaxNumberOfMessages=min(most, MOST_RECEIVED),
                # With a wait, SQS asks all of its servers: an empty answer means no message.
                WaitTimeSeconds=1,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [read_message(message) for message in messages]

    def _is_new(self, message: Message) -> bool:
        """Return True if `take` may return the message. Delete it if it was sent already."""
        if message.message_id in self._sent:
            self._held.delete(message.message_id)
            return False
        if message.message_id in self._given:
            return False
        self._given.add(message.message_id)
        return True

    def _put_batch(
        self, batch: Sequence[Message], order: SendOrder, destination: Destination
    ) -> MoveResult:
        """Send the messages of a batch that are still held, and delete those that SQS took.

        A message whose visibility timeout is over is not sent: another consumer may have it.
        """
        held = self._held.held
        messages = [message for message in batch if message.message_id in held]
        result = SendResult()
        if messages:
            result = send(self._sqs, messages, destination)
        sent = [message for message in messages if message.message_id in result.copies]
        self._sent.update(result.copies.keys())
        self._given.update(result.copies.values())
        gone = self.delete(sent)
        if destination.is_fifo:
            self._stop_groups(
                message for message in batch if message.message_id not in result.copies
            )
        self._note_gone(sent, gone)
        order.settle(batch, gone, is_hopeless=result.is_hopeless)
        lost = [
            NotMoved(message.message_id, "lost", LOST, passes=True)
            for message in batch
            if message.message_id not in held
        ]
        return MoveResult(
            moved=len(gone),
            copied=len(sent) - len(gone),
            unmarked=sum(not destination.can_mark(message) for message in sent),
            failed=(*lost, *result.refused),
        )

    def _note_gone(self, sent: Iterable[Message], gone: Collection[str]) -> None:
        """Note that the groups of these messages must be opened again.

        Messages of these groups were sent, so a receive may now return later ones.
        """
        groups = {message.group_id for message in sent} - self._stopped_groups
        for group in groups & self._groups.keys():
            self._groups[group] -= set(gone)
            if self._groups[group]:
                self._groups_to_open[group] = None

    def _stop_groups(self, unsent: Iterable[Message]) -> None:
        """Make `take` return no further message of the groups to which these messages belong."""
        self._stopped_groups |= {message.group_id for message in unsent}
        for group in self._stopped_groups:
            self._groups_to_open.pop(group, None)
        self._ready = [
            message for message in self._ready if message.group_id not in self._stopped_groups
        ]


def send(sqs: SQSClient, messages: Sequence[Message], destination: Destination) -> SendResult:
    """Send one batch. If one of its messages may be why SQS refuses the whole batch, send each
    message alone.

    An error that SQS returns is part of the result and not raised.
    """
    entries = [
        make_entry(str(index), message, destination) for index, message in enumerate(messages)
    ]
    try:
        answer = sqs.send_message_batch(QueueUrl=destination.queue_url, Entries=entries)
    except (ClientError, BotoCoreError) as error:
        code = canonical_code(code_of(error)) if isinstance(error, ClientError) else UNANSWERED
        passes = is_passing(error) or code in _PASSING
        if not passes and code in _OF_ONE_MESSAGE and len(messages) > 1:
            return send_one_by_one(sqs, messages, destination)
        refused = [NotMoved(message.message_id, code, str(error), passes) for message in messages]
        return SendResult(refused=refused, is_hopeless=passes or code not in _OF_ONE_MESSAGE)
    return read_send_answer(messages, answer)


def send_one_by_one(
    sqs: SQSClient, messages: Sequence[Message], destination: Destination
) -> SendResult:
    """Send each message alone."""
    total = SendResult()
    for message in messages:
        result = send(sqs, [message], destination)
        total.copies |= result.copies
        total.refused += result.refused
        total.is_hopeless |= result.is_hopeless
    return total


def read_send_answer(messages: Sequence[Message], answer: Mapping[str, Any]) -> SendResult:
    """Return the result of a SendMessageBatch.

    A message counts as sent only if SQS's answer has the MD5 digest of its body.
    """
    successful = {entry["Id"]: entry for entry in answer.get("Successful", [])}
    failed = {entry["Id"]: entry for entry in answer.get("Failed", [])}
    result = SendResult()
    for index, message in enumerate(messages):
        entry = successful.get(str(index))
        digest = md5(message.body.encode(), usedforsecurity=False).hexdigest()
        if entry and entry["MD5OfMessageBody"] == digest:
            result.copies[message.message_id] = entry["MessageId"]
        else:
            result.refused.append(read_failure(message.message_id, failed.get(str(index))))
    return result


def read_failure(message_id: str, entry: Mapping[str, Any] | None) -> NotMoved:
    """Return why a message was not sent.

    Args:
        message_id: The message's id in the queue that it should leave.
        entry: The entry about this message in SQS's list `Failed`; None if there is none.
    """
    if entry is None:
        return NotMoved(message_id, UNANSWERED, "SQS said nothing of it", passes=True)
    code = canonical_code(str(entry.get("Code", "")))
    passes = code in _PASSING or entry.get("SenderFault") is False
    return NotMoved(message_id, code, str(entry.get("Message", "")), passes)


def make_entry(entry_id: str, message: Message, destination: Destination) -> Any:
    """Return the message as an entry of SendMessageBatch."""
    message = destination.as_sent(message)
    entry: dict[str, Any] = {"Id": entry_id, "MessageBody": message.body}
    if message.attributes:
        entry["MessageAttributes"] = {
            name: attribute.document() for name, attribute in message.attributes.items()
        }
    if message.trace_header:
        header = {"DataType": "String", "StringValue": message.trace_header}
        entry["MessageSystemAttributes"] = {"AWSTraceHeader": header}
    if message.group_id:
        entry["MessageGroupId"] = message.group_id
    if destination.is_fifo:
        key = deduplication_id(destination.run_id, message.message_id)
        entry["MessageDeduplicationId"] = key
    return entry


def deduplication_id(run_id: str, message_id: str) -> str:
    """Return the deduplication id for a message that a run sends.

    It is the same for the same message and run, so that SQS drops a second copy within five
    minutes.
    """
    return sha256(f"{run_id}\0{message_id}".encode()).hexdigest()


def read_message(received: Mapping[str, Any]) -> Message:
    """Return a message from the answer of ReceiveMessage. Attributes that were not requested are
    missing.
    """
    system = received.get("Attributes") or {}
    attributes = received.get("MessageAttributes") or {}
    first = int(system.get("ApproximateFirstReceiveTimestamp") or 0)
    return Message(
        message_id=str(received.get("MessageId", "")),
        body=str(received.get("Body", "")),
        # Without a timestamp it counts as older than any queue, so that nothing follows from it.
        sent_at=datetime.fromtimestamp(int(system.get("SentTimestamp", 0)) / 1000, UTC),
        receive_count=int(system.get("ApproximateReceiveCount", 1)),
        attributes={str(name): read_attribute(attribute) for name, attribute in attributes.items()},
        source_arn=system.get("DeadLetterQueueSourceArn") or None,
        group_id=str(system.get("MessageGroupId", "")),
        deduplication_id=str(system.get("MessageDeduplicationId", "")),
        trace_header=str(system.get("AWSTraceHeader", "")),
        first_received_at=datetime.fromtimestamp(first / 1000, UTC) if first else None,
    )


def read_attribute(attribute: Mapping[str, Any]) -> MessageAttribute:
    data_type = str(attribute.get("DataType", "String"))
    if data_type.startswith("Binary"):
        return MessageAttribute(data_type, bytes(attribute.get("BinaryValue", b"")))
    return MessageAttribute(data_type, str(attribute.get("StringValue", "")))
