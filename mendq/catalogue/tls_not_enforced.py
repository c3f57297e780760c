"""The queue's policy does not refuse calls without TLS; reported, because no policy is made up.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
"""

from __future__ import annotations

import json

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.evidence import granted_by
from mendq.model.facts import Facts, Need
from mendq.model.policy import Statement, statements_of

_EVERYTHING = frozenset({"*", "sqs:*"})
_OPERATORS = frozenset({"bool", "boolifexists"})


def detect(facts: Facts) -> Found | None:
    """A policy that cannot be read may refuse them: nothing is said of it."""
    statements = statements_of(facts.attributes.get("Policy", ""))
    if statements is None or any(_refuses_without_tls(each, facts) for each in statements):
        return None
    return Found("no statement of its policy denies calls without TLS (aws:SecureTransport false)")


def _refuses_without_tls(statement: Statement, facts: Facts) -> bool:
    """Everybody, in everything, on this queue, on that one condition."""
    return (
        not statement.allows
        and statement.is_for_everybody
        and not statement.excepting
        and not _EVERYTHING.isdisjoint(each.lower() for each in statement.actions)
        and not {"*", facts.queue_arn}.isdisjoint(statement.resources)
        and _asks_for_no_tls(statement)
    )


def _asks_for_no_tls(statement: Statement) -> bool:
    asked = [
        (operator.lower(), key.lower(), {each.lower() for each in values})
        for operator, keys in statement.conditions.items()
        for key, values in keys.items()
    ]
    return len(asked) == 1 and (
        asked[0][0] in _OPERATORS and asked[0][1:] == ("aws:securetransport", {"false"})
    )


def _queue(**statement: object) -> Facts:
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": examples.STANDARD_ARN,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**deny, **statement}]})
    return examples.queue(queue_arn=examples.STANDARD_ARN, Policy=policy)


TLS_NOT_ENFORCED = Symptom(
    name="tls_not_enforced",
    sentence="The queue's policy does not refuse calls without TLS.",
    plan_in_words="Report it; never write a policy.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-security-best-practices.html",
    detection=Detection(detect, needs=frozenset({Need.QUEUE}), of_configuration=True),
    detected=(
        Detected("no policy at all", examples.queue()),
        Detected("it refuses sending alone", _queue(Action=granted_by(("SendMessage",)))),
        Detected(
            "it refuses one role alone",
            _queue(Principal={"AWS": "arn:aws:iam::123456789012:role/shop"}),
        ),
        Detected(
            "it refuses only from one address",
            _queue(
                Condition={
                    "Bool": {"aws:SecureTransport": "false"},
                    "IpAddress": {"aws:SourceIp": "10.0.0.7"},
                }
            ),
        ),
    ),
    near_misses=(
        NearMiss("as AWS writes it", NOT_FOUND, facts=_queue()),
        NearMiss(
            "for whatever resource and action",
            NOT_FOUND,
            facts=_queue(Action="*", Resource="*", Principal={"AWS": "*"}),
        ),
        NearMiss(
            "a policy that cannot be read",
            NOT_FOUND,
            facts=examples.queue(Policy='{"Statement":'),
        ),
    ),
)
