"""One queue in memory, with SQS's own ideas of visibility, order, copies and DLQ messages.

No time passes but what whoever uses it says. A standard queue hands out a message twice now and
then, and forgets a delete; a FIFO queue does neither.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

DEDUPLICATED_SECONDS = 300
_NUMBERS = count(1)


@dataclass
class Message:
    """`body` is what it is known by to a proof, through every copy of it."""

    body: str
    sent_at: float
    attributes: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    message_id: str = field(default_factory=lambda: f"message-{next(_NUMBERS)}")
    source_arn: str = ""
    handle: str = ""
    receives: int = 0
    hidden_until: float = 0.0

    def copy_unread(self, now: float) -> Message:
        """As a move task sends it: the same text, a new message."""
        return Message(self.body, now, self.attributes, self.group)


@dataclass
class MemoryQueue:
    """`copies` and `forgets` are how likely a second delivery and a forgotten delete are."""

    arn: str
    random: Random
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    copies: float = 0.0
    forgets: float = 0.0
    most_receives: int | None = None
    dlq: MemoryQueue | None = None
    messages: dict[str, Message] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)
    _sent: dict[str, tuple[float, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    @property
    def is_fifo(self) -> bool:
        return self.arn.endswith(".fifo")

    @property
    def bodies(self) -> set[str]:
        return {message.body for message in self.messages.values()}

    def put(self, message: Message, now: float, deduplication_id: str = "") -> str:
        """The id of the message that is there now: sent twice in five minutes, it is the first."""
        known = self._sent.get(deduplication_id) if deduplication_id else None
        if known is not None and now < known[0] + DEDUPLICATED_SECONDS:
            self.happened["sent_again_and_known"] += 1
            return known[1]
        if deduplication_id:
            self._sent[deduplication_id] = (now, message.message_id)
        self.messages[message.message_id] = message
        return message.message_id

    def receive(self, most: int, now: float, seconds: float) -> list[Message]:
        """Each with a new handle; one that was received too often is moved on instead."""
        received: list[Message] = []
        for message in self._list_receivable(now):
            if self._is_dead(message):
                self._bury(message, now)
                continue
            message.receives += 1
            message.hidden_until = now + seconds
            message.handle = f"{message.message_id}/{message.receives}"
            received.append(message)
            if len(received) == most:
                break
        return received

    def hide(self, handle: str, now: float, seconds: float) -> bool:
        """Whether it was in flight; any handle of it will do."""
        message = self._find_by_handle(handle, now)
        if message is not None:
            message.hidden_until = now + seconds
        return message is not None

    def delete(self, handle: str, now: float) -> bool:
        """Return True if SQS deleted the message. Only the newest handle deletes."""
        message = self.messages.get(handle.partition("/")[0])
        if message is None:
            return True
        if self.is_fifo and self._find_by_handle(handle, now) is None:
            return False
        if message.handle != handle:
            self.happened["deleted_by_an_old_handle"] += 1
        elif not self.is_fifo and self.random.random() < self.forgets:
            self.happened["deletes_forgotten"] += 1
        else:
            del self.messages[message.message_id]
        return True

    def take_visible(self, most: int, now: float) -> list[Message]:
        """As a move task does: out of the queue, in order."""
        taken = [message for message in self.messages.values() if message.hidden_until <= now][
            :most
        ]
        for message in taken:
            del self.messages[message.message_id]
        return taken

    def counts(self, now: float) -> dict[str, str]:
        hidden = sum(message.hidden_until > now for message in self.messages.values())
        return {
            "ApproximateNumberOfMessages": str(len(self.messages) - hidden),
            "ApproximateNumberOfMessagesNotVisible": str(hidden),
            "ApproximateNumberOfMessagesDelayed": "0",
        }

    def _list_receivable(self, now: float) -> Iterator[Message]:
        if self.is_fifo:
            yield from self._heads(now)
            return
        shuffled = list(self.messages.values())
        self.random.shuffle(shuffled)
        for message in shuffled:
            is_hidden = message.hidden_until > now
            if is_hidden and self.random.random() >= self.copies / len(shuffled):
                continue
            self.happened["delivered_twice_at_once"] += is_hidden
            yield message

    def _heads(self, now: float) -> Iterator[Message]:
        """Nothing of a group of which something is in flight."""
        closed = {other.group for other in self.messages.values() if other.hidden_until > now}
        for message in list(self.messages.values()):
            if message.group not in closed:
                yield message

    def _is_dead(self, message: Message) -> bool:
        most = self.most_receives
        return most is not None and self.dlq is not None and message.receives >= most

    def _bury(self, message: Message, now: float) -> None:
        """SQS keeps its id and, of a standard queue, when it was sent."""
        del self.messages[message.message_id]
        message.source_arn = self.arn
        message.receives = 0
        message.hidden_until = 0.0
        message.handle = ""
        message.sent_at = now if self.is_fifo else message.sent_at
        assert self.dlq is not None
        self.dlq.messages[message.message_id] = message
        self.happened["died"] += 1

    def _find_by_handle(self, handle: str, now: float) -> Message | None:
        message = self.messages.get(handle.partition("/")[0])
        if message is None or message.hidden_until <= now:
            return None
        return message if message.handle == handle or not self.is_fifo else None
