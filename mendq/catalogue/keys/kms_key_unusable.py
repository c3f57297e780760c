"""Symptom `kms_key_unusable`: nobody can use the KMS key that encrypts the queue's messages.

The fault: the key is disabled, will be deleted, was deleted, or is of a kind that SQS cannot
use. No message is sent or received. If the key is deleted, every message that it encrypts is lost.

How it shows: CloudTrail records failed calls with KMS.DisabledException, KMS.InvalidStateException,
KMS.NotFoundException or KMS.InvalidKeyUsageException. A scan asks KMS for the state of a customer
managed key: that the key cannot be used is a fact, which needs no failed call and no metric. It
asks only for suspects, and for queues whose traffic stopped hours ago. A key that KMS does not show
to Mendq is not a finding: the scan says that it did not check it.

What Mendq does: it notifies people, with the command that shows the key's state, and says that a
planned deletion has a deadline. It never touches a key or the queue's encryption: only the key's
administrator knows why the key was disabled, and another key could not decrypt the waiting
messages.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.catalogue.examples import EXAMPLE_TIME, KEY_ARN, failed_call, queue
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
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    make_code_patterns,
)
from mendq.model.facts import Facts, Need, has_customer_key
from mendq.model.key_state import MISSING_KEY_STATE, KeyState
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.model.traffic import count_messages
from mendq.notifications.text import format_count, format_utc_time

_ALIAS_PREFIX = "alias/"
_SENTENCE_BY_STATE = {
    "Disabled": "is disabled",
    "PendingDeletion": "will be deleted",
    "PendingReplicaDeletion": "will be deleted once its replicas are deleted",
    "PendingImport": "waits for the import of its key material",
    "Unavailable": "is unavailable, because its custom key store is disconnected",
    MISSING_KEY_STATE: "does not exist",
}


def detect(facts: Facts) -> DetectedFault | None:
    """Report a customer managed key that nobody can use now.

    If the key will be deleted and the queue holds messages, they are lost with the key.
    """
    key_state = facts.kms_key_state
    if key_state is None or not key_state.is_unusable:
        return None
    held_count = count_messages(facts)
    deletion_text = ""
    if key_state.deletion_at is not None and key_state.seconds_left is not None:
        deletion_text = f" on {format_utc_time(key_state.deletion_at)}"
    return DetectedFault(
        f"the queue's key {facts.kms_key} {_SENTENCE_BY_STATE[key_state.state]}{deletion_text}, "
        f"and the queue holds {format_count(held_count, 'message')}",
        seconds_left=key_state.seconds_left if held_count else None,
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people.

    Only KMS knows why the key cannot be used, so the command asks KMS. For a queue without a key
    return the refusal of `refuse_without_key`.
    """
    key = facts.kms_key
    if key is None:
        return refuse_without_key(facts)
    if facts.found:
        if facts.kms_key_state is not None and facts.kms_key_state.state == MISSING_KEY_STATE:
            reason = f"{facts.found}. {_advise_about_missing_key(key)}"
            return Escalate("key_unusable", reason, make_describe_key_command(facts, key))
        reason = (
            f"{facts.found}. No message is sent or received until the key's administrator makes it "
            "usable again"
        )
        if facts.kms_key_state is not None and facts.kms_key_state.seconds_left is not None:
            reason += (
                ". After its deletion every message encrypted with it is lost for good; until then "
                "its administrator can cancel the deletion"
            )
        return Escalate("key_unusable", reason, make_describe_key_command(facts, key))
    reason = (
        f"the key {key} is disabled, will be deleted, is gone, or is of a kind that SQS "
        "cannot use, so no message is sent or received. KeyState and KeyUsage say which. "
        "PendingDeletion has a deadline, DeletionDate: after it every message encrypted with the "
        "key is lost for good; until then its administrator can cancel the deletion"
    )
    return Escalate("key_unusable", reason, make_describe_key_command(facts, key))


def _advise_about_missing_key(key: str) -> str:
    """Return sentences about the effect of a missing key, and about the cure.

    Nobody can bring a deleted key back. Only an alias or a wrong name can be corrected.
    """
    cure = (
        "If only the alias is gone, point it at the key again"
        if _ALIAS_PREFIX in key
        else "If the queue names a wrong key, correct its KmsMasterKeyId"
    )
    return (
        f"So no message is sent or received. {cure}. If the key was deleted, the messages that it "
        "encrypted are lost: give the queue another key, or SQS's own (SqsManagedSseEnabled), so "
        "that new messages get through"
    )


_RECEIVE_WITH_DISABLED_KEY = failed_call("ReceiveMessage", "KmsDisabled")


def _make_example(title: str, event_name: str, error_code: str, key: str = KEY_ARN) -> CallExample:
    call = failed_call(event_name, error_code)
    return CallExample(title, call, queue(KmsMasterKeyId=key), "key_unusable")


def _make_queue(state: str, visible: int = 0, kms_key: str = KEY_ARN, **key_values: Any) -> Facts:
    """Return a queue whose key is in this state, with this number of waiting messages."""
    return queue(
        KmsMasterKeyId=kms_key,
        kms_key_state=KeyState(state, **key_values),
        ApproximateNumberOfMessages=visible,
    )


KMS_KEY_UNUSABLE = NotifiedSymptom(
    name="kms_key_unusable",
    sentence="The queue's KMS key is disabled, gone or unfit, so nothing is sent or received.",
    plan_in_words="Page with how to see the key's state, and that a deleted key takes the messages "
    "with it; never touch a key.",
    habit="keeps a key that cannot be used",
    first_step="Enable the KMS key, or choose another one.",
    aws_page="https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("kms_key_unusable"),
    detection=Detection(
        detect,
        frozenset({Need.QUEUE, Need.KMS_KEY}),
        has_customer_key,
        is_left_to_suspects=True,
    ),
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
        QueueExample("KMS says that it is disabled", _make_queue("Disabled"), "key_unusable"),
        QueueExample("it has no key material", _make_queue("PendingImport"), "key_unusable"),
        QueueExample("its key store is away", _make_queue("Unavailable"), "key_unusable"),
        QueueExample("it is gone", _make_queue(MISSING_KEY_STATE), "key_unusable"),
        QueueExample(
            "its alias is gone, and messages wait",
            _make_queue(MISSING_KEY_STATE, visible=9, kms_key="alias/orders"),
            "key_unusable",
        ),
        QueueExample(
            "it will be deleted, and messages wait",
            _make_queue(
                "PendingDeletion",
                deletion_at=EXAMPLE_TIME + timedelta(days=7),
                seconds_left=7 * 86_400.0,
                visible=9,
            ),
            "key_unusable",
        ),
        QueueNearMiss("the key works", _make_queue("Enabled")),
        QueueNearMiss("KMS makes the key", _make_queue("Creating")),
        QueueNearMiss("the key could not be read", _make_queue("", error="it is denied")),
        QueueNearMiss("the key was not read", queue(KmsMasterKeyId=KEY_ARN)),
        CallNearMiss("it is not granted", failed_call("SendMessage", "KMS.AccessDeniedException")),
        CallNearMiss("KMS is asked too often", failed_call("ReceiveMessage", "KmsThrottled")),
    ),
)
