"""Topics as boto3 sees them: keys that roles need."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import policy
from tests.local_account.lambdas.functions import new_function
from tests.local_account.queues import eventually, new_queue
from tests.local_account.roles import allow


@pytest.fixture
def encrypted(account: LocalAccount) -> tuple[str, str]:
    """(topic, key), both new."""
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    sns = account.client("sns")
    topic = sns.create_topic(Name=f"test-{uuid.uuid4()}", Attributes={"KmsMasterKeyId": key})
    return topic["TopicArn"], key


@pytest.mark.account
@pytest.mark.parametrize("granted", [[], ["kms:GenerateDataKey"], ["kms:Decrypt"]])
def test_a_role_without_the_key_publishes_nothing(
    account: LocalAccount, encrypted: tuple[str, str], granted: list[str]
) -> None:
    topic, key = encrypted
    grants = [allow(granted, key)] if granted else []
    publisher = new_function(account, allow("sns:Publish", topic), *grants)
    _, error, payload = publisher.invoke({"publish": topic})
    assert (error, "(KMSAccessDenied)" in payload["errorMessage"]) == ("Unhandled", True)
    assert key in payload["errorMessage"]


@pytest.mark.account
def test_a_role_with_the_key_reaches_the_subscribers(
    account: LocalAccount, encrypted: tuple[str, str]
) -> None:
    topic, key = encrypted
    queue = new_queue(account)
    sender: dict[str, Any] = allow("sqs:SendMessage", queue.arn)
    queue.set(Policy=policy({**sender, "Principal": {"Service": "sns.amazonaws.com"}}))
    account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    needed = ["kms:GenerateDataKey*", "kms:Decrypt"]
    publisher = new_function(account, allow("sns:Publish", topic), allow(needed, key))
    _, error, _ = publisher.invoke({"publish": topic})
    assert error is None
    eventually(lambda: queue.count() == 1)
