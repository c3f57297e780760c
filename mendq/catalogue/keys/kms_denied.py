"""Symptom `kms_denied`: callers may use the queue, but not the KMS key that encrypts its messages.

The fault: SQS asks KMS in the caller's name, and KMS refuses. A sender needs kms:GenerateDataKey on
the key, and kms:Decrypt by AWS's page below but not by SQS's document history; a consumer needs
kms:Decrypt.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html

How it shows: CloudTrail records failed calls with the code KMS.AccessDeniedException.

What Mendq does: it notifies people, with the missing grant and the place where it belongs. That
depends on the key: the one that AWS manages (`alias/aws/sqs`) cannot be granted at all, and a key
of another account needs grants on both sides. Mendq never touches a key or a policy, because people
decide who may decrypt messages.
"""

from __future__ import annotations

import shlex

from mendq.catalogue.access.minimum_policy import make_caller_lookup_command, make_grant_sections
from mendq.catalogue.examples import KEY_ARN, ROLE_ARN, failed_call, queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    NotifiedSymptom,
    RefusalExample,
    make_code_patterns,
)
from mendq.model.facts import Facts, is_aws_managed_key, is_key_of_another_account
from mendq.model.limits import Limits
from mendq.model.message_calls import (
    RECEIVE_MESSAGE_ACTION,
    SEND_MESSAGE_ACTION,
    list_actions_allowing,
)
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import make_aws_command

KMS_KEY_ATTRIBUTES = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds")


def refuse_without_key(facts: Facts) -> Refusal:
    """Return the refusal if callers were refused the use of a key, but the queue has no KMS key.

    If a key is removed from a queue, the messages in it stay encrypted with that key, and consumers
    still need it. If no receive was refused, nothing is wrong any more.
    """
    if RECEIVE_MESSAGE_ACTION not in list_actions_allowing(facts.event_names):
        return Ignore("not_encrypted_with_kms", "the queue has no KMS key (any more)")
    reason = (
        "the queue has no KMS key, but messages that came before that was changed are encrypted "
        "with the old one: until they are gone, receivers need that key, usable and granted"
    )
    return Escalate(
        "key_changed", reason, make_caller_lookup_command("SetQueueAttributes", facts.queue_arn)
    )


# The KMS key of this queue was removed. Consumers cannot receive messages that it encrypted.
QUEUE_WITH_OLD_MESSAGES = queue(event_names=("ReceiveMessage",))
# The KMS key of this queue was removed. Only sends were refused, so nothing is wrong any more.
QUEUE_WITHOUT_KEY = queue(event_names=("SendMessage",))


def make_describe_key_command(facts: Facts, key: str) -> str:
    """Return the command that shows a key's state. `key` is an id, an ARN or an alias."""
    return make_aws_command("kms describe-key", facts.queue_arn, f"--key-id {shlex.quote(key)}")


