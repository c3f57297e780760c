"""The grants that moving letters between encrypted queues takes.

A letter stays encrypted with the key that it was sent under, also when it is moved to a dead-letter
queue of another key; sent back, it is encrypted anew with the source's.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from functions.healing.encryption_keys import is_aws_managed
from functions.healing.queue_names import parts_of

READ = "kms:Decrypt"
SEND = "kms:GenerateDataKey"


@dataclass(frozen=True)
class KeyGrant:
    """What whoever moves letters has to be granted on one key, and of which queues that is."""

    key: str
    actions: tuple[str, ...]
    queue_names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{' and '.join(self.actions)} on {self.key} ({', '.join(self.queue_names)})"


def key_grants(
    dead_letter_arn: str,
    dead_letters: Mapping[str, str],
    source_arn: str,
    source: Mapping[str, str],
) -> tuple[KeyGrant, ...]:
    """By the attributes of both queues; none where neither is encrypted with a key of one's own.

    The key that AWS manages grants everybody of its account who may use the queue, and SQS's own
    encryption asks nobody. A quarantine is encrypted as its source.
    """
    asked: dict[str, tuple[set[str], list[str]]] = {}
    for arn, attributes, actions in (
        (dead_letter_arn, dead_letters, {READ}),
        (source_arn, source, {READ, SEND}),
    ):
        key = attributes.get("KmsMasterKeyId", "")
        if key and not is_aws_managed(key):
            of_key, names = asked.setdefault(key, (set(), []))
            of_key.update(actions)
            names.append(parts_of(arn).name)
    return tuple(
        KeyGrant(key, tuple(sorted(actions)), tuple(names))
        for key, (actions, names) in asked.items()
    )


def sentence(grants: Iterable[KeyGrant], who: str) -> str:
    """`who` needs which; empty where there is nothing to grant."""
    needed = "; ".join(map(str, grants))
    return f"{who} needs {needed}: in the key's policy, or in its own where that lets it" * bool(
        needed
    )
