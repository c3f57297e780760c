"""A DLQ message and the attributes that Mendq puts on one."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from operator import add
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import astuple, replace

from mendq.model.queue import parsed

# Where a message was sent back to, how often, and by which redrive: one attribute, JSON.
REDRIVEN = "mendq.redrive"
# Why and when it came to the quarantine, in the place of that.
QUARANTINED = "mendq.quarantined"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
MOST_ATTRIBUTES = 10
# What is counted further stays there.
MOST_REDRIVES = 10**9 - 1
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
    somebody sent it here. `first_received_at` is SQS's too, None where it does not say.
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
        """How often it was sent back, even where it is or was in the quarantine.

        So its marks say; what one says of another queue than it died in counts nothing.
        """
        mark, retained = _mark_of(self, REDRIVEN, RedriveMark), quarantine_reason(self)
        sent_back = mark.redrive_count if mark and self.source_arn in (None, mark.source) else 0
        return max(sent_back, retained.redrive_count if retained else 0)

    @property
    def died_in(self) -> str:
        """The queue that SQS, or else the quarantine's mark, says; empty where neither does."""
        retained = quarantine_reason(self)
        return self.source_arn or (retained.source if retained else "")

    @property
    def size_bytes(self) -> int:
        """What SQS counts: the body, and names, types and values of the attributes."""
        return len(self.body.encode()) + sum(
            len(name.encode()) + len(each.data_type.encode()) + len(each.in_bytes)
            for name, each in self.attributes.items()
        )

    def fits(self, most_bytes: int) -> bool:
        """True where SQS would take it as it is, in a queue that takes so many bytes."""
        return len(self.attributes) <= MOST_ATTRIBUTES and self.size_bytes <= most_bytes


# A mark of ours is short; what is longer was written by somebody else.
LONGEST_MARK = 8_192
LONGEST_WHY = 512


class RedriveMark(Struct, frozen=True, omit_defaults=True):
    """How often a message was sent back to `source`, last by the case or command `redrive`.

    Anybody can write one, and a consumer may hand it on with other attributes: what it proves is
    in its `seal`. `died_in` is the queue that it died in, where that was another.
    """

    source: str
    redrive: str
    redrive_count: Annotated[int, Meta(ge=0)]
    seal: str = ""
    died_in: str = ""


class RedriveMarker(Struct, frozen=True):
    """Marks what one redrive sends back to one queue, and knows that when it comes back.

    By its `key`; marks made with one that nobody keeps are worth a count and no more.
    """

    source_arn: str
    redrive_id: str
    key: bytes

    def marked(self, message: Message) -> Message:
        """The message as it goes back, even out of the quarantine: counted once more."""
        count = min(message.redrive_count + 1, MOST_REDRIVES)
        other = message.died_in if message.died_in != self.source_arn else ""
        mark = RedriveMark(self.source_arn, self.redrive_id, count, self._seal(message), other)
        return _with_mark(message, REDRIVEN, mark)

    def quarantined(self, message: Message, why: str, at: datetime) -> Message:
        """The message as it goes to the quarantine: with the reason in place of the redrives."""
        of_redrive = (self.source_arn, self.redrive_id, message.redrive_count)
        mark = QuarantineMark(why[:LONGEST_WHY], at.isoformat(), *of_redrive)
        return _with_mark(message, QUARANTINED, mark)

    def knows(self, message: Message) -> bool:
        """True where this redrive sent this text to this queue, and it failed nowhere else.

        Whoever failed it may have sent it to the DLQ himself: SQS says of no source then.
        """
        mark = _mark_of(message, REDRIVEN, RedriveMark)
        if mark is None or (message.source_arn or self.source_arn) != self.source_arn:
            return False
        return hmac.compare_digest(mark.seal.encode(errors="replace"), self._seal(message).encode())

    def _seal(self, message: Message) -> str:
        """Of this queue, this redrive and this text alone; only who has the key can make it."""
        said = f"{self.source_arn}\0{self.redrive_id}\0{message.body}".encode()
        return hmac.new(self.key, said, sha256).hexdigest()[:32]


class QuarantineMark(Struct, frozen=True):
    """Why and when a message came to the quarantine, from where and after how many redrives.

    `at` is in ISO 8601; `source` is where it failed, and where `mendq quarantine return` sends it.
    """

    why: str
    at: str
    source: str
    case: str
    redrive_count: Annotated[int, Meta(ge=0)]


def quarantine_reason(message: Message) -> QuarantineMark | None:
    """What the mark says; None where there is none that reads like ours."""
    return _mark_of(message, QUARANTINED, QuarantineMark)


Mark = TypeVar("Mark", RedriveMark, QuarantineMark)


def _with_mark(message: Message, name: str, mark: RedriveMark | QuarantineMark) -> Message:
    """In the place of whichever it bears."""
    own = {k: v for k, v in message.attributes.items() if k not in (REDRIVEN, QUARANTINED)}
    text = json.dumps(to_builtins(mark), ensure_ascii=True, separators=(",", ":"))
    return replace(message, attributes={**own, name: MessageAttribute("String", text)})


def _mark_of(message: Message, name: str, kind: type[Mark]) -> Mark | None:
    given = message.attributes.get(name)
    if given is None or not isinstance(given.value, str) or len(given.value) > LONGEST_MARK:
        return None
    try:
        made = convert(parsed(given.value), kind)
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
        return MoveResult(*map(add, astuple(self), astuple(other)))
