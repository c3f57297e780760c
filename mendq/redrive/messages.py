"""A message of a DLQ or a quarantine, the marks that Mendq puts on it, and the result of a move."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from mendq.model.queue import parse_json_object
from mendq.model.seal import SealKey

# The attribute that marks a message which was sent back. Its value is a `RedriveMark` as JSON.
REDRIVE_MARK_NAME = "mendq.redrive"
# The attribute that marks a message in quarantine and replaces the mark above. Its value is a
# `QuarantineMark` as JSON.
QUARANTINE_MARK_NAME = "mendq.quarantined"
# The most attributes that SQS allows in a message.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
MOST_ATTRIBUTES = 10
# The count of redrives does not grow beyond this.
MAXIMUM_COUNTED_REDRIVES = 10**9 - 1
# Mendq's error code for a message if it is unknown whether SQS accepted it.
UNANSWERED_ERROR_CODE = "unanswered"


class MessageAttribute(Struct, frozen=True):
    """An attribute of a message. The value is bytes if the type begins with Binary."""

    data_type: str
    value: str | bytes

    @property
    def value_bytes(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else self.value.encode()

    def to_request(self) -> dict[str, Any]:
        """Return the attribute in the form that a request to SQS needs."""
        field_name = "BinaryValue" if isinstance(self.value, bytes) else "StringValue"
        return {"DataType": self.data_type, field_name: self.value}


class Message(Struct, frozen=True):
    """A message received from a DLQ or a quarantine.

    Its sender chose the body, attributes, group id, deduplication id and trace header.

    Attributes:
        sent_at: When the message was last sent. SQS keeps this time when it moves a message to a
            standard DLQ; in a FIFO DLQ it is the time of that move.
        source_arn: The queue in which the message failed. None if SQS does not name it, because the
            message was sent to the DLQ directly.
        first_received_at: When the message was first received; None if SQS does not report it.
    """

    message_id: str
    body: str
    sent_at: datetime
    receive_count: int = 1
    attributes: Mapping[str, MessageAttribute] = field(default_factory=dict)
    source_arn: str | None = None
    group_id: str = ""
    deduplication_id: str = ""
    trace_header: str = ""
    first_received_at: datetime | None = None

    @property
    def redrive_count(self) -> int:
        """How often the message was sent back: the highest count in its marks.

        A quarantine's mark has the count of the redrive's mark that it replaced. A redrive's mark
        is ignored if it does not name the queue in which the message failed.
        """
        redrive_counts_in_marks = [0]
        mark = _read_mark(self, REDRIVE_MARK_NAME, RedriveMark)
        if mark and self.source_arn in (None, mark.source):
            redrive_counts_in_marks.append(mark.redrive_count)
        quarantine_mark = read_quarantine_mark(self)
        if quarantine_mark:
            redrive_counts_in_marks.append(quarantine_mark.redrive_count)
        return max(redrive_counts_in_marks)

    @property
    def failed_queue_arn(self) -> str:
        """The ARN of the queue in which the message failed; empty if it is not known.

        SQS names the queue. If it does not, the quarantine's mark does.
        """
        if self.source_arn:
            return self.source_arn
        quarantine_mark = read_quarantine_mark(self)
        return quarantine_mark.source if quarantine_mark else ""

    @property
    def size_bytes(self) -> int:
        """The size as SQS counts it: body, and the attributes' names, types and values."""
        byte_count = len(self.body.encode())
        for name, attribute in self.attributes.items():
            byte_count += len(name.encode())
            byte_count += len(attribute.data_type.encode())
            byte_count += len(attribute.value_bytes)
        return byte_count

    def fits(self, maximum_bytes: int) -> bool:
        """Return True if a queue accepts the message. `maximum_bytes` is its MaximumMessageSize."""
        return len(self.attributes) <= MOST_ATTRIBUTES and self.size_bytes <= maximum_bytes


# Mendq's marks are shorter than this. A longer text was written by another sender.
LONGEST_MARK_CHARACTERS = 8_192
# The reason in a quarantine's mark is cut to this many characters.
LONGEST_REASON_CHARACTERS = 512


class RedriveMark(Struct, frozen=True, omit_defaults=True):
    """The mark of a message that was sent back.

    Any sender can write such a mark, and consumers may copy it to other messages. So Mendq
    recognizes only a mark with a valid seal: a digest (HMAC) that is made with the DLQ's key. The
    key is in the table of seal keys.

    Attributes:
        source: The ARN of the queue to which the message was sent back.
        redrive: The case or command that sent it back last.
        redrive_count: How often it was sent back.
        seal: The digest of the source, the redrive and the body, made with the DLQ's key.
        died_in: The ARN of the queue in which it failed; empty if that is `source` or unknown.
    """

    source: str
    redrive: str
    redrive_count: Annotated[int, Meta(ge=0)]
    seal: str = ""
    died_in: str = ""


