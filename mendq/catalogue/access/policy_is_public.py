"""Symptom `policy_is_public`: the queue's policy lets anybody in the world use the queue.

The fault: a statement allows the principal `*`, and no condition says who that may be. Anybody can
then do what the statement allows, for example receive the queue's messages or send to it.

How it shows: in the queue's policy alone. A condition on a fixed account, organization, role,
network or source ARN narrows the statement. So does a statement that denies everything to everybody
else.

What Mendq does: it reports the statement. It changes nothing, because what a policy grants is for
people to decide: a queue may be public on purpose, and a stricter policy could lock callers out.
"""

from __future__ import annotations

from mendq.catalogue.access.reported_policy import AWS_SECURITY_PAGE, REPORT_ONLY_PLAN_IN_WORDS
from mendq.catalogue.examples import ROLE_ARN, queue_with_policy
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.policy import list_public_statements
from mendq.model.severity_class import SeverityClass
from mendq.notifications.text import format_value, limit_lines

# At most this many actions of the statement are named.
_MOST_LISTED_ACTIONS = 3


def detect(facts: Facts) -> DetectedFault | None:
    """Find a statement that allows everybody, and that neither a condition nor a deny narrows.

    A policy that cannot be read proves nothing, so the result is None then.
    """
    public_statements = list_public_statements(facts.attributes.get("Policy", ""), facts.queue_arn)
    if not public_statements:
        return None
    statement_number, statement = public_statements[0]
    escaped_actions = (format_value(action, 64) for action in statement.actions)
    actions_text = ", ".join(limit_lines(escaped_actions, _MOST_LISTED_ACTIONS))
    return DetectedFault(
        f"statement {statement_number} of its policy lets anybody in the world call "
        f"{actions_text or 'all but a few actions'}, and no condition narrows who that is"
    )


def _make_queue_with_condition(
    condition_operator: str, condition_key: str, required_value: str
) -> Facts:
    """Return a queue whose policy lets everybody send under one condition."""
    return queue_with_policy(Condition={condition_operator: {condition_key: required_value}})


POLICY_IS_PUBLIC = ReportedSymptom(
    name="policy_is_public",
    sentence="The queue's policy lets anybody in, and no condition narrows who.",
    plan_in_words=REPORT_ONLY_PLAN_IN_WORDS,
    first_step="Name the callers in the policy, or add a condition.",
    aws_page=AWS_SECURITY_PAGE,
    evidence_kinds=(EvidenceKind(SeverityClass.EXPOSED),),
    detection=Detection(detect, is_of_configuration=True),
    examples=lambda: (
        QueueExample("Principal * without a condition", queue_with_policy()),
        QueueExample(
            "a pattern that fits all",
            _make_queue_with_condition("StringLike", "aws:PrincipalOrgID", "*"),
        ),
        QueueNearMiss("one role", queue_with_policy(Principal={"AWS": ROLE_ARN})),
        QueueNearMiss("a service", queue_with_policy(Principal={"Service": "sns.amazonaws.com"})),
        QueueNearMiss(
            "one account",
            _make_queue_with_condition("StringEquals", "aws:SourceAccount", "123456789012"),
        ),
    ),
)
