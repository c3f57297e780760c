"""The key that the queue's messages are encrypted with cannot be used by anybody.

https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue._encryption import KEY_ATTRIBUTES, describe_key, without_key
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: which of the ways a key can fail it is, only KMS knows."""
    key = facts.kms_key
    if key is None:
        return without_key(facts)
    reason = (
        f"the key {key} is disabled, waits for its deletion, is gone, or is of a kind that SQS "
        "cannot use, so no message is sent or received. KeyState and KeyUsage say which. "
        "PendingDeletion has a deadline, DeletionDate: after it every message encrypted with the "
        "key is lost for good; until then its administrator can cancel the deletion"
    )
    look = describe_key(facts, key)
    return Escalate("key_unusable", reason, next_command=look)


_ENCRYPTED = examples.queue(KmsMasterKeyId=examples.KEY_ARN)

KMS_KEY_UNUSABLE = Symptom(
    name="kms_key_unusable",
    sentence="The queue's KMS key is disabled, gone or unfit, so nothing is sent or received.",
    plan_in_words="Page with how to see the key's state, and that a deleted key takes the messages "
    "with it; never touch a key.",
    aws_page="https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html",
    seen_as=seen_as_labelled("kms_key_unusable"),
    needs=frozenset({Need.QUEUE}),
    plan=plan,
    shows=KEY_ATTRIBUTES,
    mass_advice="Look for the key that these queues share, and who disabled or deletes it.",
    caught=(
        Caught(
            "a disabled key",
            examples.failed_call("SendMessage", "KMS.DisabledException"),
            _ENCRYPTED,
            code="key_unusable",
        ),
        Caught(
            "a key that waits for its deletion",
            examples.failed_call("ReceiveMessage", "KmsInvalidState"),
            _ENCRYPTED,
            code="key_unusable",
        ),
        Caught(
            "an alias that leads nowhere",
            examples.failed_call("SendMessage", "KMS.NotFoundException"),
            examples.queue(KmsMasterKeyId="alias/orders"),
            code="key_unusable",
        ),
        Caught(
            "messages of an older key",
            examples.failed_call("ReceiveMessage", "KmsDisabled"),
            replace(examples.queue(), event_names=("ReceiveMessage",)),
            code="key_changed",
        ),
    ),
    near_misses=(
        NearMiss(
            "a sender, and the queue is not encrypted any more",
            "not_encrypted_with_kms",
            facts=replace(examples.queue(), event_names=("SendMessage",)),
        ),
        NearMiss(
            "the key works, but not for this caller",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.AccessDeniedException"),
        ),
        NearMiss(
            "the key works, but is asked too often",
            "no_match",
            call=examples.failed_call("ReceiveMessage", "KmsThrottled"),
        ),
    ),
)
