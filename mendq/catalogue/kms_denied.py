"""Callers may use the queue and not the key that its messages are encrypted with.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue._encryption import KEY_ATTRIBUTES, get_key_policy, without_key
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from mendq.model.evidence import named, receives, sends
from mendq.model.facts import Facts, Need, is_aws_managed, is_of_another_account
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page with the grant that is missing, or with what asks for a key where there is none."""
    key = facts.kms_key
    if key is None:
        return without_key(facts)
    code, whose = _whose_matter(facts, key)
    reason = (
        f"the key {key} is not granted. {_missing(facts)}. {whose}. "
        f"Refused: {named(facts.principals)}"
    )
    look = get_key_policy(facts, key)
    return Escalate(code, reason, next_command=look)


def _missing(facts: Facts) -> str:
    """Senders also decrypt: SQS checks the data key that it uses again."""
    needed = []
    if sends(facts.event_names) or not receives(facts.event_names):
        needed.append("whoever sends needs kms:GenerateDataKey and kms:Decrypt on it")
    if receives(facts.event_names) or not sends(facts.event_names):
        needed.append("whoever receives needs kms:Decrypt on it")
    text = "; ".join(needed)
    return text[0].upper() + text[1:]


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


_CALLED = replace(
    examples.queue(KmsMasterKeyId=examples.KEY_ARN),
    principals=("arn:aws:iam::123456789012:role/orders-worker",),
    event_names=("SendMessage",),
)

KMS_DENIED = Symptom(
    name="kms_denied",
    sentence="Callers may use the queue but not its KMS key, so messages stay unsent or unread.",
    plan_in_words="Page with the grant on the key that is missing; never touch a key or a policy.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-key-management.html",
    seen_as=seen_as_labelled("kms_denied"),
    needs=frozenset({Need.QUEUE}),
    plan=plan,
    shows=KEY_ATTRIBUTES,
    mass_advice="Look for the key that these queues share, and who changed its policy.",
    caught=(
        Caught(
            "a sender without a grant",
            examples.failed_call("SendMessage", "KMS.AccessDeniedException"),
            _CALLED,
            code="key_not_granted",
        ),
        Caught(
            "a service that meets AWS's own key",
            examples.failed_call("SendMessage", "KmsAccessDenied"),
            replace(_CALLED, attributes={"KmsMasterKeyId": "alias/aws/sqs"}),
            code="aws_managed_key",
        ),
        Caught(
            "messages from before the key was taken off",
            examples.failed_call("ReceiveMessage", "KmsAccessDenied"),
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
            "IAM's refusal of the call itself",
            "no_match",
            call=examples.failed_call("SendMessage", "AccessDeniedException"),
        ),
        NearMiss(
            "KMS is asked too often",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.ThrottlingException"),
        ),
        NearMiss(
            "the key is disabled",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.DisabledException"),
        ),
    ),
)
