"""Dead-letter queues: what one is called, how it is made, and what ties it to its sources.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from functions.healing.companions import FIFO, arn_beside, keeping_attributes, name_beside
from functions.healing.difference import parsed
from functions.healing.facts import Facts
from functions.healing.queue_names import arn_of, parts_of

SUFFIX = "-dlq"
FEWEST_RECEIVES = 3
MOST_RECEIVES = 100
MAX_RECEIVE_COUNT = 5
# SQS takes no more by name; beyond that it must be allowAll, which Mendq never writes.
MOST_SOURCES = 10


@dataclass(frozen=True)
class Redrive:
    """A RedrivePolicy: after how many receives a message goes to which queue."""

    dead_letter_arn: str
    max_receive_count: int

    @property
    def text(self) -> str:
        """As Mendq writes it and compares it: sorted, without white space."""
        return spelled(
            {
                "deadLetterTargetArn": self.dead_letter_arn,
                "maxReceiveCount": self.max_receive_count,
            }
        )


@dataclass(frozen=True)
class RedriveAllow:
    """A RedriveAllowPolicy: who may name the queue as their dead-letter queue."""

    permission: str
    sources: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As Mendq writes it and compares it: sorted, without white space."""
        of_sources = {"sourceQueueArns": list(self.sources)} if self.sources else {}
        return spelled({"redrivePermission": self.permission, **of_sources})

    def allows(self, source_arn: str) -> bool:
        return self.permission == "allowAll" or (
            self.permission == "byQueue" and source_arn in self.sources
        )

    def adding(self, *source_arns: str) -> RedriveAllow:
        return RedriveAllow(self.permission, tuple(sorted({*self.sources, *source_arns})))


def spelled(document: Mapping[str, object]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def redrive_of(text: str) -> Redrive | None:
    """What a RedrivePolicy says; None where SQS would take no such text."""
    document = parsed(text) or {}
    named, count = document.get("deadLetterTargetArn"), document.get("maxReceiveCount")
    if not isinstance(named, str) or isinstance(count, bool | float):
        return None
    try:
        return Redrive(named, int(count))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def allow_of(text: str) -> RedriveAllow | None:
    """What a RedriveAllowPolicy says; none means all. None where SQS would take no such text."""
    if not text:
        return RedriveAllow("allowAll")
    document = parsed(text) or {}
    permission, sources = document.get("redrivePermission"), document.get("sourceQueueArns", [])
    if not isinstance(permission, str) or not isinstance(sources, list):
        return None
    if not all(isinstance(each, str) for each in sources):
        return None
    return RedriveAllow(permission, tuple(sorted(set(sources))))


def name_for(source_name: str) -> str:
    """The name of the dead-letter queue that Mendq makes for a queue."""
    return name_beside(source_name, SUFFIX)


def arn_for(source_arn: str) -> str:
    """The ARN that goes with it; raises ValueError where `source_arn` is none."""
    return arn_beside(source_arn, SUFFIX)


def unfit(source_arn: str, dead_letter_arn: str) -> str | None:
    """Why SQS takes no such queue as the dead-letter queue of that one; None where it does."""
    if arn_of(dead_letter_arn) is None:
        return "it names no queue"
    if dead_letter_arn == source_arn:
        return "it names the queue itself"
    if parts_of(dead_letter_arn)[:3] != parts_of(source_arn)[:3]:
        return "it names a queue of another account or region"
    if dead_letter_arn.endswith(FIFO) != source_arn.endswith(FIFO):
        return "it names a queue of the other type: one is FIFO, the other standard"
    return None


def attributes_of_new(source: Facts, dead_letter_arn: str) -> dict[str, str]:
    """What a dead-letter queue is made with for this source.

    One that is made anew under a name that others may hold as well stays open to them.
    """
    attributes = keeping_attributes(source)
    if source.is_fifo:
        by_content = source.attributes.get("ContentBasedDeduplication", "false")
        attributes |= {"FifoQueue": "true", "ContentBasedDeduplication": by_content}
    if source.dead_letter_arn != dead_letter_arn:
        allowed = RedriveAllow("byQueue", (source.queue_arn,))
        attributes["RedriveAllowPolicy"] = allowed.text
    return attributes
