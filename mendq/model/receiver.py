"""Decide if a queue may receive another queue's messages, as a DLQ or as a quarantine.

Mendq derives both names from the source's name: `orders-dlq`, `orders-quarantine`. Anyone in the
account who may create queues can create a queue of such a name first, and then read and delete what
Mendq sends there. So the name proves nothing. The rules:

1. Mendq uses an existing queue only if the case store has a record of it (`Receiver`): Mendq made
   it, or a person confirmed it with `mendq confirm`. Otherwise Mendq declines and asks people.
2. The record is about one queue, not about a name. A queue that was deleted and created again has
   another creation time, so it is not the recorded queue.
3. The record contains everything that decides who can reach the messages: policy, encryption, the
   queue's own DLQ, the sources that it allows, and tags (IAM policies may grant by tag). If one of
   them has changed, Mendq does not use the queue until a person confirms it again.
4. Before Mendq creates a queue, it stores a note, because the run may die between the creation and
   the record. The note is valid for CREATION_NOTE_LIFETIME. A queue that appears in that time is
   accepted only if it is exactly as Mendq creates it: it then gives nobody more access than a queue
   that Mendq created.
5. The record of a quarantine names its source, and only this source's messages go there. A name of
   more than 80 characters is cut and gets a hash of the source's name. So two sources can have
   quarantines of the same name, and a person could choose a queue name on purpose to share one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Self

from mendq.model.facts import QueueFacts
from mendq.model.queue import MAXIMUM_QUEUE_NAME_LENGTH, parse_queue_arn
from mendq.model.steps import AllowRedriveFrom, AttachDlq

# How long the note that Mendq is about to make a queue is valid. After a run died, another run
# follows within minutes.
CREATION_NOTE_LIFETIME = timedelta(minutes=30)
# The attributes that decide who can reach the messages, with a text for operators.
ACCESS_TEXT_BY_ATTRIBUTE: Mapping[str, str] = {
    "Policy": "policy",
    "KmsMasterKeyId": "KMS key",
    "SqsManagedSseEnabled": "encryption",
    "RedrivePolicy": "RedrivePolicy",
    "RedriveAllowPolicy": "RedriveAllowPolicy",
}
# The attributes that decide who can read the messages of a redrive's source. Deployments and
# Mendq's own fixes may change other attributes and the tags while messages are redriven.
SOURCE_ACCESS_ATTRIBUTES = ("Policy", "KmsMasterKeyId")
# The prefix of tags that only AWS can write.
AWS_TAG_PREFIX = "aws:"


@dataclass(frozen=True)
class Receiver:
    """The case store's record of a queue that may receive another queue's messages.

    Attributes:
        queue_arn: The DLQ or the quarantine.
        recorded_at: The time of the record.
        recorded_by: The Lambda of Mendq that made the queue, or the ARN of the person who confirmed
            it.
        is_made_by_mendq: True if Mendq made the queue.
        created_at: When the queue was created. None while Mendq is only about to make it.
        access: The attributes of ACCESS_TEXT_BY_ATTRIBUTE that the queue has.
        tags: The queue's tags, without those that AWS writes.
        source_arn: The queue whose messages a quarantine receives. Empty for a DLQ, and in records
            by early versions of Mendq.
    """

    queue_arn: str
    recorded_at: datetime
    recorded_by: str
    is_made_by_mendq: bool = True
    created_at: datetime | None = None
    access: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    source_arn: str = ""

    @classmethod
    def of_queue(
        cls,
        queue: QueueFacts,
        *,
        recorded_at: datetime,
        recorded_by: str,
        is_made_by_mendq: bool,
        source_arn: str = "",
    ) -> Self:
        """Return the record of a queue as it is now. `queue` must have its attributes and tags."""
        return cls(
            queue.queue_arn,
            recorded_at,
            recorded_by,
            is_made_by_mendq,
            queue.created_at,
            read_access(queue.attributes),
            remove_aws_tags(queue.tags),
            source_arn,
        )

    @property
    def origin_text(self) -> str:
        """Who put the queue on record, such as `Mendq made it`."""
        if self.is_made_by_mendq:
            return "Mendq made it"
        return f"{self.recorded_by} confirmed it"

    def is_creation_noted(self, now: datetime) -> bool:
        """Return True if Mendq noted recently that it is about to make the queue."""
        return self.created_at is None and now - self.recorded_at <= CREATION_NOTE_LIFETIME


def read_access(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that decide who can reach the queue's messages, without empty ones.

    If the queue has a KMS key, SQS's own encryption is left out, because it has no effect then. A
    RedrivePolicy or RedriveAllowPolicy is normalized, so that equal policies have equal texts.
    """
    access = {name: attributes[name] for name in ACCESS_TEXT_BY_ATTRIBUTE if attributes.get(name)}
    for step_class in (AttachDlq, AllowRedriveFrom):
        if step_class.attribute in access:
            access[step_class.attribute] = step_class.value_in(attributes)
    if access.get("SqsManagedSseEnabled") != "true" or "KmsMasterKeyId" in access:
        access.pop("SqsManagedSseEnabled", None)
    return access


