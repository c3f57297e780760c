"""A service may send to the queue, and can never use the key that encrypts its messages."""

from __future__ import annotations

from collections.abc import Iterator

from mendq.catalogue.examples import ROLE, vary, with_policy
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.evidence import actions_allowing, name_first_few
from mendq.model.facts import AWS_MANAGED_ALIAS, Facts, Need, is_aws_managed
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.policy import Statement, conditions_of, statements_of
from mendq.notifications.commands import get_attributes

# The older way to let one in: everybody, as long as it comes from this topic, bucket or rule.
_BY_SOURCE = frozenset({"events", "s3", "sns"})
_SENDING = frozenset({"*", "sqs:*", *map(str.lower, actions_allowing(("SendMessage",)))})
# A case of it is about the same key, and knows who was refused.
SAID_BY = frozenset({"kms_denied"})


def detect(facts: Facts) -> DetectedFault | None:
    """None where a failed call has said it already, and where the policy cannot be read.

    SQS answers with the key as it was set; one that was given by its id is not known to be AWS's.
    """
    senders, key = _services_that_send(facts), facts.kms_key
    if key is None or not is_aws_managed(key) or not senders or SAID_BY & facts.open_symptoms:
        return None
    return DetectedFault(
        f"its policy lets {name_first_few(senders)} send, and its messages are encrypted with "
        f"{AWS_MANAGED_ALIAS}, which services can never use: what they send does not arrive"
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: a key's policy is no attribute of a queue, and AWS's own cannot be changed."""
    reason = (
        f"{facts.found or 'services cannot use its key'}. It needs a customer managed key whose "
        "policy grants kms:GenerateDataKey and kms:Decrypt to "
        f"{name_first_few(_services_that_send(facts))}, or SQS's own encryption "
        "(SqsManagedSseEnabled), which asks for no grant"
    )
    command = get_attributes(facts.queue_arn, "Policy", "KmsMasterKeyId")
    return Escalate("aws_managed_key", reason, command)


def _services_that_send(facts: Facts) -> tuple[str, ...]:
    found = set[str]()
    for statement in statements_of(facts.attributes.get("Policy", "")) or ():
        acts = {action.lower() for action in statement.actions}
        if statement.allows and "Action" not in statement.excepting and acts & _SENDING:
            found.update(_services_in(statement))
    return tuple(sorted(found))


def _services_in(statement: Statement) -> Iterator[str]:
    if "Principal" in statement.excepting:
        return
    yield from statement.principals.get("Service", ())
    if not statement.is_for_everybody:
        return
    for _, key, values in conditions_of(statement):
        if key == "aws:sourcearn":
            kinds = ((*value.split(":"), "", "", "")[2] for value in values)
            yield from (f"{kind}.amazonaws.com" for kind in kinds if kind in _BY_SOURCE)


def _queue(key: str = AWS_MANAGED_ALIAS, **statement: object) -> Facts:
    """A queue with a key, to which a topic may send; `statement` over that of its policy."""
    topic = {"Principal": {"Service": "sns.amazonaws.com"}, **statement}
    return vary(with_policy(**topic), KmsMasterKeyId=key)


_TOPIC = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:orders"}}

SERVICE_CANNOT_USE_KEY = NotifiedSymptom(
    name="service_cannot_use_key",
    sentence="A service may send to the queue and cannot use its key, so nothing it sends arrives.",
    plan_in_words="Page with the services and the key policy that would let them; "
    "never touch a key or a policy.",
    aws_page=f"{SQS_GUIDE}/sqs-key-management.html",
    plan=plan,
    gives_way_to=SAID_BY,
    shown_attributes=("Policy", "KmsMasterKeyId"),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.OPEN_CASES}), of_configuration=True),
    examples=lambda: (
        QueueExample("a topic, by its principal", _queue(), "aws_managed_key"),
        QueueExample(
            "a topic, by its ARN", _queue(Principal="*", Condition=_TOPIC), "aws_managed_key"
        ),
        QueueNearMiss("a customer managed key", _queue("alias/orders")),
        QueueNearMiss("a key given by its id", _queue("1234abcd-12ab-34cd-56ef-1234567890ab")),
        QueueNearMiss("no key", _queue("")),
        QueueNearMiss("a role of the account may use the key", _queue(Principal={"AWS": ROLE})),
        QueueNearMiss("a service is kept out", _queue(Effect="Deny")),
        QueueNearMiss(
            "a service that may only receive", _queue(Action=actions_allowing(("ReceiveMessage",)))
        ),
        QueueNearMiss("its failed calls have opened a case", vary(_queue(), open_symptoms=SAID_BY)),
    ),
)
