"""A service may send to the queue, and can never use the key that its messages are encrypted with.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.evidence import granted_by, named
from mendq.model.facts import AWS_MANAGED_ALIAS, Facts, Need, is_aws_managed
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.policy import Statement, statements_of
from mendq.notifications.commands import get_attributes

# The older way to let one in: everybody, as long as it comes from this topic, bucket or rule.
_BY_SOURCE = {
    "sns": "sns.amazonaws.com",
    "s3": "s3.amazonaws.com",
    "events": "events.amazonaws.com",
}
_MAY_SEND = granted_by(("SendMessage",))
_SENDING = frozenset({"*", "sqs:*", *(each.lower() for each in _MAY_SEND)})
_NEEDS = frozenset({Need.QUEUE, Need.OPEN_CASES})
# A case of it is about the same key, and knows who was refused.
SAID_BY = frozenset({"kms_denied"})


def detect(facts: Facts) -> Found | None:
    """None where a failed call has said it already, and where the policy cannot be read.

    SQS answers with the key as it was set; one that was given by its id is not known to be AWS's.
    """
    senders = _services_that_send(facts.attributes.get("Policy", ""))
    key = facts.kms_key
    if key is None or not is_aws_managed(key) or not senders or SAID_BY & facts.open_symptoms:
        return None
    return Found(
        f"its policy lets {named(senders)} send, and its messages are encrypted with "
        f"{AWS_MANAGED_ALIAS}, which services can never use: what they send does not arrive"
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: a key's policy is no attribute of a queue, and AWS's own cannot be changed."""
    senders = named(_services_that_send(facts.attributes.get("Policy", "")))
    reason = (
        f"{facts.found or 'services cannot use its key'}. It needs a customer managed key whose "
        f"policy grants kms:GenerateDataKey and kms:Decrypt to {senders}, or SQS's own encryption "
        "(SqsManagedSseEnabled), which asks for no grant"
    )
    look = get_attributes(facts.queue_arn, "Policy", "KmsMasterKeyId")
    return Escalate("aws_managed_key", reason, next_command=look)


def _services_that_send(policy: str) -> tuple[str, ...]:
    found = {
        service
        for statement in statements_of(policy) or ()
        if statement.allows and _lets_send(statement)
        for service in _services_in(statement)
    }
    return tuple(sorted(found))


def _lets_send(statement: Statement) -> bool:
    acts = {each.lower() for each in statement.actions}
    return "Action" not in statement.excepting and bool(acts & _SENDING)


def _services_in(statement: Statement) -> Iterator[str]:
    if "Principal" in statement.excepting:
        return
    yield from statement.principals.get("Service", ())
    if not statement.is_for_everybody:
        return
    for asked in statement.conditions.values():
        for key, values in asked.items():
            if key.lower() == "aws:sourcearn":
                kinds = (each.split(":")[2:3] for each in values)
                yield from (
                    _BY_SOURCE[kind] for (kind,) in filter(None, kinds) if kind in _BY_SOURCE
                )


def _policy(**statement: object) -> str:
    allow = {"Effect": "Allow", "Action": _MAY_SEND, "Resource": examples.STANDARD_ARN}
    return json.dumps({"Version": "2012-10-17", "Statement": [{**allow, **statement}]})


def _queue(policy: str, key: str = AWS_MANAGED_ALIAS) -> Facts:
    return examples.queue(queue_arn=examples.STANDARD_ARN, Policy=policy, KmsMasterKeyId=key)


_SNS = _policy(Principal={"Service": "sns.amazonaws.com"})
_TOPIC = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:orders"}}

SERVICE_CANNOT_USE_KEY = Symptom(
    name="service_cannot_use_key",
    sentence="A service may send to the queue and cannot use its key, so nothing it sends arrives.",
    plan_in_words="Page with the services and the key policy that would let them; "
    "never touch a key or a policy.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-key-management.html",
    needs=_NEEDS,
    plan=plan,
    gives_way_to=SAID_BY,
    shows=("Policy", "KmsMasterKeyId"),
    detection=Detection(detect, needs=_NEEDS, of_configuration=True),
    detected=(
        Detected("a topic, by its principal", _queue(_SNS), code="aws_managed_key"),
        Detected(
            "AWS's key by the ARN of its alias",
            _queue(_SNS, f"arn:aws:kms:us-east-1:123456789012:{AWS_MANAGED_ALIAS}"),
            code="aws_managed_key",
        ),
        Detected(
            "a topic, by its ARN",
            _queue(_policy(Principal="*", Condition=_TOPIC)),
            code="aws_managed_key",
        ),
    ),
    near_misses=(
        NearMiss("a customer managed key", NOT_FOUND, facts=_queue(_SNS, "alias/orders")),
        NearMiss(
            "a key that was given by its id may be anybody's",
            NOT_FOUND,
            facts=_queue(_SNS, "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ),
        NearMiss("no key", NOT_FOUND, facts=_queue(_SNS, "")),
        NearMiss(
            "a role of the account may use the key",
            NOT_FOUND,
            facts=_queue(_policy(Principal={"AWS": "arn:aws:iam::123456789012:role/shop"})),
        ),
        NearMiss(
            "a service is kept out",
            NOT_FOUND,
            facts=_queue(_policy(Effect="Deny", Principal={"Service": "sns.amazonaws.com"})),
        ),
        NearMiss(
            "a service that may only receive",
            NOT_FOUND,
            facts=_queue(
                _policy(
                    Principal={"Service": "pipes.amazonaws.com"},
                    Action=granted_by(("ReceiveMessage",)),
                )
            ),
        ),
        NearMiss(
            "its failed calls have opened a case",
            NOT_FOUND,
            facts=replace(_queue(_SNS), open_symptoms=SAID_BY),
        ),
    ),
)
