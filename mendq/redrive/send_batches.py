"""Send messages on: every attribute kept, at most ten and 1 MiB a call, in order within a group.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import md5, sha256
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.errors import PASSING, code_of, is_passing
from mendq.model.failed_call import canonical
from mendq.model.queue import on_fifo
from mendq.redrive.messages import UNANSWERED, Message, NotMoved

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MOST_ENTRIES = 10
# The whole batch, and the largest message that a queue can be set to take.
MOST_BYTES = 1_048_576
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


class Destination(Struct, frozen=True):
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
        """True where it will bear the mark."""
        return self.mark(message).fits(self.most_bytes)

    def as_sent(self, message: Message) -> Message:
        return self.mark(message) if self.can_mark(message) else message


class Sent(Struct):
    """What became of a batch; `copies` are the new message ids by the old ones."""

    copies: dict[str, str] = field(default_factory=dict)
    refused: list[NotMoved] = field(default_factory=list)
    # Nothing else would go through either.
    is_hopeless: bool = False


class FifoOrder:
    """Messages on their way out: of one FIFO group the next goes when the one before has gone."""

    def __init__(self, messages: Iterable[Message], to: Destination) -> None:
        self._to = to
        self._lanes: dict[str, deque[Message]] = {}
        for each in messages:
            self._lanes.setdefault(self._lane_of(each), deque()).append(each)

    def next_batch(self) -> list[Message]:
        """The first of each group; empty when all are gone."""
        batch: list[Message] = []
        left = MOST_BYTES
        for lane in self._lanes.values():
            size = self._to.as_sent(lane[0]).size_bytes
            if len(batch) == MOST_ENTRIES or (batch and size > left):
                break
            batch.append(lane[0])
            left -= size
        return batch

    def settle(self, batch: Iterable[Message], gone: Collection[str], *, is_hopeless: bool) -> None:
        """Take the batch out; behind what did not go nothing of its group is tried any more.

        Where it `is_hopeless`, nothing else is.
        """
        for message in batch:
            name = self._lane_of(message)
            lane = self._lanes.pop(name)
            lane.popleft()
            if lane and message.message_id in gone:
                self._lanes[name] = lane
        if is_hopeless:
            self._lanes.clear()

    def _lane_of(self, message: Message) -> str:
        return message.group_id if self._to.is_fifo else message.message_id


def send(sqs: SQSClient, messages: Sequence[Message], to: Destination) -> Sent:
    """Send one batch; where SQS refuses it whole, each alone. Never raises for what SQS answers."""
    sent = Sent()
    entries = [_entry(str(at), each, to) for at, each in enumerate(messages)]
    try:
        answer = sqs.send_message_batch(QueueUrl=to.queue_url, Entries=entries)
    except (ClientError, BotoCoreError) as error:
        code = canonical(code_of(error)) if isinstance(error, ClientError) else UNANSWERED
        passes = is_passing(error) or code in _PASSING
        if not passes and code in _OF_ONE_MESSAGE and len(messages) > 1:
            for each in messages:
                alone = send(sqs, [each], to)
                sent.copies |= alone.copies
                sent.refused += alone.refused
                sent.is_hopeless |= alone.is_hopeless
            return sent
        refused = [NotMoved(each.message_id, code, str(error), passes) for each in messages]
        return Sent(refused=refused, is_hopeless=passes or code not in _OF_ONE_MESSAGE)
    # Those alone have gone of which SQS says that it has the same text.
    taken = {each["Id"]: each for each in answer.get("Successful", [])}
    failed = {each["Id"]: each for each in answer.get("Failed", [])}
    for at, each in enumerate(messages):
        one = taken.get(str(at))
        digest = md5(each.body.encode(), usedforsecurity=False).hexdigest()
        if one and one["MD5OfMessageBody"] == digest:
            sent.copies[each.message_id] = one["MessageId"]
        else:
            sent.refused.append(_not_moved(each.message_id, failed.get(str(at))))
    return sent


def _not_moved(message_id: str, failed: Mapping[str, Any] | None) -> NotMoved:
    if failed is None:
        return NotMoved(message_id, UNANSWERED, "SQS said nothing of it", passes=True)
    code = canonical(str(failed.get("Code", "")))
    passes = code in _PASSING or failed.get("SenderFault") is False
    return NotMoved(message_id, code, str(failed.get("Message", "")), passes)


def _entry(at: str, message: Message, to: Destination) -> Any:
    sent = to.as_sent(message)
    entry: dict[str, Any] = {"Id": at, "MessageBody": sent.body}
    if sent.attributes:
        given = {name: each.document() for name, each in sent.attributes.items()}
        entry["MessageAttributes"] = given
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
