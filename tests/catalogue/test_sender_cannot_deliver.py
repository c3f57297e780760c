"""Which statements let a service send."""

from __future__ import annotations

import json

import pytest

from mendq.catalogue.examples import STANDARD_ARN, queue
from mendq.catalogue.service_cannot_use_key import detect, plan
from mendq.model.facts import Facts
from mendq.model.limits import Limits

TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
SNS = {"Service": "sns.amazonaws.com"}


def encrypted(key: str = "alias/aws/sqs", **statement: object) -> Facts:
    allow = {"Effect": "Allow", "Principal": SNS, "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Statement": [{**allow, **statement}]})
    return queue(queue_arn=STANDARD_ARN, KmsMasterKeyId=key, Policy=policy)


@pytest.mark.parametrize(
    "facts",
    [
        encrypted(),
        encrypted(key="arn:aws:kms:us-east-1:123456789012:alias/aws/sqs"),
        encrypted(Action=["SQS:Sendmessage", "sqs:GetQueueUrl"]),
        encrypted(Action="sqs:*", Condition={"ArnLike": {"aws:SourceArn": TOPIC}}),
        encrypted(Principal={"AWS": "*"}, Condition={"ArnLike": {"AWS:SourceArn": [TOPIC]}}),
    ],
)
def test_a_service_that_may_send(facts: Facts) -> None:
    found = detect(facts)
    assert found is not None
    assert "sns.amazonaws.com" in found.because


@pytest.mark.parametrize(
    "facts",
    [
        encrypted(key="1234abcd-12ab-34cd-56ef-1234567890ab"),
        encrypted(key="alias/not-aws/sqs-key"),
        encrypted(Effect="Deny"),
        encrypted(Action="sqs:ReceiveMessage"),
        encrypted(Principal="*"),
        encrypted(Principal="*", Condition={"ArnLike": {"aws:SourceArn": "x"}}),
        encrypted(Principal="*", Condition={"ArnLike": {"aws:PrincipalArn": TOPIC}}),
    ],
)
def test_nobody_who_cannot_use_the_key(facts: Facts) -> None:
    assert detect(facts) is None


def test_the_page_says_both_remedies() -> None:
    reason = plan(encrypted(), Limits()).reason
    assert "kms:GenerateDataKey and kms:Decrypt to sns.amazonaws.com" in reason
    assert "SqsManagedSseEnabled" in reason
