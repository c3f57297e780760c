"""A DLQ message and the attributes that Mendq puts on one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import asdict, replace

from mendq.model.queue import parsed

# How often Mendq sent a message back to its source.
REDRIVE_COUNT = "mendq.redrive"
# Why and when it came to the quarantine: one attribute, JSON, in the place of the redrives.
QUARANTINED = "mendq.quarantined"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
MOST_ATTRIBUTES = 10
LONGEST_NUMBER = 9
# What is counted further stays there: a count that reads as 0 again would be none.
MOST_REDRIVES = 10**LONGEST_NUMBER - 1
# The answer did not come, or was not about what was sent: it may be there, or not.
UNANSWERED = "unanswered"


class MessageAttribute(Struct, frozen=True):
    """One attribute that a sender gave; a text, or bytes where its type begins with Binary."""

    data_type: str
    value: str | bytes

    @property
    def in_bytes(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else self.value.encode()

    def document(self) -> dict[str, Any]:
        """As SQS takes it."""
        kind = "BinaryValue" if isinstance(self.value, bytes) else "StringValue"
        return {"DataType": self.data_type, kind: self.value}


class Message(Struct, frozen=True):
    """One message received from a DLQ or a quarantine; all of it is senders' text.

    `sent_at` is when SQS took it: of a standard queue's message when it was sent to its source, of
    a FIFO queue's when it came here. `source_arn` is the queue that SQS says it died in, None where
    somebody sent it here.
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

    @property
    def redrive_count(self) -> int:
        """How often it was sent back; 0 where the mark is missing or not one of ours."""
        mark = self.attributes.get(REDRIVE_COUNT)
        text = mark.value if mark and mark.data_type == "Number" else ""
        is_count = isinstance(text, str) and text.isascii() and text.isdigit()
        return int(text) if is_count and len(text) <= LONGEST_NUMBER else 0

    @property
    def size_bytes(self) -> int:
        """What SQS counts: the body, and names, types and values of the attributes."""
        return len(self.body.encode()) + sum(
            len(name.encode()) + len(each.data_type.encode()) + len(each.in_bytes)
            for name, each in self.attributes.items()
        )

    def marked(self, name: str, mark: MessageAttribute) -> Message:
        """With one more attribute, or another value of it."""
        return replace(self, attributes={**self.attributes, name: mark})

    def without(self, name: str) -> Message:
        """With one attribute less, where it has it."""
        return replace(self, attributes={k: v for k, v in self.attributes.items() if k != name})

    def fits(self, most_bytes: int) -> bool:
        """True where SQS would take it as it is, in a queue that takes so many bytes."""
        return len(self.attributes) <= MOST_ATTRIBUTES and self.size_bytes <= most_bytes

    @property
    def times_sent_back(self) -> int:
        """How often it was sent back, even where it is or was in the quarantine."""
        retained = quarantine_reason(self)
        return max(self.redrive_count, retained.redrive_count if retained else 0)


# A mark of ours is short; what is longer was written by somebody else.
LONGEST_MARK = 8_192
LONGEST_WHY = 512


class QuarantineMark(Struct, frozen=True):
    """Why and when a message came to the quarantine, from where and after how many redrives.

    `at` is in ISO 8601; `source` is where it failed, and where `mendq quarantine return` sends it.
    """

    why: str
    at: str
    source: str
    case: str
    redrive_count: Annotated[int, Meta(ge=0)]


def hopped(message: Message) -> Message:
    """The message as it goes back to its source, even out of the quarantine: counted once more."""
    redrive_count = min(message.times_sent_back + 1, MOST_REDRIVES)
    return message.without(QUARANTINED).marked(
        REDRIVE_COUNT, MessageAttribute("Number", str(redrive_count))
    )


def marked_quarantined(
    message: Message, why: str, *, at: datetime, source_arn: str, case_id: str
) -> Message:
    """The message as it goes to the quarantine: with the reason in place of the redrives."""
    short, count = why[:LONGEST_WHY], message.redrive_count
    retained = QuarantineMark(short, at.isoformat(), source_arn, case_id, count)
    text = json.dumps(asdict(retained), ensure_ascii=True, separators=(",", ":"))
    return message.without(REDRIVE_COUNT).marked(QUARANTINED, MessageAttribute("String", text))


def quarantine_reason(message: Message) -> QuarantineMark | None:
    """What the mark says; None where there is none that reads like ours."""
    mark = message.attributes.get(QUARANTINED)
    if mark is None or not isinstance(mark.value, str) or len(mark.value) > LONGEST_MARK:
        return None
    try:
        made = convert(parsed(mark.value), QuarantineMark)
    except ValidationError:
        return None
    return replace(made, redrive_count=min(made.redrive_count, MOST_REDRIVES))


class NotMoved(Struct, frozen=True):
    """A message that stays where it is; `code` is SQS's in its canonical spelling, or ours.

    `passes`: asked again later, SQS may take it.
    """

    message_id: str
    code: str
    reason: str
    passes: bool = False


class MoveResult(Struct, frozen=True):
    """What became of some messages.

    `copied` were sent and could not be deleted: SQS hands them out again, and a mover that sees one
    again deletes it. `unmarked` went without the mark, because it does not fit.
    """

    moved: int = 0
    copied: int = 0
    unmarked: int = 0
    failed: tuple[NotMoved, ...] = ()

    @property
    def tried(self) -> int:
        return self.moved + self.copied + len(self.failed)

    @property
    def unsure(self) -> int:
        """Those that may have gone, or not."""
        return self.copied + sum(each.code == UNANSWERED for each in self.failed)

    @property
    def reason(self) -> str:
        """Why one of those stays that did not go."""
        return next((each.reason or each.code for each in self.failed), "")

    @property
    def is_refused_for_good(self) -> bool:
        return bool(self.failed) and not self.moved and not self.failed[0].passes

    def __add__(self, other: MoveResult) -> MoveResult:
        return MoveResult(
            self.moved + other.moved,
            self.copied + other.copied,
            self.unmarked + other.unmarked,
            self.failed + other.failed,
        )
