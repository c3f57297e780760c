"""Symptom `kms_key_unusable`: nobody can use the KMS key that encrypts the queue's messages.

The fault: the key is disabled, waits for its deletion, was deleted, or is of a kind that SQS cannot
use. No message is sent or received. If the key is deleted, every message that it encrypts is lost.

How it shows: CloudTrail records failed calls with KMS.DisabledException, KMS.InvalidStateException,
KMS.NotFoundException or KMS.InvalidKeyUsageException.

What Mendq does: it notifies people, with the command that shows the key's state, and says that a
planned deletion has a deadline. It never touches a key or the queue's encryption: only the key's
administrator knows why the key was disabled, and another key could not decrypt the waiting
messages.
"""

from __future__ import annotations

from mendq.catalogue.examples import KEY_ARN, failed_call, queue
from mendq.catalogue.keys.kms_denied import (
    KMS_KEY_ATTRIBUTES,
    QUEUE_WITH_OLD_MESSAGES,
    QUEUE_WITHOUT_KEY,
    make_describe_key_command,
    refuse_without_key,
)
from mendq.catalogue.symptom import (
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    NotifiedSymptom,
    RefusalExample,
    make_code_patterns,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.severity_class import SeverityClass


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people.

    Only KMS knows why the key cannot be used, so the command asks KMS. For a queue without a key
    return the refusal of `refuse_without_key`.
    """
    key = facts.kms_key
    if key is None:
        return refuse_without_key(facts)
    reason = (
        f"the key {key} is disabled, waits for its deletion, is gone, or is of a kind that SQS "
        "cannot use, so no message is sent or received. KeyState and KeyUsage say which. "
        "PendingDeletion has a deadline, DeletionDate: after it every message encrypted with the "
        "key is lost for good; until then its administrator can cancel the deletion"
    )
    return Escalate("key_unusable", reason, make_describe_key_command(facts, key))


_RECEIVE_WITH_DISABLED_KEY = failed_call("ReceiveMessage", "KmsDisabled")


def _make_example(title: str, event_name: str, error_code: str, key: str = KEY_ARN) -> CallExample:
    call = failed_call(event_name, error_code)
    return CallExample(title, call, queue(KmsMasterKeyId=key), "key_unusable")


KMS_KEY_UNUSABLE = NotifiedSymptom(
    name="kms_key_unusable",
    sentence="The queue's KMS key is disabled, gone or unfit, so nothing is sent or received.",
    plan_in_words="Page with how to see the key's state, and that a deleted key takes the messages "
    "with it; never touch a key.",
    habit="keeps a key that cannot be used",
    aws_page="https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("kms_key_unusable"),
    plan=plan,
    shown_attributes=KMS_KEY_ATTRIBUTES,
    advice_if_many=Advice(
        "Look for the key that these queues share, and who disabled or deletes it."
    ),
    examples=lambda: (
        _make_example("a disabled key", "SendMessage", "KMS.DisabledException"),
        _make_example(
            "an alias that leads nowhere", "SendMessage", "KMS.NotFoundException", "alias/x"
        ),
        CallExample(
            "messages of an older key",
            _RECEIVE_WITH_DISABLED_KEY,
            QUEUE_WITH_OLD_MESSAGES,
            "key_changed",
        ),
        RefusalExample("no key is needed by now", QUEUE_WITHOUT_KEY, "not_encrypted_with_kms"),
        CallNearMiss("it is not granted", failed_call("SendMessage", "KMS.AccessDeniedException")),
        CallNearMiss("KMS is asked too often", failed_call("ReceiveMessage", "KmsThrottled")),
    ),
)