class RedriveMarker(Struct, frozen=True):
    """Marks the messages that one redrive sends back, and recognizes them if they return.

    Attributes:
        source_arn: The queue to which the messages go.
        redrive_id: The case or command that sends them.
        seal_key: The secret key of the seals (see `RedriveMark`). Later runs need the same key to
            recognize the messages; the marks count redrives without it.
    """

    source_arn: str
    redrive_id: str
    seal_key: SealKey

    def mark_redriven(self, message: Message) -> Message:
        """Return the message with the mark of this redrive, in which the count is 1 higher."""
        mark = RedriveMark(
            source=self.source_arn,
            redrive=self.redrive_id,
            redrive_count=min(message.redrive_count + 1, MAXIMUM_COUNTED_REDRIVES),
            seal=self.seal_key.make_seal(self._make_sealed_bytes(message)),
            died_in=message.failed_queue_arn if message.failed_queue_arn != self.source_arn else "",
        )
        return _replace_mark(message, REDRIVE_MARK_NAME, mark)

    def mark_quarantined(
        self, message: Message, reason: str, quarantined_at: datetime, quarantine_seal_key: SealKey
    ) -> Message:
        """Return the message with the quarantine's mark in place of the redrive's mark.

        `quarantine_seal_key` is the secret key of the quarantine's own seals.
        """
        mark = QuarantineMark(
            why=reason[:LONGEST_REASON_CHARACTERS],
            at=quarantined_at.isoformat(),
            source=self.source_arn,
            case=self.redrive_id,
            redrive_count=message.redrive_count,
        )
        sealed_bytes = _make_quarantine_sealed_bytes(mark, _remove_marks(message))
        seal = quarantine_seal_key.make_seal(sealed_bytes)
        mark = replace(mark, seal=seal)
        return _replace_mark(message, QUARANTINE_MARK_NAME, mark)

    def recognizes(self, message: Message) -> bool:
        """Return True if the message came back: it has a valid mark of this redrive.

        A message for which SQS names no source counts as one from the source, because a consumer
        may have sent it to the DLQ.
        """
        mark = _read_mark(message, REDRIVE_MARK_NAME, RedriveMark)
        if mark is None or (message.source_arn or self.source_arn) != self.source_arn:
            return False
        return self.seal_key.is_seal_valid(
            mark.seal, self._make_sealed_bytes(message), message.sent_at
        )

    def _make_sealed_bytes(self, message: Message) -> bytes:
        """Return what the seal covers: source, redrive and body."""
        return f"{self.source_arn}\0{self.redrive_id}\0{message.body}".encode()


class QuarantineMark(Struct, frozen=True, omit_defaults=True):
    """The mark of a message in quarantine.

    Anyone who may send to the quarantine can write such a mark. So a mark is trusted only with a
    valid seal, which is made with the quarantine's key. The key is in the table of seal keys.

    The seal covers the fields below, the body, the message group and all other attributes. It does
    not cover the deduplication id and unknown fields of the mark, because they are not sent on. It
    does not cover the trace header either, although that is sent on: if a message has none, SQS may
    store the one of the request with which Mendq sent it.

    Attributes:
        why: The reason.
        at: When the message was sent to quarantine, in ISO 8601.
        source: The queue in which the message failed. `mendq quarantine return` sends it there.
        case: The case or command that sent it to quarantine.
        redrive_count: How often it was sent back.
        seal: The digest of the mark, the body, the attributes and the message group, made with the
            quarantine's key. Empty in marks by early versions of Mendq.
    """

    why: str
    at: str
    source: str
    case: str
    redrive_count: Annotated[int, Meta(ge=0)]
    seal: str = ""


def read_quarantine_mark(message: Message) -> QuarantineMark | None:
    """Return the quarantine's mark; None if there is no readable one."""
    return _read_mark(message, QUARANTINE_MARK_NAME, QuarantineMark)


def is_quarantine_mark_sealed(message: Message, quarantine_seal_key: SealKey) -> bool:
    """Return True if the quarantine's mark has a seal that this key proves for this message."""
    mark = read_quarantine_mark(message)
    if mark is None:
        return False
    sealed_bytes = _make_quarantine_sealed_bytes(mark, message)
    return quarantine_seal_key.is_seal_valid(mark.seal, sealed_bytes, message.sent_at)


