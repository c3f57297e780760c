"""Symptom `service_cannot_use_key`: an AWS service may send to the queue, but not use its key.

The fault: the queue's policy lets a service such as SNS, S3 or EventBridge send, but its messages
are encrypted with the key that AWS manages for SQS (`alias/aws/sqs`). That key's policy cannot be
changed, and services can never use it. Nothing that they send arrives.

How it shows: in the queue's policy and in `KmsMasterKeyId`. If a case of `kms_denied` is open
already, it knows the refused callers, and this symptom is not reported.

What Mendq does: it notifies people, with the services and the two ways out: a customer managed key
that grants them, or SQS's own encryption. It changes nothing, because both change who can read the
messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from mendq.catalogue.examples import ROLE_ARN, queue_with_policy, replace_values
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import AWS_MANAGED_KEY_ALIAS, Facts, Need, is_aws_managed_key
from mendq.model.limits import Limits
from mendq.model.message_calls import list_actions_allowing
from mendq.model.plan import Escalate, Refusal
from mendq.model.policy import Statement, list_conditions, parse_statements
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import get_attributes_command

# Services that older policies let in without naming them: such a statement allows everybody, under
# the condition that the call comes from this topic, bucket or rule.
_SERVICES_NAMED_BY_SOURCE = frozenset({"events", "s3", "sns"})
# The spellings of the action with which a statement allows to send.
_SEND_ACTION_PATTERNS = frozenset(
    {"*", "sqs:*", *map(str.lower, list_actions_allowing(("SendMessage",)))}
)
# An open case of this symptom reports the same fault, with the callers that were refused.
EXPLAINING_SYMPTOMS = frozenset({"kms_denied"})


def detect(facts: Facts) -> DetectedFault | None:
    """Find services that the policy lets send to a queue encrypted with AWS's managed key.

    Services can never use this key. None if a `kms_denied` case is open, because it explains the
    fault, or if the policy cannot be read. None also if the key was set by its id: then SQS returns
    only the id, which does not show that AWS manages the key.
    """
    sending_services = _list_sending_services(facts)
    key = facts.kms_key
    if key is None or not is_aws_managed_key(key) or not sending_services:
        return None
    if EXPLAINING_SYMPTOMS & facts.open_symptoms:
        return None
    return DetectedFault(
        f"its policy lets {name_first_principals(sending_services)} send, and its messages are "
        f"encrypted with {AWS_MANAGED_KEY_ALIAS}, which services can never use: what they send "
        "does not arrive"
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: the policy of AWS's own key cannot be changed."""
    reason = (
        f"{facts.found or 'services cannot use its key'}. It needs a customer managed key whose "
        "policy grants kms:GenerateDataKey and kms:Decrypt to "
        f"{name_first_principals(_list_sending_services(facts))}, or SQS's own encryption "
        "(SqsManagedSseEnabled), which asks for no grant"
    )
    command = get_attributes_command(facts.queue_arn, "Policy", "KmsMasterKeyId")
    return Escalate("aws_managed_key", reason, command)


def _list_sending_services(facts: Facts) -> tuple[str, ...]:
    """Return the services that the queue's policy lets send, sorted.

    Empty if the policy cannot be read.
    """
    sending_services = set[str]()
    for statement in parse_statements(facts.attributes.get("Policy", "")) or ():
        lowercase_actions = {action.lower() for action in statement.actions}
        if (
            statement.allows
            and "Action" not in statement.negated_elements
            and lowercase_actions & _SEND_ACTION_PATTERNS
        ):
            sending_services.update(_list_services_in_statement(statement))
    return tuple(sorted(sending_services))


def _list_services_in_statement(statement: Statement) -> Iterator[str]:
    """Yield the services that an allowing statement names, as principals or by a source ARN."""
    if "Principal" in statement.negated_elements:
        return
    yield from statement.principals.get("Service", ())
    if not statement.is_for_everybody:
        return
    for _, condition_key, condition_values in list_conditions(statement):
        if condition_key != "aws:sourcearn":
            continue
        for source_arn in condition_values:
            # An ARN is arn:partition:service:...; the value may be any text.
            arn_parts = source_arn.split(":")
            if len(arn_parts) > 2 and arn_parts[2] in _SERVICES_NAMED_BY_SOURCE:
                yield f"{arn_parts[2]}.amazonaws.com"


def _make_example_queue(key: str = AWS_MANAGED_KEY_ALIAS, **statement: object) -> Facts:
    """Return a queue with this key, to which SNS may send.

    `statement` has other elements of its policy's statement.
    """
    topic_statement = {"Principal": {"Service": "sns.amazonaws.com"}, **statement}
    return replace_values(queue_with_policy(**topic_statement), KmsMasterKeyId=key)


_SNS_TOPIC_CONDITION = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:orders"}}

SERVICE_CANNOT_USE_KEY = NotifiedSymptom(
    name="service_cannot_use_key",
    sentence="A service may send to the queue and cannot use its key, so nothing it sends arrives.",
    plan_in_words="Page with the services and the key policy that would let them; "
    "never touch a key or a policy.",
    first_step="Let the service use the KMS key, in the key's policy.",
    aws_page=f"{SQS_GUIDE}/sqs-key-management.html",
    evidence_kinds=(EvidenceKind(SeverityClass.WILL_LOSE),),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    shown_attributes=("Policy", "KmsMasterKeyId"),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.OPEN_CASES}), is_of_configuration=True),
    examples=lambda: (
        QueueExample("a topic, by its principal", _make_example_queue(), "aws_managed_key"),
        QueueExample(
            "a topic, by its ARN",
            _make_example_queue(Principal="*", Condition=_SNS_TOPIC_CONDITION),
            "aws_managed_key",
        ),
        QueueNearMiss("a customer managed key", _make_example_queue("alias/orders")),
        QueueNearMiss(
            "a key given by its id", _make_example_queue("1234abcd-12ab-34cd-56ef-1234567890ab")
        ),
        QueueNearMiss("no key", _make_example_queue("")),
        QueueNearMiss(
            "a role of the account may use the key",
            _make_example_queue(Principal={"AWS": ROLE_ARN}),
        ),
        QueueNearMiss("a service is kept out", _make_example_queue(Effect="Deny")),
        QueueNearMiss(
            "a service that may only receive",
            _make_example_queue(Action=list_actions_allowing(("ReceiveMessage",))),
        ),
        QueueNearMiss(
            "its failed calls have opened a case",
            replace_values(_make_example_queue(), open_symptoms=EXPLAINING_SYMPTOMS),
        ),
    ),
)
