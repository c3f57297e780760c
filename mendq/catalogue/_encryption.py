"""The KMS key that a queue's messages are encrypted with."""

from __future__ import annotations

import shlex

from mendq.catalogue.examples import queue
from mendq.catalogue.symptom import Refused
from mendq.model.evidence import receives, who_called
from mendq.model.facts import Facts
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.queue import parts_of

KEY_ATTRIBUTES = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds")


def without_key(facts: Facts) -> Refusal:
    """What it means that the queue has no KMS key and callers are yet refused one.

    Taking a key off a queue does not touch the messages in it: they still need the old one.
    """
    if not receives(facts.event_names):
        return Ignore("not_encrypted_with_kms", "the queue has no KMS key (any more)")
    reason = (
        "the queue has no KMS key, but messages that came before that was changed are encrypted "
        "with the old one: until they are gone, receivers need that key, usable and granted"
    )
    return Escalate("key_changed", reason, who_called("SetQueueAttributes", facts.queue_arn))


KEY_TAKEN_OFF = Refused(
    "a sender, and the queue is not encrypted any more",
    queue(event_names=("SendMessage",)),
    "not_encrypted_with_kms",
)


def describe_key(facts: Facts, key: str) -> str:
    """The command that shows a key's state; aliases will do."""
    region = parts_of(facts.queue_arn).region
    return f"aws kms describe-key --region {region} --key-id {shlex.quote(key)}"


def get_key_policy(facts: Facts, key: str) -> str:
    """The command that shows who may use a key; KMS wants its id, not an alias, for that."""
    region = parts_of(facts.queue_arn).region
    key_id = shlex.quote(key)
    if "alias/" in key:
        key_id = f'"$({describe_key(facts, key)} --query KeyMetadata.KeyId --output text)"'
    return (
        f"aws kms get-key-policy --region {region} --key-id {key_id} "
        "--policy-name default --output text"
    )
