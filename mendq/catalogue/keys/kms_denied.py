"""Callers may use the queue and not the key that its messages are encrypted with."""

from __future__ import annotations

import shlex

from mendq.catalogue.access.minimum_policy import before_granting, who_called
from mendq.catalogue.examples import KEY_ARN, ROLE, failed_call, queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    NotifiedSymptom,
    RefusalExample,
    seen_as_labelled,
)
from mendq.model.evidence import RECEIVE_MESSAGE, SEND_MESSAGE, actions_allowing, name_first_few
from mendq.model.facts import Facts, is_aws_managed, is_of_another_account
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.notifications.commands import aws_command

KEY_ATTRIBUTES = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds")


def without_key(facts: Facts) -> Refusal:
    """What it means that the queue has no KMS key and callers are yet refused one.

    Taking a key off a queue does not touch the messages in it: they still need the old one.
    """
    if RECEIVE_MESSAGE not in actions_allowing(facts.event_names):
        return Ignore("not_encrypted_with_kms", "the queue has no KMS key (any more)")
    reason = (
        "the queue has no KMS key, but messages that came before that was changed are encrypted "
        "with the old one: until they are gone, receivers need that key, usable and granted"
    )
    return Escalate("key_changed", reason, who_called("SetQueueAttributes", facts.queue_arn))


# Queues whose key was taken off: its messages are read, and others sent.
OLD_MESSAGES, NO_KEY = (queue(event_names=(each,)) for each in ("ReceiveMessage", "SendMessage"))


def describe_key(facts: Facts, key: str) -> str:
    """The command that shows a key's state; aliases will do."""
    return aws_command("kms describe-key", facts.queue_arn, f"--key-id {shlex.quote(key)}")


def get_key_policy(facts: Facts, key: str) -> str:
    """The command that shows who may use a key; KMS wants its id, not an alias, for that."""
    key_id = shlex.quote(key)
    if "alias/" in key:
        key_id = f'"$({describe_key(facts, key)} --query KeyMetadata.KeyId --output text)"'
    options = f"--key-id {key_id} --policy-name default --output text"
    return aws_command("kms get-key-policy", facts.queue_arn, options)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page with the grant that is missing, or with what asks for a key where there is none."""
    key = facts.kms_key
    if key is None:
        return without_key(facts)
    (code, whose), refused = _whose_matter(facts, key), name_first_few(facts.principals)
    reason = f"the key {key} is not granted. {_missing(facts)}. {whose}. Refused: {refused}"
    return Escalate(code, reason, get_key_policy(facts, key))


def _missing(facts: Facts) -> str:
    """The grants that lack. Senders also decrypt: SQS checks the data key that it uses again."""
    actions = actions_allowing(facts.event_names)
    sending, receiving = SEND_MESSAGE in actions, RECEIVE_MESSAGE in actions
    needed = []
    if sending or not receiving:
        needed.append("whoever sends needs kms:GenerateDataKey and kms:Decrypt on it")
    if receiving or not sending:
        needed.append("whoever receives needs kms:Decrypt on it")
    return "W" + "; ".join(needed)[1:]


def _whose_matter(facts: Facts, key: str) -> tuple[str, str]:
    if is_aws_managed(key):
        return "aws_managed_key", (
            "It is AWS's own key, and its policy cannot be changed: other accounts, and services "
            "such as SNS, EventBridge and S3, can never use it. They need a customer managed key"
        )
    if is_of_another_account(facts, key):
        return "key_of_another_account", (
            "The key is another account's: its key policy and the caller's identity policy must "
            "both grant this. The command works in the key's account"
        )
    return "key_not_granted", (
        "The key's policy must grant this, or leave it to IAM and the caller's identity policy "
        "grant it; a service principal is granted in the key's policy alone"
    )


_BY_KEY, _BY_SQS = (
    queue(KmsMasterKeyId=each, principals=(ROLE,), event_names=("SendMessage",))
    for each in (KEY_ARN, "alias/aws/sqs")
)
_SENT = failed_call("SendMessage", "KMS.AccessDeniedException")
_RECEIVED = failed_call("ReceiveMessage", "KmsAccessDenied")

KMS_DENIED = NotifiedSymptom(
    name="kms_denied",
    sentence="Callers may use the queue but not its KMS key, so messages stay unsent or unread.",
    plan_in_words="Page with the grant on the key that is missing; never touch a key or a policy.",
    habit="keeps being called without a grant on its key",
    aws_page=f"{SQS_GUIDE}/sqs-key-management.html",
    seen_as=seen_as_labelled("kms_denied"),
    plan=plan,
    shown_attributes=KEY_ATTRIBUTES,
    extra_sections=before_granting,
    advice_if_many=Advice("Look for the key that these queues share, and who changed its policy."),
    examples=lambda: (
        CallExample("a sender without a grant", _SENT, _BY_KEY, "key_not_granted"),
        CallExample("a service that meets AWS's own key", _SENT, _BY_SQS, "aws_managed_key"),
        CallExample("messages of a key that was taken off", _RECEIVED, OLD_MESSAGES, "key_changed"),
        RefusalExample("no key is needed by now", NO_KEY, "not_encrypted_with_kms"),
        CallNearMiss("IAM refuses the call", failed_call("SendMessage", "AccessDeniedException")),
        CallNearMiss(
            "KMS is asked too often", failed_call("SendMessage", "KMS.ThrottlingException")
        ),
    ),
)