def make_key_policy_command(facts: Facts, key: str) -> str:
    """Return the command that shows who may use a key.

    KMS does not take an alias here, so for an alias the command looks up the key's id first.
    """
    quoted_key_id = shlex.quote(key)
    if "alias/" in key:
        quoted_key_id = (
            f'"$({make_describe_key_command(facts, key)} --query KeyMetadata.KeyId --output text)"'
        )
    key_policy_options = f"--key-id {quoted_key_id} --policy-name default --output text"
    return make_aws_command("kms get-key-policy", facts.queue_arn, key_policy_options)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people about the missing grant on the key.

    For a queue without a key return the refusal of `refuse_without_key`.
    """
    key = facts.kms_key
    if key is None:
        return refuse_without_key(facts)
    refusal_code, owner_sentence = _explain_missing_grant(facts, key)
    refused_callers_text = name_first_principals(facts.principals)
    missing_grants_sentence = _describe_missing_grants(facts)
    reason = (
        f"the key {key} is not granted. {missing_grants_sentence}. {owner_sentence}. Refused: "
        f"{refused_callers_text}"
    )
    return Escalate(refusal_code, reason, make_key_policy_command(facts, key))


def _describe_missing_grants(facts: Facts) -> str:
    """Return a sentence about the grants on the key that are missing.

    It names the grants that senders need, or those that consumers need, as the failed calls show.
    It names both if neither or both kinds of call failed. It asks for kms:Decrypt for senders too,
    because AWS's pages disagree on whether they need it.
    """
    actions = list_actions_allowing(facts.event_names)
    was_send_refused = SEND_MESSAGE_ACTION in actions
    was_receive_refused = RECEIVE_MESSAGE_ACTION in actions
    sender_grants_text = "needs kms:GenerateDataKey and kms:Decrypt on it"
    receiver_grants_text = "needs kms:Decrypt on it"
    if was_send_refused == was_receive_refused:
        return f"Whoever sends {sender_grants_text}; whoever receives {receiver_grants_text}"
    if was_send_refused:
        return f"Whoever sends {sender_grants_text}"
    return f"Whoever receives {receiver_grants_text}"


def _explain_missing_grant(facts: Facts, key: str) -> tuple[str, str]:
    """Return the refusal's code, and a sentence that says where people grant the key's use."""
    if is_aws_managed_key(key):
        return "aws_managed_key", (
            "It is AWS's own key, and its policy cannot be changed: other accounts, and services "
            "such as SNS, EventBridge and S3, can never use it. They need a customer managed key"
        )
    if is_key_of_another_account(facts, key):
        return "key_of_another_account", (
            "The key is another account's: its key policy and the caller's identity policy must "
            "both grant this. The command works in the key's account"
        )
    return "key_not_granted", (
        "The key's policy must grant this, or leave it to IAM and the caller's identity policy "
        "grant it; a service principal is granted in the key's policy alone"
    )


def _make_example_queue(key: str) -> Facts:
    """Return a queue with a KMS key, to which ROLE_ARN could not send."""
    return queue(KmsMasterKeyId=key, principals=(ROLE_ARN,), event_names=("SendMessage",))


_CUSTOMER_KEY_QUEUE = _make_example_queue(KEY_ARN)
_AWS_KEY_QUEUE = _make_example_queue("alias/aws/sqs")
_DENIED_SEND = failed_call("SendMessage", "KMS.AccessDeniedException")
_DENIED_RECEIVE = failed_call("ReceiveMessage", "KmsAccessDenied")

KMS_DENIED = NotifiedSymptom(
    name="kms_denied",
    sentence="Callers may use the queue but not its KMS key, so messages stay unsent or unread.",
    plan_in_words="Page with the grant on the key that is missing; never touch a key or a policy.",
    habit="keeps being called without a grant on its key",
    first_step="Let the callers use the KMS key.",
    aws_page=f"{SQS_GUIDE}/sqs-key-management.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("kms_denied"),
    plan=plan,
    shown_attributes=KMS_KEY_ATTRIBUTES,
    extra_sections=make_grant_sections,
    advice_if_many=Advice("Look for the key that these queues share, and who changed its policy."),
    examples=lambda: (
        CallExample(
            "a sender without a grant", _DENIED_SEND, _CUSTOMER_KEY_QUEUE, "key_not_granted"
        ),
        CallExample(
            "a service that meets AWS's own key", _DENIED_SEND, _AWS_KEY_QUEUE, "aws_managed_key"
        ),
        CallExample(
            "messages of a key that was taken off",
            _DENIED_RECEIVE,
            QUEUE_WITH_OLD_MESSAGES,
            "key_changed",
        ),
        RefusalExample("no key is needed by now", QUEUE_WITHOUT_KEY, "not_encrypted_with_kms"),
        CallNearMiss("IAM refuses the call", failed_call("SendMessage", "AccessDeniedException")),
        CallNearMiss(
            "KMS is asked too often", failed_call("SendMessage", "KMS.ThrottlingException")
        ),
    ),
)
