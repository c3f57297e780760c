"""The queue's policy does not refuse calls without TLS; reported, because no policy is made up."""

from __future__ import annotations

from mendq.catalogue.examples import ROLE, queue, with_policy
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.evidence import actions_allowing
from mendq.model.facts import Facts
from mendq.model.policy import Statement, conditions_of, statements_of

_EVERYTHING = frozenset({"*", "sqs:*"})
_WITHOUT_TLS = ("aws:securetransport", frozenset({"false"}))


def detect(facts: Facts) -> DetectedFault | None:
    """A policy that cannot be read may refuse them: nothing is said of it."""
    statements = statements_of(facts.attributes.get("Policy", ""))
    if statements is None or any(_refuses_without_tls(each, facts) for each in statements):
        return None
    return DetectedFault(
        "no statement of its policy denies calls without TLS (aws:SecureTransport false)"
    )


def _refuses_without_tls(statement: Statement, facts: Facts) -> bool:
    """Everybody, in everything, on this queue, on that one condition."""
    return (
        not statement.allows
        and statement.is_for_everybody
        and not statement.excepting
        and not _EVERYTHING.isdisjoint(action.lower() for action in statement.actions)
        and not {"*", facts.queue_arn}.isdisjoint(statement.resources)
        and conditions_of(statement)
        in ([("bool", *_WITHOUT_TLS)], [("boolifexists", *_WITHOUT_TLS)])
    )


_BY_TLS = {"Bool": {"aws:SecureTransport": "false"}}
_BY_ADDRESS = {"IpAddress": {"aws:SourceIp": "10.0.0.7"}}


def _queue(**statement: object) -> Facts:
    deny = {"Effect": "Deny", "Action": "sqs:*", "Condition": _BY_TLS}
    return with_policy(**{**deny, **statement})


TLS_NOT_ENFORCED = ReportedSymptom(
    name="tls_not_enforced",
    sentence="The queue's policy does not refuse calls without TLS.",
    plan_in_words="Report it; never write a policy.",
    aws_page=f"{SQS_GUIDE}/sqs-security-best-practices.html",
    detection=Detection(detect, of_configuration=True),
    examples=lambda: (
        QueueExample("no policy at all", queue()),
        QueueExample("it refuses sending alone", _queue(Action=actions_allowing(("SendMessage",)))),
        QueueExample("it refuses one role alone", _queue(Principal={"AWS": ROLE})),
        QueueExample("it refuses only from one address", _queue(Condition=_BY_TLS | _BY_ADDRESS)),
        QueueNearMiss("as AWS writes it", _queue()),
        QueueNearMiss(
            "of whatever there is", _queue(Action="*", Resource="*", Principal={"AWS": "*"})
        ),
        QueueNearMiss("a policy that cannot be read", queue(Policy='{"Statement":')),
    ),
)
