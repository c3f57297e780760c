"""The key that the queue's messages are encrypted with cannot be used by anybody."""

from __future__ import annotations

from mendq.catalogue.examples import KEY_ARN, failed_call, queue
from mendq.catalogue.keys.kms_denied import (
    KEY_ATTRIBUTES,
    NO_KEY,
    OLD_MESSAGES,
    describe_key,
    without_key,
)
from mendq.catalogue.symptom import (
    Advice,
    CallExample,
    CallNearMiss,
    NotifiedSymptom,
    RefusalExample,
    seen_as_labelled,
)
from mendq.model.facts import Facts
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
    return Escalate("key_unusable", reason, describe_key(facts, key))


_RECEIVED = failed_call("ReceiveMessage", "KmsDisabled")


def _caught(title: str, event_name: str, code: str, key: str = KEY_ARN) -> CallExample:
    return CallExample(
        title, failed_call(event_name, code), queue(KmsMasterKeyId=key), "key_unusable"
    )


KMS_KEY_UNUSABLE = NotifiedSymptom(
    name="kms_key_unusable",
    sentence="The queue's KMS key is disabled, gone or unfit, so nothing is sent or received.",
    plan_in_words="Page with how to see the key's state, and that a deleted key takes the messages "
    "with it; never touch a key.",
    habit="keeps a key that cannot be used",
    aws_page="https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html",
    seen_as=seen_as_labelled("kms_key_unusable"),
    plan=plan,
    shown_attributes=KEY_ATTRIBUTES,
    advice_if_many=Advice(
        "Look for the key that these queues share, and who disabled or deletes it."
    ),
    examples=lambda: (
        _caught("a disabled key", "SendMessage", "KMS.DisabledException"),
        _caught("an alias that leads nowhere", "SendMessage", "KMS.NotFoundException", "alias/x"),
        CallExample("messages of an older key", _RECEIVED, OLD_MESSAGES, "key_changed"),
        RefusalExample("no key is needed by now", NO_KEY, "not_encrypted_with_kms"),
        CallNearMiss("it is not granted", failed_call("SendMessage", "KMS.AccessDeniedException")),
        CallNearMiss("KMS is asked too often", failed_call("ReceiveMessage", "KmsThrottled")),
    ),
)