def remove_aws_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags without those that only AWS can write."""
    return {key: value for key, value in tags.items() if not key.startswith(AWS_TAG_PREFIX)}


class OtherSourceObjection(str):
    """The objection that the case store records the queue as another source's quarantine.

    Its messages may be that source's, so Mendq must not advise to reassign or delete the queue.
    """

    __slots__ = ()


def find_other_queue_objection(receiver: Receiver | None, queue: QueueFacts) -> str | None:
    """Return why the case store has no record of exactly this queue; None if it has one.

    Args:
        receiver: The record under the queue's ARN; None if there is none.
        queue: The queue with its attributes.
    """
    if receiver is None or receiver.created_at is None:
        return "nothing records that Mendq made it or that a person confirmed it"
    if queue.created_at != receiver.created_at:
        return f"it was deleted and created again since {receiver.origin_text}"
    return None


def can_have_several_sources(quarantine_name: str) -> bool:
    """Return True if more than one source may have a quarantine of this name.

    This is possible only for a name that was cut, which has the most characters that SQS allows.
    """
    return len(quarantine_name) >= MAXIMUM_QUEUE_NAME_LENGTH


def find_source_objection(receiver: Receiver, source_arn: str) -> str | None:
    """Return why the quarantine must not receive messages of this source; None if it may.

    Args:
        receiver: The quarantine's record.
        source_arn: The source; empty for any source, as for a DLQ.
    """
    if not source_arn or receiver.source_arn == source_arn:
        return None
    source_name = parse_queue_arn(source_arn).name
    if receiver.source_arn:
        recorded_name = receiver.source_arn.rpartition(":")[2]
        return OtherSourceObjection(
            f"it is recorded as the quarantine of {recorded_name}, not of {source_name}"
        )
    if can_have_several_sources(parse_queue_arn(receiver.queue_arn).name):
        return f"nothing records that it is the quarantine of {source_name}: its name was cut"
    return None


def find_receiver_objection(
    receiver: Receiver | None, queue: QueueFacts, source_arn: str = ""
) -> str | None:
    """Return why the queue must not receive messages now; None if it may.

    Args:
        receiver: The record under the queue's ARN; None if there is none.
        queue: The queue with its attributes and tags.
        source_arn: The source of a quarantine; empty if it is not known, or for a DLQ.
    """
    objection = find_other_queue_objection(receiver, queue)
    if objection or receiver is None:
        return objection
    objection = find_source_objection(receiver, source_arn)
    if objection:
        return objection
    changed_parts = list_changed_parts(receiver, queue)
    if changed_parts:
        return f"its {' and '.join(changed_parts)} changed since {receiver.origin_text}"
    return None


def list_changed_parts(receiver: Receiver, queue: QueueFacts) -> list[str]:
    """Return the parts of the queue that differ from the record, as texts such as `policy`."""
    access = read_access(queue.attributes)
    changed_parts = [
        text
        for name, text in ACCESS_TEXT_BY_ATTRIBUTE.items()
        if access.get(name) != receiver.access.get(name)
    ]
    if remove_aws_tags(queue.tags) != receiver.tags:
        changed_parts.append("tags")
    return changed_parts


def find_source_access_change(before: QueueFacts, queue: QueueFacts) -> str | None:
    """Return how the queue's policy, KMS key or creation time differ; None if they do not."""
    if not queue.exists:
        return "it was deleted"
    if queue.created_at != before.created_at:
        return "it was deleted and created again"
    changed_parts = [
        ACCESS_TEXT_BY_ATTRIBUTE[name]
        for name in SOURCE_ACCESS_ATTRIBUTES
        if (queue.attributes.get(name) or "") != (before.attributes.get(name) or "")
    ]
    return f"its {' and '.join(changed_parts)} changed" if changed_parts else None


def make_access_digest(attributes: Mapping[str, str]) -> str:
    """Return a digest of the policy and the KMS key among a queue's attributes."""
    values = [attributes.get(name) or "" for name in SOURCE_ACCESS_ATTRIBUTES]
    return sha256(json.dumps(values).encode()).hexdigest()


def find_difference_from_new_queue(
    queue: QueueFacts, new_queue_attributes: Mapping[str, str]
) -> str | None:
    """Return the first difference from a queue that Mendq creates; None if there is none.

    Tags are not compared.

    Args:
        queue: The queue with its attributes.
        new_queue_attributes: The attributes with which Mendq makes the queue.
    """
    expected_access = read_access(new_queue_attributes)
    access = read_access(queue.attributes)
    for name, text in ACCESS_TEXT_BY_ATTRIBUTE.items():
        if access.get(name) != expected_access.get(name):
            return f"its {text} is not what Mendq sets on a new queue"
    for name, value in new_queue_attributes.items():
        if name not in ACCESS_TEXT_BY_ATTRIBUTE and queue.attributes.get(name) != value:
            return f"its {name} is not what Mendq sets on a new queue"
    return None
