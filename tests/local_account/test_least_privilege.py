"""The role as synthesized is enough, and no action of it is one too many.

Permissions are enforced by the local account, not by AWS. The Lambda is called as its mapping calls
it, so that each missing action shows in a second and not after a batching window.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.infra.declared_actions import DECLARED

pytestmark = pytest.mark.account
ROLE = "mendq-heal-us-east-1"
EXPIRED = "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."

# What one mended queue with a Lambda consumer takes.
NEEDED = (
    "cloudwatch:GetMetricData",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "lambda:GetFunctionConfiguration",
    "lambda:ListEventSourceMappings",
    "s3:PutObject",
    "sqs:GetQueueAttributes",
    "sqs:ListQueueTags",
    "sqs:SetQueueAttributes",
)
# Recording comes after the write: the change stands, and its messages come again until it is told.
AFTER_THE_WRITE = {"dynamodb:DeleteItem", "dynamodb:PutItem", "s3:PutObject"}
# A refused write is a case for a person; what is owed to the bucket is filed by follow_up.
NOT_TO_COME_AGAIN = {"sqs:SetQueueAttributes", "s3:PutObject"}
# Needed by what this test does not do: pages, what a sweep found, and counting the managed queues,
# which takes more than three of them. tests/infra/test_roles.py sees each of these calls made.
ELSEWHERE = {
    "cloudtrail:LookupEvents",
    "dynamodb:Query",
    "sns:Publish",
    "sqs:ListDeadLetterSourceQueues",
    "sqs:ListMessageMoveTasks",
    "sqs:ListQueues",
    "tag:GetResources",
}


@pytest.fixture(scope="module")
def enforced() -> Iterator[LocalAccount]:
    """An account of its own: the tests take permissions away."""
    settings = {"limits": {"massSymptomShare": 1, "writesPerMinute": 100}}
    with LocalAccount(settings=settings) as running:
        yield running


def _policies(iam: Any) -> dict[str, dict[str, Any]]:
    names = iam.list_role_policies(RoleName=ROLE)["PolicyNames"]
    found = {}
    for name in names:
        document = iam.get_role_policy(RoleName=ROLE, PolicyName=name)["PolicyDocument"]
        found[name] = json.loads(document) if isinstance(document, str) else document
    return found


def _actions(statement: dict[str, Any]) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else list(actions)


@contextmanager
def _without(iam: Any, action: str) -> Iterator[None]:
    """The role with one action taken out of every Allow; put back afterwards."""
    before = _policies(iam)
    assert any(action in _actions(each) for one in before.values() for each in one["Statement"])
    for name, policy in before.items():
        statements = [
            {**each, "Action": [one for one in _actions(each) if one != action]}
            if each["Effect"] == "Allow"
            else each
            for each in policy["Statement"]
        ]
        kept = [each for each in statements if each["Action"]]
        document = json.dumps({**policy, "Statement": kept})
        iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=document)
    try:
        yield
    finally:
        for name, policy in before.items():
            iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=json.dumps(policy))


def _queue_with_consumer(account: LocalAccount) -> tuple[str, str]:
    """(URL, ARN) of a queue whose Lambda consumer needs more than its lease."""
    sqs, functions = account.client("sqs"), account.client("lambda")
    url = sqs.create_queue(
        QueueName=f"orders-{uuid.uuid4().hex[:8]}.fifo",
        Attributes={"FifoQueue": "true", "VisibilityTimeout": "900"},  # or Lambda refuses it
        tags={"mendq": "heal"},
    )["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    functions.create_event_source_mapping(
        EventSourceArn=arn, FunctionName=_heal_name(account), BatchSize=1
    )
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "30"})
    return url, arn


def _heal_name(account: LocalAccount) -> str:
    (name,) = (
        each["FunctionName"]
        for each in account.client("lambda").list_functions()["Functions"]
        if each["Role"].endswith(f":role/{ROLE}")
    )
    return str(name)


def _visibility(account: LocalAccount, url: str) -> str:
    answer = account.client("sqs").get_queue_attributes(
        QueueUrl=url, AttributeNames=["VisibilityTimeout"]
    )
    return str(answer["Attributes"]["VisibilityTimeout"])


def _late_deletes(queue_arn: str) -> dict[str, Any]:
    # A lease after the queue was changed, as far as heal can tell: earlier calls say nothing.
    at = datetime.now(UTC) + timedelta(seconds=60)
    record = {
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "sqs.amazonaws.com",
        "eventName": "DeleteMessage",
        "awsRegion": "us-east-1",
        "errorCode": "InvalidParameterValue",
        "errorMessage": EXPIRED,
        "recipientAccountId": "000000000000",
        "resources": [{"type": "AWS::SQS::Queue", "ARN": queue_arn}],
    }
    events = [{**record, "eventID": str(uuid.uuid4())} for _ in range(3)]
    return {
        "Records": [
            {"messageId": each["eventID"], "body": json.dumps({"detail": each})} for each in events
        ]
    }


def _heal(account: LocalAccount, queue_arn: str) -> list[Any]:
    """The messages that the Lambda reports as failed."""
    functions = account.client("lambda")
    answer = functions.invoke(
        FunctionName=_heal_name(account), Payload=json.dumps(_late_deletes(queue_arn))
    )
    assert "FunctionError" not in answer, answer["Payload"].read()
    failures: list[Any] = json.loads(answer["Payload"].read())["batchItemFailures"]
    return failures


def test_the_role_holds_what_is_tested_and_nothing_else(enforced: LocalAccount) -> None:
    allowed = {
        action
        for policy in _policies(enforced.client("iam")).values()
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow"
        for action in _actions(statement)
    }
    declared = {action for action, _ in DECLARED["heal"]}
    assert allowed == set(NEEDED) | ELSEWHERE | declared


@pytest.mark.parametrize("action", NEEDED)
def test_without_any_one_action_no_queue_is_mended_and_recorded(
    enforced: LocalAccount, action: str
) -> None:
    url, arn = _queue_with_consumer(enforced)
    with _without(enforced.client("iam"), action):
        assert len(_heal(enforced, arn)) == (0 if action in NOT_TO_COME_AGAIN else 3)
        assert (_visibility(enforced, url) == "30") is (action not in AFTER_THE_WRITE)


def test_with_all_of_them_a_queue_is_mended(enforced: LocalAccount) -> None:
    url, arn = _queue_with_consumer(enforced)
    assert _heal(enforced, arn) == []
    assert int(_visibility(enforced, url)) > 30


def test_a_queue_that_is_not_tagged_for_it_cannot_be_written(enforced: LocalAccount) -> None:
    """The second lock: even a Mendq gone wrong is refused by IAM."""
    sts, sqs = enforced.client("sts"), enforced.client("sqs")
    role = f"arn:aws:iam::000000000000:role/{ROLE}"
    given = sts.assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    as_mendq = enforced.client(
        "sqs",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    for tags in ({}, {"mendq": "observe"}, {"mendq": "off"}, {"owner": "heal"}):
        url = sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex[:8]}", tags=tags)["QueueUrl"]
        with pytest.raises(as_mendq.exceptions.ClientError, match="AccessDenied"):
            as_mendq.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "31"})
        assert _visibility(enforced, url) == "30"
