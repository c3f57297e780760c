"""Send messages on: every attribute kept, at most ten and 1 MiB a call, in order within a group.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5, sha256
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.errors import PASSING, code_of, is_passing
from mendq.model.failed_call import canonical
from mendq.model.queue import on_fifo
from mendq.redrive.messages import Message, MessageAttribute

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MOST_ENTRIES = 10
# The whole batch, and the largest message that a queue can be set to take.
MOST_BYTES = 1_048_576
# The answer did not come, or was not about what was sent: it may be there, or not.
UNANSWERED = "unanswered"
# What passes by itself, and no status says so.
_PASSING = PASSING | {"KmsThrottled", "OverLimit"}
# One message of a batch may be why the whole batch was refused.
_OF_ONE_MESSAGE = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "MissingParameter",
        "UnsupportedOperation",
    }
)


@dataclass(frozen=True)
class Destination:
    """Where messages go, and as what.

    `most_bytes` is the queue's MaximumMessageSize. `mark` puts on what a message is known by there;
    one that cannot bear it goes as it is. `run_id`, a case's or a command's, is what a FIFO queue
    knows a message by that is sent twice within five minutes.
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
        """True where it will bear the mark; else its fingerprint is noted before it is sent."""
        return self.mark(message).fits(self.most_bytes)

    def as_sent(self, message: Message) -> Message:
        return self.mark(message) if self.can_mark(message) else message


@dataclass(frozen=True)
class NotMoved:
    """A message that stays where it is; `code` is SQS's in its canonical spelling, or ours.

    `passes`: asked again later, SQS may take it.
    """

    message_id: str
    code: str
    reason: str
    passes: bool = False


@dataclass(frozen=True)
class Sent:
    """What became of a batch; `copies` are the new message ids by the old ones."""

    copies: Mapping[str, str]
    refused: tuple[NotMoved, ...] = ()
    # Nothing else would go through either.
    is_hopeless: bool = False


def too_long(message: Message, to: Destination) -> NotMoved | None:
    """Why it cannot go, None where the destination takes messages of this size."""
    if message.size_bytes <= min(to.most_bytes, MOST_BYTES):
        return None
    reason = f"it has {message.size_bytes} bytes, and {to.queue_arn} takes {to.most_bytes}"
    return NotMoved(message.message_id, "too_long", reason)


class FifoOrder:
    """Messages on their way out: of one FIFO group the next goes when the one before has gone."""

    def __init__(self, messages: Iterable[Message], to: Destination) -> None:
        self._to = to
        self._lanes: dict[str, deque[Message]] = {}
        for each in messages:
            self._lanes.setdefault(self._lane_of(each), deque()).append(each)

    def next_batch(self) -> list[Message]:
        """Empty when all are gone."""
        batch: list[Message] = []
        left = MOST_BYTES
        for lane in self._lanes.values():
            size = self._to.as_sent(lane[0]).size_bytes
            if len(batch) == MOST_ENTRIES or (batch and size > left):
                break
            batch.append(lane[0])
            left -= size
        return batch

    def take_out(self, message: Message) -> None:
        """It has gone, or failed alone."""
        lane = self._lanes[self._lane_of(message)]
        lane.remove(message)
        if not lane:
            del self._lanes[self._lane_of(message)]

    def close(self, message: Message) -> list[Message]:
        """It did not go: whatever waits behind it must not go first."""
        return [each for each in self._lanes.pop(self._lane_of(message)) if each is not message]

    def close_all(self) -> list[Message]:
        behind = [each for lane in self._lanes.values() for each in lane]
        self._lanes.clear()
        return behind

    def _lane_of(self, message: Message) -> str:
        return message.group_id if self._to.is_fifo else message.message_id


def send(sqs: SQSClient, messages: Sequence[Message], to: Destination) -> Sent:
    """Send one batch; where SQS refuses it whole, each alone. Never raises for what SQS answers."""
    entries = [_entry(str(at), each, to) for at, each in enumerate(messages)]
    try:
        answer = sqs.send_message_batch(QueueUrl=to.queue_url, Entries=entries)
    except (ClientError, BotoCoreError) as error:
        return _refused_whole(sqs, messages, to, error)
    copies = dict(_copies(messages, answer.get("Successful", [])))
    codes = {each["Id"]: each for each in answer.get("Failed", [])}
    refused = (
        _not_moved(each, codes.get(str(at), {}))
        for at, each in enumerate(messages)
        if each.message_id not in copies
    )
    return Sent(copies, tuple(refused))


