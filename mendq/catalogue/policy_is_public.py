"""The queue's policy lets anybody in; reported, because what a policy grants is for people."""

from __future__ import annotations

from mendq.catalogue.examples import ROLE, STANDARD_ARN, policy, standard
from mendq.catalogue.symptom import SQS_GUIDE, Detected, Detection, Found, NotFound, Reported
from mendq.model.facts import Facts
from mendq.model.policy import public_statements
from mendq.notifications.text import first_of, value

_MOST_NAMED = 3


def detect(facts: Facts) -> Found | None:
    """A grant to everybody that neither a condition nor a deny narrows; unreadable says nothing."""
    public = public_statements(facts.attributes.get("Policy", ""), facts.queue_arn)
    if not public:
        return None
    number, first = public[0]
    actions = ", ".join(first_of((value(each, 64) for each in first.actions), _MOST_NAMED))
    return Found(
        f"statement {number} of its policy lets anybody in the world call "
        f"{actions or 'all but a few actions'}, and no condition narrows who that is"
    )


def _under(operator: str, key: str, asked: str) -> Facts:
    """A queue that lets everybody send under one condition."""
    return standard(Policy=policy(Condition={operator: {key: asked}}))


POLICY_IS_PUBLIC = Reported(
    name="policy_is_public",
    sentence="The queue's policy lets anybody in, and no condition narrows who.",
    plan_in_words="Report it; never write a policy.",
    aws_page=f"{SQS_GUIDE}/sqs-security-best-practices.html",
    detection=Detection(detect, of_configuration=True),
    examples=lambda: (
        Detected("Principal * without a condition", standard(Policy=policy())),
        Detected("a pattern that fits all", _under("StringLike", "aws:PrincipalOrgID", "*")),
        Detected("anybody's topic", _under("ArnLike", "aws:SourceArn", "arn:aws:sns:*:*:orders")),
        Detected("a key may be missing", _under("StringEqualsIfExists", "aws:SourceVpc", "vpc-0")),
        NotFound("one role", standard(Policy=policy(Principal={"AWS": ROLE}))),
        NotFound("a service", standard(Policy=policy(Principal={"Service": "sns.amazonaws.com"}))),
        NotFound("a bucket", _under("ArnLike", "aws:SourceArn", "arn:aws:s3:*:*:orders")),
        NotFound("one account", _under("StringEquals", "aws:SourceAccount", "123456789012")),
        NotFound("one organization", _under("StringEquals", "aws:PrincipalOrgID", "o-a1b2c3d4e5")),
        NotFound("another queue's", standard(Policy=policy(Resource=f"{STANDARD_ARN}-dlq"))),
        NotFound("a policy that cannot be read", standard(Policy='{"Statement":')),
    ),
)