def _make_quarantine_sealed_bytes(mark: QuarantineMark, message: Message) -> bytes:
    """Return what the quarantine's seal covers: mark, body, attributes and message group.

    The attributes include a redrive's mark, if there is one. Mendq removes that mark before it
    seals, so a seal is not valid for a message that has one.
    """
    sealed_attributes = [
        (name, attribute.data_type, attribute.value_bytes.hex())
        for name, attribute in sorted(message.attributes.items())
        if name != QUARANTINE_MARK_NAME
    ]
    sealed_values = (
        to_builtins(replace(mark, seal="")),
        message.body,
        message.group_id,
        sealed_attributes,
    )
    return json.dumps(sealed_values, sort_keys=True).encode()


MarkType = TypeVar("MarkType", RedriveMark, QuarantineMark)


def _remove_marks(message: Message) -> Message:
    """Return the message without Mendq's marks."""
    attributes = dict(message.attributes)
    attributes.pop(REDRIVE_MARK_NAME, None)
    attributes.pop(QUARANTINE_MARK_NAME, None)
    return replace(message, attributes=attributes)


def _replace_mark(message: Message, mark_name: str, mark: RedriveMark | QuarantineMark) -> Message:
    """Return the message with this mark and no other mark of Mendq."""
    attributes = dict(_remove_marks(message).attributes)
    mark_text = json.dumps(to_builtins(mark), ensure_ascii=True, separators=(",", ":"))
    attributes[mark_name] = MessageAttribute("String", mark_text)
    return replace(message, attributes=attributes)


def _read_mark(message: Message, mark_name: str, mark_type: type[MarkType]) -> MarkType | None:
    """Return the mark in this attribute; None if there is no readable one."""
    attribute = message.attributes.get(mark_name)
    if attribute is None or not isinstance(attribute.value, str):
        return None
    if len(attribute.value) > LONGEST_MARK_CHARACTERS:
        return None
    try:
        mark = convert(parse_json_object(attribute.value), mark_type)
    except ValidationError:
        return None
    return replace(mark, redrive_count=min(mark.redrive_count, MAXIMUM_COUNTED_REDRIVES))


class UnmovedMessage(Struct, frozen=True):
    """A message that could not be moved, or could not be deleted by `quarantine drop`.

    Attributes:
        message_id: The message's id in the queue that it should have left.
        code: SQS's error code in its canonical spelling, or a code of Mendq. It may be empty.
        reason: The reason, for operators.
        is_temporary: True if SQS may accept the message later.
    """

    message_id: str
    code: str
    reason: str
    is_temporary: bool = False


class MoveResult(Struct, frozen=True):
    """The result of moving messages, or of deleting them without sending (`quarantine drop`).

    Attributes:
        moved_count: The number of messages that were sent and deleted here, or only deleted.
        copied_count: The number of messages that were sent but could not be deleted here. If the
            same mover receives them again, it deletes them.
        unmarked_count: The number of messages that were sent without the mark, because they had no
            room for it.
        unmoved_messages: The messages that were not sent or deleted, each with the reason.
    """

    moved_count: int = 0
    copied_count: int = 0
    unmarked_count: int = 0
    unmoved_messages: tuple[UnmovedMessage, ...] = ()

    @property
    def attempt_count(self) -> int:
        return self.moved_count + self.copied_count + len(self.unmoved_messages)

    @property
    def unsure_message_count(self) -> int:
        """The number of messages that may have moved or not.

        Either it is unknown whether SQS accepted them, or SQS accepted them and they could not be
        deleted here.
        """
        return self.copied_count + sum(
            unmoved_message.code == UNANSWERED_ERROR_CODE
            for unmoved_message in self.unmoved_messages
        )

    @property
    def first_failure_reason(self) -> str:
        """The reason (or the code) of the first of `unmoved_messages`; empty if there is none."""
        if not self.unmoved_messages:
            return ""
        return self.unmoved_messages[0].reason or self.unmoved_messages[0].code

    @property
    def is_refused_for_good(self) -> bool:
        return (
            bool(self.unmoved_messages)
            and not self.moved_count
            and not self.unmoved_messages[0].is_temporary
        )

    def __add__(self, other_result: MoveResult) -> MoveResult:
        """Return the sum of two results."""
        return MoveResult(
            moved_count=self.moved_count + other_result.moved_count,
            copied_count=self.copied_count + other_result.copied_count,
            unmarked_count=self.unmarked_count + other_result.unmarked_count,
            unmoved_messages=self.unmoved_messages + other_result.unmoved_messages,
        )