def _refused_whole(
    sqs: SQSClient, messages: Sequence[Message], to: Destination, error: ClientError | BotoCoreError
) -> Sent:
    code = canonical(code_of(error)) if isinstance(error, ClientError) else UNANSWERED
    passes = is_passing(error) or code in _PASSING
    is_hopeless = passes or code not in _OF_ONE_MESSAGE
    if is_hopeless or len(messages) == 1:
        refused = tuple(NotMoved(each.message_id, code, str(error), passes) for each in messages)
        return Sent({}, refused, is_hopeless)
    alone = [send(sqs, [each], to) for each in messages]
    return Sent(
        {key: value for each in alone for key, value in each.copies.items()},
        tuple(each for one in alone for each in one.refused),
        any(each.is_hopeless for each in alone),
    )


def _copies(
    messages: Sequence[Message], successful: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Those alone of which SQS says that it has the same text."""
    by_id = {str(at): each for at, each in enumerate(messages)}
    for each in successful:
        message = by_id[each["Id"]]
        if (
            each["MD5OfMessageBody"]
            == md5(message.body.encode(), usedforsecurity=False).hexdigest()
        ):
            yield message.message_id, each["MessageId"]


def _not_moved(message: Message, failed: Mapping[str, Any]) -> NotMoved:
    if not failed:
        return NotMoved(message.message_id, UNANSWERED, "SQS said nothing of it", passes=True)
    code = canonical(str(failed.get("Code", "")))
    passes = code in _PASSING or failed.get("SenderFault") is False
    return NotMoved(message.message_id, code, str(failed.get("Message", "")), passes)


def _entry(at: str, message: Message, to: Destination) -> Any:
    sent = to.as_sent(message)
    entry: dict[str, Any] = {"Id": at, "MessageBody": sent.body}
    if sent.attributes:
        entry["MessageAttributes"] = {
            name: _attribute(each) for name, each in sent.attributes.items()
        }
    if sent.trace_header:
        header = {"DataType": "String", "StringValue": sent.trace_header}
        entry["MessageSystemAttributes"] = {"AWSTraceHeader": header}
    if sent.group_id:
        entry["MessageGroupId"] = sent.group_id
    if to.is_fifo:
        entry["MessageDeduplicationId"] = deduplication_id(to.run_id, sent.message_id)
    return entry


def deduplication_id(run_id: str, message_id: str) -> str:
    """The same for the same message of the same run: sent again within 5 minutes, it is one."""
    return sha256(f"{run_id}\0{message_id}".encode()).hexdigest()


def _attribute(attribute: MessageAttribute) -> dict[str, Any]:
    kind = "BinaryValue" if isinstance(attribute.value, bytes) else "StringValue"
    return {"DataType": attribute.data_type, kind: attribute.value}


@dataclass(frozen=True)
class MoveResult:
    """What became of some messages.

    `copied` were sent and could not be deleted: SQS hands them out again, and a mover that sees one
    again deletes it. `unmarked` are fingerprints of those that went without the mark, because it
    does not fit.
    """

    moved: int = 0
    copied: int = 0
    unmarked: tuple[str, ...] = ()
    failed: tuple[NotMoved, ...] = ()

    @property
    def tried(self) -> int:
        return self.moved + self.copied + len(self.failed)

    def __add__(self, other: MoveResult) -> MoveResult:
        return MoveResult(
            self.moved + other.moved,
            self.copied + other.copied,
            self.unmarked + other.unmarked,
            self.failed + other.failed,
        )


def why_unfit(message: Message, held: frozenset[str], to: Destination) -> NotMoved | None:
    """Why it is not even to be sent; `held` are the message ids that are held still."""
    if message.message_id not in held:
        reason = "its visibility timeout was over before it was sent"
        return NotMoved(message.message_id, "lost", reason, passes=True)
    return too_long(message, to)


def settle(
    batch: Sequence[Message],
    gone: frozenset[str],
    lanes: FifoOrder,
    passing: frozenset[str],
    *,
    is_hopeless: bool,
) -> Iterator[NotMoved]:
    """Take what has gone out of the order; yields what has to wait because of what did not go.

    `passing` are those that may go later; where it `is_hopeless`, nothing else is to be tried.
    """
    for message in batch:
        if message.message_id in gone:
            lanes.take_out(message)
            continue
        for each in lanes.close(message):
            reason = f"{message.message_id} of the same group did not go, and is to go first"
            passes = message.message_id in passing
            yield NotMoved(each.message_id, "waits_for_neighbour", reason, passes)
    passes = any(each.message_id in passing for each in batch)
    for each in lanes.close_all() if is_hopeless else ():
        reason = "what was refused before it would be again"
        yield NotMoved(each.message_id, "not_tried", reason, passes)
