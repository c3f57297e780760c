"""Move messages from one queue to another: receive, send, and only then delete.

No message is ever lost: a crash between sending and deleting leaves a second copy. The mover
"holds" the messages that it has received: it extends their visibility timeout, so that no other
consumer receives them. Messages that it has not moved become visible again when the `with` block
ends. After a crash, this happens when their visibility timeout is over.

Messages keep all their attributes. One call sends at most ten messages and 1 MiB. To a FIFO queue,
the next message of a group is sent only after the one before it was moved.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import md5, sha256
from math import inf
from typing import TYPE_CHECKING, Any, Self

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.errors import (
    TRANSIENT_ERROR_CODES,
    error_code_of,
    is_transient_error,
    translate_aws_errors,
)
from mendq.consumer import VisibilityHeartbeat
from mendq.consumer.clock import read_sleep_counting_clock
from mendq.model.failed_call import make_canonical_error_code
from mendq.model.queue import FIFO_SUFFIX, is_fifo_arn
from mendq.redrive.messages import (
    UNANSWERED_ERROR_CODE,
    Message,
    MessageAttribute,
    MoveResult,
    UnmovedMessage,
)

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# The visibility timeout of received messages. After a crash they stay hidden for up to this time.
VISIBILITY_SECONDS = 120
# The most messages that a caller may hold at once.
MAXIMUM_HELD_MESSAGES = 5_000
# The most messages that SQS allows in one ReceiveMessage.
MOST_MESSAGES_PER_RECEIVE = 10
# The seconds that the mover leaves to its caller to store results, after messages were released.
SECONDS_RESERVED_FOR_CALLER = 5
# The most messages that SQS allows in one SendMessageBatch.
MOST_MESSAGES_PER_SEND = 10
# The largest batch, and the largest message that a queue can be configured to accept.
MOST_BATCH_BYTES = 1_048_576
VISIBILITY_TIMEOUT_OVER_REASON = "its visibility timeout was over before it was sent"
# Errors after which a retry may help, although their HTTP status does not show it.
_TEMPORARY_ERROR_CODES = TRANSIENT_ERROR_CODES | {"KmsThrottled", "OverLimit"}
# Errors of a whole batch that a single message may have caused.
_ERROR_CODES_ABOUT_ONE_MESSAGE = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "MissingParameter",
        "UnsupportedOperation",
    }
)


class Destination(Struct, frozen=True):
    """The queue to which messages go, and how they are marked there.

    Attributes:
        run_id: The id of the case or command that sends the messages. The deduplication ids are
            made from it, so a FIFO queue drops a message that the same run sends again within five
            minutes.
        add_mark: Returns the message with an attribute by which Mendq recognizes it later. A
            message that has no room for the attribute is sent without it.
        maximum_message_bytes: The queue's MaximumMessageSize.
    """

    queue_arn: str
    queue_url: str
    run_id: str
    add_mark: Callable[[Message], Message]
    maximum_message_bytes: int = MOST_BATCH_BYTES

    @property
    def is_fifo(self) -> bool:
        return is_fifo_arn(self.queue_arn)

    def can_mark(self, message: Message) -> bool:
        """Return True if the message has room for the mark."""
        return self.add_mark(message).fits(self.maximum_message_bytes)

    def mark_if_possible(self, message: Message) -> Message:
        """Return the message with the mark, or unchanged if it has no room for the mark."""
        return self.add_mark(message) if self.can_mark(message) else message


class SendResult(Struct):
    """The result of sending a batch.

    Attributes:
        copy_id_by_message_id: The new message id by the old message id, for each message that SQS
            accepted.
        unsent_messages: Messages that SQS did not accept, each with the reason.
        would_all_messages_be_refused: True if SQS would now refuse every other message too.
    """

    copy_id_by_message_id: dict[str, str] = field(default_factory=dict)
    unsent_messages: list[UnmovedMessage] = field(default_factory=list)
    would_all_messages_be_refused: bool = False


class SendOrder:
    """Messages that wait to be sent.

    To a FIFO queue, the messages of a group are sent one after another. To a standard queue,
    messages do not wait for each other, because it keeps no order.
    """

    def __init__(self, messages: Iterable[Message], destination: Destination) -> None:
        self._destination = destination
        # Waiting messages by group id, or by message id on a standard queue.
        self._messages_by_send_order_key: dict[str, deque[Message]] = {}
        for message in messages:
            self._messages_by_send_order_key.setdefault(
                self._get_send_order_key(message), deque()
            ).append(message)

    def choose_next_batch(self) -> list[Message]:
        """Return the next batch: the first message of each group, as many as fit in one call.

        For a standard queue, each message counts as a group. The batch is empty if no message is
        left.
        """
        batch: list[Message] = []
        remaining_batch_bytes = MOST_BATCH_BYTES
        for group_messages in self._messages_by_send_order_key.values():
            size_bytes = self._destination.mark_if_possible(group_messages[0]).size_bytes
            if len(batch) == MOST_MESSAGES_PER_SEND or (
                batch and size_bytes > remaining_batch_bytes
            ):
                break
            batch.append(group_messages[0])
            remaining_batch_bytes -= size_bytes
        return batch

    def remove_batch(
        self,
        batch: Iterable[Message],
        moved_message_ids: Collection[str],
        *,
        would_all_messages_be_refused: bool,
    ) -> None:
        """Remove a batch after the attempt to send it.

        Args:
            batch: The messages that `choose_next_batch` returned.
            moved_message_ids: Ids of the messages that were sent and deleted. If a message of the
                batch is not among them, the later messages of its group are not sent.
            would_all_messages_be_refused: True if no other message should be tried.
        """
        for message in batch:
            send_order_key = self._get_send_order_key(message)
            group_messages = self._messages_by_send_order_key.pop(send_order_key)
            group_messages.popleft()
            if group_messages and message.message_id in moved_message_ids:
                self._messages_by_send_order_key[send_order_key] = group_messages
        if would_all_messages_be_refused:
            self._messages_by_send_order_key.clear()

    def _get_send_order_key(self, message: Message) -> str:
        return message.group_id if self._destination.is_fifo else message.message_id


class MessageMover:
    """Receives messages of one queue, hides them from other consumers, and moves or releases them.

    Use it in a `with` statement. At the end of the block, the messages that it still holds become
    visible again. They stay hidden for up to VISIBILITY_SECONDS, as after a crash, if a
    KeyboardInterrupt ends the block or interrupts the release, or if too few `remaining_seconds`
    are left.

    SQS returns only the first messages of a FIFO group while these are held. To see the others, the
    mover "opens the group": it releases the first messages and receives the group again. It does so
    only while `may_open_groups` returns True.

    SQS counts each receive of a message. If the queue has a RedrivePolicy itself, SQS moves
    messages to the DLQ named there if the mover receives them too often.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        clock: Callable[[], float] = read_sleep_counting_clock,
        remaining_seconds: Callable[[], float] = lambda: inf,
        may_open_groups: Callable[[], bool] = lambda: True,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._remaining_seconds = remaining_seconds
        self._may_open_groups = may_open_groups
        self._heartbeat = VisibilityHeartbeat(
            sqs, queue_url, seconds=VISIBILITY_SECONDS, clock=clock
        )
        # Ids of the messages that were received, by FIFO group.
        self._message_ids_by_group: dict[str, set[str]] = {}
        # Groups that may have more hidden messages, in the order in which the mover opens them.
        self._groups_to_open: dict[str, None] = {}
        self._is_opening_groups = False
        # FIFO groups with a message that could not be sent, which no later message may overtake.
        self._stopped_groups: set[str] = set()
        self._messages_to_return: list[Message] = []
        # Ids of messages that `receive_new_messages` must not return: messages that it has received
        # before, and copies that this mover sent.
        self._known_message_ids: set[str] = set()
        self._sent_message_ids: set[str] = set()

    def __enter__(self) -> Self:
        self._heartbeat.__enter__()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, *error_and_traceback: object
    ) -> None:
        held_message_ids = sorted(self._heartbeat.held)
        try:
            if error_type is not KeyboardInterrupt:
                for batch_start_index in range(0, len(held_message_ids), MOST_MESSAGES_PER_RECEIVE):
                    if self._remaining_seconds() <= SECONDS_RESERVED_FOR_CALLER:
                        break
                    self.release(
                        held_message_ids[
                            batch_start_index : batch_start_index + MOST_MESSAGES_PER_RECEIVE
                        ]
                    )
        finally:
            self._heartbeat.__exit__(error_type, *error_and_traceback)

    def receive_new_messages(self, maximum_message_count: int) -> list[Message]:
        """Receive and return messages that this method has not returned before.

        A message that SQS returns a second time stays held, and so does a copy that this mover has
        sent. A message that `move_messages` has already sent is deleted. If a message of a FIFO
        group could not be sent, no later message of the group is returned.

        Args:
            maximum_message_count: The number of messages to return. Fewer are returned only if SQS
                has no others to return.

        Raises:
            FactsUnavailable: SQS does not answer, or returns an error.
            QueueRefusesUs: The queue's own policy denies the receive.
        """
        while len(self._messages_to_return) < maximum_message_count:
            batch = self._receive_next_batch(maximum_message_count - len(self._messages_to_return))
            if not batch:
                break
            for message in batch:
                is_new = self._is_new_message(message)
                self._message_ids_by_group.setdefault(message.group_id, set()).add(
                    message.message_id
                )
                if is_new and message.group_id not in self._stopped_groups:
                    self._groups_to_open[message.group_id] = None
                    self._messages_to_return.append(message)
        messages = self._messages_to_return[:maximum_message_count]
        self._messages_to_return = self._messages_to_return[maximum_message_count:]
        return messages

    def move_messages(
        self,
        messages: Sequence[Message],
        destination: Destination,
        may_send_batch: Callable[[int], bool] = lambda _: True,
    ) -> Iterator[MoveResult]:
        """Send messages and delete them here. Yield the result of each batch.

        A message whose visibility timeout is over is not sent, because another consumer may have
        it. An error that SQS returns is part of the result and not raised.

        Args:
            messages: Messages that `receive_new_messages` returned.
            destination: The queue to which they are sent.
            may_send_batch: Called before each batch with the number of its messages. It may wait.
                If it returns False, the move ends.
        """
        send_order = SendOrder(messages, destination)
        while (batch := send_order.choose_next_batch()) and may_send_batch(len(batch)):
            yield self._move_batch(batch, send_order, destination)

    def release(self, message_ids: Collection[str]) -> None:
        """Make these messages visible to other consumers at once."""
        self._heartbeat.release(*message_ids)

    @property
    def held_message_count(self) -> int:
        """The number of messages that the mover holds now."""
        return len(self._heartbeat.held)

    def delete(self, messages: Iterable[Message]) -> frozenset[str]:
        """Delete the messages that are still held. Return the ids of the deleted messages."""
        return self._heartbeat.delete(*(message.message_id for message in messages))

    def _receive_next_batch(self, maximum_message_count: int) -> list[Message]:
        """Receive the next messages: first all that SQS returns, then hidden ones of FIFO groups.

        A receive returns at most ten messages of a FIFO group. While one of them is held, SQS hides
        the rest of the group. So the mover opens one group at a time: it releases the group's
        messages and receives from the group's beginning, while the other groups stay held. A group
        is opened again after it returned new messages, or after some of its messages were moved. A
        group with ten held messages is not opened, because a receive would return the same ten.

        Returns:
            The received messages, of which some may have been received before. Empty if SQS has no
            others to return.
        """
        if not self._is_opening_groups:
            batch = self._call_receive_message(maximum_message_count)
            self._is_opening_groups = not batch and self._has_hidden_messages()
            if not self._is_opening_groups:
                return batch
        while self._groups_to_open and self._may_open_groups():
            group_id = next(iter(self._groups_to_open))
            del self._groups_to_open[group_id]
            held_message_ids = self._message_ids_by_group[group_id] & self._heartbeat.held
            if 0 < len(held_message_ids) < MOST_MESSAGES_PER_RECEIVE:
                self._heartbeat.release(*held_message_ids)
                if batch := self._call_receive_message(MOST_MESSAGES_PER_RECEIVE):
                    return batch
        self._is_opening_groups = False
        return self._call_receive_message(maximum_message_count)

    def _has_hidden_messages(self) -> bool:
        """Return True if a FIFO queue has visible messages that SQS does not return now.

        SQS returns no message of a group while this mover holds an earlier message of the group.
        Return False if there is no group to open, or if the mover may not open groups.
        """
        if not (
            self._queue_url.endswith(FIFO_SUFFIX)
            and self._groups_to_open
            and self._may_open_groups()
        ):
            return False
        attribute_name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with translate_aws_errors(f"attributes of {self._queue_url}"):
            response = self._sqs.get_queue_attributes(
                QueueUrl=self._queue_url, AttributeNames=[attribute_name]
            )
        return int(response["Attributes"][attribute_name]) > 0

    def _call_receive_message(self, maximum_message_count: int) -> list[Message]:
        """Receive up to `maximum_message_count` messages, at most ten, with all attributes."""
        with translate_aws_errors(f"messages in {self._queue_url}"):
            messages = self._heartbeat.receive(
                MaxNumberOfMessages=min(maximum_message_count, MOST_MESSAGES_PER_RECEIVE),
                # With a wait, SQS asks all its servers, so an empty answer means no message.
                WaitTimeSeconds=1,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [read_message(message) for message in messages]

    def _is_new_message(self, message: Message) -> bool:
        """Return True if the message was not received before and is not a copy that was sent.

        Delete the message if this mover has already sent it.
        """
        if message.message_id in self._sent_message_ids:
            self._heartbeat.delete(message.message_id)
            return False
        if message.message_id in self._known_message_ids:
            return False
        self._known_message_ids.add(message.message_id)
        return True

    def _move_batch(
        self, batch: Sequence[Message], send_order: SendOrder, destination: Destination
    ) -> MoveResult:
        """Send the messages of a batch that are still held, and delete those that SQS accepted.

        A message whose visibility timeout is over is not sent, because another consumer may have
        it.
        """
        held_message_ids = self._heartbeat.held
        held_messages = [message for message in batch if message.message_id in held_message_ids]
        send_result = SendResult()
        if held_messages:
            send_result = send_batch(self._sqs, held_messages, destination)
        sent_messages = [
            message
            for message in held_messages
            if message.message_id in send_result.copy_id_by_message_id
        ]
        self._sent_message_ids.update(send_result.copy_id_by_message_id.keys())
        self._known_message_ids.update(send_result.copy_id_by_message_id.values())
        deleted_message_ids = self.delete(sent_messages)
        if destination.is_fifo:
            self._stop_groups(
                message
                for message in batch
                if message.message_id not in send_result.copy_id_by_message_id
            )
        self._mark_groups_to_reopen(sent_messages, deleted_message_ids)
        send_order.remove_batch(
            batch,
            deleted_message_ids,
            would_all_messages_be_refused=send_result.would_all_messages_be_refused,
        )
        messages_no_longer_held = [
            UnmovedMessage(
                message.message_id, "lost", VISIBILITY_TIMEOUT_OVER_REASON, is_temporary=True
            )
            for message in batch
            if message.message_id not in held_message_ids
        ]
        return MoveResult(
            moved_count=len(deleted_message_ids),
            copied_count=len(sent_messages) - len(deleted_message_ids),
            unmarked_count=sum(not destination.can_mark(message) for message in sent_messages),
            unmoved_messages=(*messages_no_longer_held, *send_result.unsent_messages),
        )

    def _mark_groups_to_reopen(
        self, sent_messages: Iterable[Message], deleted_message_ids: Collection[str]
    ) -> None:
        """Mark the groups of the sent messages, so that the mover opens them again.

        A receive may now return later messages of these groups. A stopped group is not marked. A
        group without other received messages is not marked either, because SQS returns its later
        messages anyway.
        """
        group_ids = {message.group_id for message in sent_messages} - self._stopped_groups
        for group_id in group_ids & self._message_ids_by_group.keys():
            self._message_ids_by_group[group_id] -= set(deleted_message_ids)
            if self._message_ids_by_group[group_id]:
                self._groups_to_open[group_id] = None

    def _stop_groups(self, unsent_messages: Iterable[Message]) -> None:
        """Stop the groups of these messages: `receive_new_messages` no longer returns them."""
        self._stopped_groups |= {message.group_id for message in unsent_messages}
        for group_id in self._stopped_groups:
            self._groups_to_open.pop(group_id, None)
        self._messages_to_return = [
            message
            for message in self._messages_to_return
            if message.group_id not in self._stopped_groups
        ]


def send_batch(sqs: SQSClient, messages: Sequence[Message], destination: Destination) -> SendResult:
    """Send one batch. If SQS refuses it and a single message may be the cause, send each alone.

    An error that SQS returns is part of the result and not raised.
    """
    send_entries = [
        make_send_entry(str(index), message, destination) for index, message in enumerate(messages)
    ]
    try:
        response = sqs.send_message_batch(QueueUrl=destination.queue_url, Entries=send_entries)
    except (ClientError, BotoCoreError) as error:
        error_code = (
            make_canonical_error_code(error_code_of(error))
            if isinstance(error, ClientError)
            else UNANSWERED_ERROR_CODE
        )
        is_temporary = is_transient_error(error) or error_code in _TEMPORARY_ERROR_CODES
        if not is_temporary and error_code in _ERROR_CODES_ABOUT_ONE_MESSAGE and len(messages) > 1:
            return send_one_by_one(sqs, messages, destination)
        unsent_messages = [
            UnmovedMessage(message.message_id, error_code, str(error), is_temporary)
            for message in messages
        ]
        return SendResult(
            unsent_messages=unsent_messages,
            would_all_messages_be_refused=is_temporary
            or error_code not in _ERROR_CODES_ABOUT_ONE_MESSAGE,
        )
    return read_send_response(messages, response)


def send_one_by_one(
    sqs: SQSClient, messages: Sequence[Message], destination: Destination
) -> SendResult:
    """Send each message alone."""
    total_result = SendResult()
    for message in messages:
        result = send_batch(sqs, [message], destination)
        total_result.copy_id_by_message_id |= result.copy_id_by_message_id
        total_result.unsent_messages += result.unsent_messages
        total_result.would_all_messages_be_refused |= result.would_all_messages_be_refused
    return total_result


def read_send_response(messages: Sequence[Message], response: Mapping[str, Any]) -> SendResult:
    """Return the result of a SendMessageBatch call from SQS's response.

    A message counts as sent only if the response has the MD5 digest of its body.
    """
    successful_entry_by_id = {
        successful_entry["Id"]: successful_entry
        for successful_entry in response.get("Successful", [])
    }
    failed_entry_by_id = {
        successful_entry["Id"]: successful_entry for successful_entry in response.get("Failed", [])
    }
    send_result = SendResult()
    for index, message in enumerate(messages):
        successful_entry = successful_entry_by_id.get(str(index))
        body_digest = md5(message.body.encode(), usedforsecurity=False).hexdigest()
        if successful_entry and successful_entry["MD5OfMessageBody"] == body_digest:
            send_result.copy_id_by_message_id[message.message_id] = successful_entry["MessageId"]
        else:
            send_result.unsent_messages.append(
                read_send_failure(message.message_id, failed_entry_by_id.get(str(index)))
            )
    return send_result


def read_send_failure(message_id: str, failed_entry: Mapping[str, Any] | None) -> UnmovedMessage:
    """Return why a message was not sent.

    Args:
        message_id: The message's id in the queue that it should leave.
        failed_entry: The entry about this message in SQS's list `Failed`; None if there is none.
    """
    if failed_entry is None:
        return UnmovedMessage(
            message_id, UNANSWERED_ERROR_CODE, "SQS said nothing of it", is_temporary=True
        )
    error_code = make_canonical_error_code(str(failed_entry.get("Code", "")))
    is_temporary = error_code in _TEMPORARY_ERROR_CODES or failed_entry.get("SenderFault") is False
    return UnmovedMessage(
        message_id, error_code, str(failed_entry.get("Message", "")), is_temporary
    )


def make_send_entry(entry_id: str, message: Message, destination: Destination) -> Any:
    """Return the message as an entry of SendMessageBatch, with the mark if there is room for it."""
    message = destination.mark_if_possible(message)
    send_entry: dict[str, Any] = {"Id": entry_id, "MessageBody": message.body}
    if message.attributes:
        send_entry["MessageAttributes"] = {
            name: attribute.to_request() for name, attribute in message.attributes.items()
        }
    if message.trace_header:
        trace_header = {"DataType": "String", "StringValue": message.trace_header}
        send_entry["MessageSystemAttributes"] = {"AWSTraceHeader": trace_header}
    if message.group_id:
        send_entry["MessageGroupId"] = message.group_id
    if destination.is_fifo:
        message_deduplication_id = make_deduplication_id(destination.run_id, message.message_id)
        send_entry["MessageDeduplicationId"] = message_deduplication_id
    return send_entry


def make_deduplication_id(run_id: str, message_id: str) -> str:
    """Return the deduplication id of a message that a run sends to a FIFO queue.

    The same message and run give the same id, so that SQS drops a second copy within five minutes.
    """
    return sha256(f"{run_id}\0{message_id}".encode()).hexdigest()


def read_message(received_message: Mapping[str, Any]) -> Message:
    """Return a message from the response of ReceiveMessage.

    Attributes that the call did not request are missing.
    """
    system_attributes = received_message.get("Attributes") or {}
    message_attributes = received_message.get("MessageAttributes") or {}
    first_receive_milliseconds = int(system_attributes.get("ApproximateFirstReceiveTimestamp") or 0)
    return Message(
        message_id=str(received_message.get("MessageId", "")),
        body=str(received_message.get("Body", "")),
        # Without a timestamp, the message counts as older than any queue, so not as newly dead.
        sent_at=datetime.fromtimestamp(int(system_attributes.get("SentTimestamp", 0)) / 1000, UTC),
        receive_count=int(system_attributes.get("ApproximateReceiveCount", 1)),
        attributes={
            str(name): read_message_attribute(attribute)
            for name, attribute in message_attributes.items()
        },
        source_arn=system_attributes.get("DeadLetterQueueSourceArn") or None,
        group_id=str(system_attributes.get("MessageGroupId", "")),
        deduplication_id=str(system_attributes.get("MessageDeduplicationId", "")),
        trace_header=str(system_attributes.get("AWSTraceHeader", "")),
        first_received_at=datetime.fromtimestamp(first_receive_milliseconds / 1000, UTC)
        if first_receive_milliseconds
        else None,
    )


def read_message_attribute(attribute: Mapping[str, Any]) -> MessageAttribute:
    data_type = str(attribute.get("DataType", "String"))
    if data_type.startswith("Binary"):
        return MessageAttribute(data_type, bytes(attribute.get("BinaryValue", b"")))
    return MessageAttribute(data_type, str(attribute.get("StringValue", "")))
