"""The queue's policy lets anybody in; reported, because what a policy grants is for people."""

from __future__ import annotations

import json
from typing import Any

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
    others = f", as do {len(public) - 1} more" if len(public) > 1 else ""
    return Found(
        f"statement {number} of its policy lets anybody in the world call "
        f"{actions or 'all but a few actions'}{others}: no condition narrows who that is"
    )


def _under(operator: str, key: str, asked: Any, **more: Any) -> Facts:
    """A queue that lets everybody send under one condition."""
    return standard(Policy=policy(Condition={operator: {key: asked}}, **more))


def _beside(**denial: Any) -> Facts:
    """A queue that lets everybody send, and denies."""
    everything = {"Principal": "*", "Action": "sqs:*", "Resource": STANDARD_ARN}
    statements = json.loads(policy())["Statement"]
    denying = {"Effect": "Deny", **everything, **denial}
    return standard(Policy=json.dumps({"Statement": [*statements, denying]}))


_TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"

POLICY_IS_PUBLIC = Reported(
    name="policy_is_public",
    sentence="The queue's policy lets anybody in, and no condition narrows who.",
    plan_in_words="Report it; never write a policy.",
    aws_page=f"{SQS_GUIDE}/sqs-security-best-practices.html",
    detection=Detection(detect, of_configuration=True),
    examples=lambda: (
        Detected("Principal * without a condition", standard(Policy=policy())),
        Detected("and as AWS: *", standard(Policy=policy(Principal={"AWS": ["*"]}))),
        Detected("a pattern that fits all", _under("StringLike", "aws:PrincipalOrgID", "*")),
        Detected("anybody's topic", _under("ArnLike", "aws:SourceArn", "arn:aws:sns:*:*:orders")),
        Detected(
            "a key that may be missing",
            _under("StringEqualsIfExists", "aws:PrincipalOrgID", "o-a1b2c3d4e5"),
        ),
        Detected("all but one network", _under("NotIpAddress", "aws:SourceIp", "192.0.2.0/24")),
        Detected("TLS narrows nobody", _under("Bool", "aws:SecureTransport", "true")),
        Detected(
            "denied without TLS alone",
            _beside(Condition={"Bool": {"aws:SecureTransport": "false"}}),
        ),
        NotFound("one role", standard(Policy=policy(Principal={"AWS": ROLE}))),
        NotFound("a service", standard(Policy=policy(Principal={"Service": "sns.amazonaws.com"}))),
        NotFound("one topic", _under("ArnEquals", "aws:SourceArn", _TOPIC)),
        NotFound(
            "a bucket, as AWS writes it",
            _under("ArnLike", "aws:SourceArn", "arn:aws:s3:*:*:orders"),
        ),
        NotFound("its own account", _under("StringEquals", "aws:SourceAccount", "123456789012")),
        NotFound("one organization", _under("StringEquals", "aws:PrincipalOrgID", "o-a1b2c3d4e5")),
        NotFound("one VPC endpoint", _under("StringEquals", "aws:SourceVpce", "vpce-0abc")),
        NotFound(
            "outsiders are denied",
            _beside(Condition={"StringNotEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}}),
        ),
        NotFound("another queue's", standard(Policy=policy(Resource=f"{STANDARD_ARN}-dlq"))),
        NotFound("a policy that cannot be read", standard(Policy='{"Statement":')),
    ),
)
