from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from functions.aws.report_bucket import ReportBucket
from functions.aws.send_verdict import send_once
from tests.functions.aws.conftest import Account


def send(account: Account, topic_arn: str) -> bool:
    bucket = ReportBucket(account.clients.s3, "cases")
    return send_once(
        account.clients, bucket, topic_arn=topic_arn, week="2026-W46", message="29 incidents"
    )


def test_a_topic_that_is_gone_leaves_the_week_unsent(account: Account) -> None:
    with pytest.raises(ClientError):
        send(account, "arn:aws:sns:us-east-1:123456789012:gone")
    topic = account.clients.sns.create_topic(Name="verdict")["TopicArn"]
    assert send(account, topic)


def test_the_same_week_is_sent_once(account: Account) -> None:
    topic = account.clients.sns.create_topic(Name="verdict")["TopicArn"]
    assert [send(account, topic) for _ in range(3)] == [True, False, False]
