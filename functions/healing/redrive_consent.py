"""Whether messages may be moved out of a dead-letter queue into a source, and with which keys.

A message stays encrypted with the key that it was sent under, also when it is moved to a
dead-letter queue of another key; sent back, it is encrypted anew with the source's.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from functions.healing.dead_letters import unfit
from functions.healing.encryption_keys import is_aws_managed
from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.plain_text import counted
from functions.healing.queue_names import parts_of

REDRIVE_TAG = "mendq:redrive"
ON = "on"
READ = "kms:Decrypt"
SEND = "kms:GenerateDataKey"


def redrive_is_off(tags: Mapping[str, str]) -> bool:
    """Whether the tag forbids it; a word that is not `on` is taken for `off`."""
    return tags.get(REDRIVE_TAG, ON).strip().lower() != ON


def why_not_to_move(queue: Facts, consent: Consent) -> str | None:
    """Why Mendq may not by itself move letters out of this queue or into it."""
    mode = consent.mode_of(parts_of(queue.queue_arn).name, queue.tags)
    if mode is None:
        return f"{queue.queue_arn} is not managed"
    if mode is Mode.OBSERVE:
        return f"{queue.queue_arn} is only observed"
    if redrive_is_off(queue.tags):
        return f"the tag {REDRIVE_TAG} of {queue.queue_arn} forbids it"
    return None


def why_not_between(
    dead_letters: Facts, source: Facts, source_arns: Sequence[str], consent: Consent
) -> str | None:
    """Why letters may not go from the one to the other; `source_arns` are those that name it."""
    for each in (dead_letters, source):
        if not each.exists:
            return f"there is no queue {each.queue_arn} any more"
    if source.dead_letter_arn != dead_letters.queue_arn:
        return f"{source.queue_arn} does not name it as its dead-letter queue any more"
    if set(source_arns) - {source.queue_arn}:
        return f"it is the dead-letter queue of {counted(len(source_arns), 'queue')} by now"
    if dead_letters.attributes.get("RedrivePolicy"):
        return "it has a dead-letter queue itself"
    return (
        unfit(source.queue_arn, dead_letters.queue_arn)
        or why_not_to_move(dead_letters, consent)
        or why_not_to_move(source, consent)
    )


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


def key_sentence(grants: Iterable[KeyGrant], who: str) -> str:
    """`who` needs which; empty where there is nothing to grant."""
    needed = "; ".join(map(str, grants))
    return f"{who} needs {needed}: in the key's policy, or in its own where that lets it" * bool(
        needed
    )
