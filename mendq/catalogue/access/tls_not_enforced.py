"""Symptom `tls_not_enforced`: the queue's policy does not refuse calls without TLS.

The fault: AWS advises to deny every call for which `aws:SecureTransport` is false, so that no
client can send a message in plain text. This queue's policy has no such statement.

How it shows: in the queue's policy alone. A statement counts only if it denies every action on this
queue to everybody, under this one condition. Anything less leaves a way open.

What Mendq does: it reports the queue. It changes nothing, because Mendq never writes a statement of
its own, and a client without TLS may still be in use.
"""

from __future__ import annotations

from mendq.catalogue.access.reported_policy import AWS_SECURITY_PAGE, REPORT_ONLY_PLAN_IN_WORDS
from mendq.catalogue.examples import ROLE_ARN, queue, queue_with_policy
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.message_calls import list_actions_allowing
from mendq.model.policy import Statement, list_conditions, parse_statements
from mendq.model.severity_class import SeverityClass

_PATTERNS_OF_EVERY_ACTION = frozenset({"*", "sqs:*"})
_WITHOUT_TLS_CONDITION = ("aws:securetransport", frozenset({"false"}))


def detect(facts: Facts) -> DetectedFault | None:
    """Report the queue if no statement of its policy refuses calls without TLS.

    A policy that cannot be read may have such a statement, so the result is None then.
    """
    statements = parse_statements(facts.attributes.get("Policy", ""))
    if statements is None:
        return None
    if any(_refuses_calls_without_tls(statement, facts) for statement in statements):
        return None
    return DetectedFault(
        "no statement of its policy denies calls without TLS (aws:SecureTransport false)"
    )


def _refuses_calls_without_tls(statement: Statement, facts: Facts) -> bool:
    """Return True if the statement denies everybody every action on the queue without TLS."""
    return (
        not statement.allows
        and statement.is_for_everybody
        and not statement.negated_elements
        and not _PATTERNS_OF_EVERY_ACTION.isdisjoint(action.lower() for action in statement.actions)
        and not {"*", facts.queue_arn}.isdisjoint(statement.resources)
        and list_conditions(statement)
        in ([("bool", *_WITHOUT_TLS_CONDITION)], [("boolifexists", *_WITHOUT_TLS_CONDITION)])
    )


_WITHOUT_TLS_CONDITION_ELEMENT = {"Bool": {"aws:SecureTransport": "false"}}
_ONE_ADDRESS_CONDITION_ELEMENT = {"IpAddress": {"aws:SourceIp": "10.0.0.7"}}


def _make_example_queue(**other_statement_elements: object) -> Facts:
    """Return a queue that refuses calls without TLS, with other elements in the statement."""
    deny_statement = {
        "Effect": "Deny",
        "Action": "sqs:*",
        "Condition": _WITHOUT_TLS_CONDITION_ELEMENT,
    }
    return queue_with_policy(**{**deny_statement, **other_statement_elements})


TLS_NOT_ENFORCED = ReportedSymptom(
    name="tls_not_enforced",
    sentence="The queue's policy does not refuse calls without TLS.",
    plan_in_words=REPORT_ONLY_PLAN_IN_WORDS,
    first_step="Deny calls without TLS in the queue's policy.",
    aws_page=AWS_SECURITY_PAGE,
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(detect, is_of_configuration=True),
    examples=lambda: (
        QueueExample("no policy at all", queue()),
        QueueExample(
            "it refuses sending alone",
            _make_example_queue(Action=list_actions_allowing(("SendMessage",))),
        ),
        QueueExample("it refuses one role alone", _make_example_queue(Principal={"AWS": ROLE_ARN})),
        QueueExample(
            "it refuses only from one address",
            _make_example_queue(
                Condition=_WITHOUT_TLS_CONDITION_ELEMENT | _ONE_ADDRESS_CONDITION_ELEMENT
            ),
        ),
        QueueNearMiss("as AWS writes it", _make_example_queue()),
        QueueNearMiss(
            "of whatever there is",
            _make_example_queue(Action="*", Resource="*", Principal={"AWS": "*"}),
        ),
        QueueNearMiss("a policy that cannot be read", queue(Policy='{"Statement":')),
    ),
)
