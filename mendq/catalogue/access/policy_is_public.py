"""The queue's policy lets anybody in; reported, because what a policy grants is for people."""

from __future__ import annotations

from mendq.catalogue.examples import ROLE, with_policy
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.policy import public_statements
from mendq.notifications.text import first_of, value

_MOST_NAMED = 3


def detect(facts: Facts) -> DetectedFault | None:
    """A grant to everybody that neither a condition nor a deny narrows; unreadable says nothing."""
    public = public_statements(facts.attributes.get("Policy", ""), facts.queue_arn)
    if not public:
        return None
    number, first = public[0]
    actions = ", ".join(first_of((value(each, 64) for each in first.actions), _MOST_NAMED))
    return DetectedFault(
        f"statement {number} of its policy lets anybody in the world call "
        f"{actions or 'all but a few actions'}, and no condition narrows who that is"
    )


def _under(operator: str, key: str, asked: str) -> Facts:
    """A queue that lets everybody send under one condition."""
    return with_policy(Condition={operator: {key: asked}})


POLICY_IS_PUBLIC = ReportedSymptom(
    name="policy_is_public",
    sentence="The queue's policy lets anybody in, and no condition narrows who.",
    plan_in_words="Report it; never write a policy.",
    aws_page=f"{SQS_GUIDE}/sqs-security-best-practices.html",
    detection=Detection(detect, of_configuration=True),
    examples=lambda: (
        QueueExample("Principal * without a condition", with_policy()),
        QueueExample("a pattern that fits all", _under("StringLike", "aws:PrincipalOrgID", "*")),
        QueueNearMiss("one role", with_policy(Principal={"AWS": ROLE})),
        QueueNearMiss("a service", with_policy(Principal={"Service": "sns.amazonaws.com"})),
        QueueNearMiss("one account", _under("StringEquals", "aws:SourceAccount", "123456789012")),
    ),
)
