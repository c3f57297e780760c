"""A dead letter as SQS hands it out, and the marks that Mendq puts on one.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

# How often a letter went back to its source by a hand of ours.
HOPS = "mendq.hops"
# Why and when it came to the quarantine: one attribute, JSON, in the place of the hops.
QUARANTINED = "mendq.quarantined"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
MOST_ATTRIBUTES = 10
LONGEST_NUMBER = 9
# What is counted further stays there: a count that reads as 0 again would be none.
MOST_HOPS = 10**LONGEST_NUMBER - 1


@dataclass(frozen=True)
class MessageAttribute:
    """One attribute that a sender gave; a text, or bytes where its type begins with Binary."""

    data_type: str
    value: str | bytes

    @property
    def in_bytes(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else self.value.encode()


@dataclass(frozen=True)
class Letter:
    """One message received from a dead-letter queue or a quarantine; all of it is senders' text.

    `sent_at` is when SQS took it: of a standard queue's letter when it was sent to its source, of a
    FIFO queue's when it came here. `source_arn` is the queue that SQS says it died in, None where
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
    def hops(self) -> int:
        """How often it was sent back; 0 where the mark is missing or not one of ours."""
        mark = self.attributes.get(HOPS)
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

    @property
    def fingerprint(self) -> str:
        """By which it is known again where it can bear no mark; copies with one text share it."""
        digest = sha256(self.body.encode())
        for name in sorted(set(self.attributes) - {HOPS, QUARANTINED}):
            digest.update(b"\0" + name.encode() + b"\0" + self.attributes[name].in_bytes)
        digest.update(b"\0" + self.group_id.encode())
        return digest.hexdigest()[:32]

    def marked(self, name: str, mark: MessageAttribute) -> Letter:
        """With one more attribute, or another value of it."""
        return replace(self, attributes={**self.attributes, name: mark})

    def without(self, name: str) -> Letter:
        """With one attribute less, where it has it."""
        return replace(self, attributes={k: v for k, v in self.attributes.items() if k != name})

    def fits(self, most_bytes: int) -> bool:
        """Whether SQS would take it as it is, in a queue that takes so many bytes."""
        return len(self.attributes) <= MOST_ATTRIBUTES and self.size_bytes <= most_bytes

    def can_bear(self, name: str, mark: MessageAttribute, most_bytes: int) -> bool:
        """Whether SQS would take it with this mark, in a queue that takes so many bytes."""
        return self.marked(name, mark).fits(most_bytes)
