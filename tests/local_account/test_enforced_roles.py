"""The local account enforces roles as synthesized: heal works with its own, not without an action.

That every role holds what its function calls and nothing else is proven in tests/infra/test_roles.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
ROLE = "mendq-heal-us-east-1"
EXPIRED = "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
FIXED, AGAIN = "applied at 72", "no case at 30, again"


@pytest.fixture(scope="module")
def own_account() -> Iterator[LocalAccount]:
    """One whose roles lose actions, and in which no schedule and no rule starts anything."""
    with LocalAccount(settings={"limits": {"massSymptomShare": 1}}) as running:
        scheduler, events = running.client("scheduler"), running.client("events")
        for schedule in scheduler.list_schedules()["Schedules"]:
            scheduler.delete_schedule(Name=schedule["Name"], GroupName=schedule["GroupName"])
        for rule in events.list_rules()["Rules"]:
            events.disable_rule(Name=rule["Name"])
        yield running


def _heal(account: LocalAccount) -> str:
    functions = account.client("lambda").list_functions()["Functions"]
    return next(str(each["FunctionName"]) for each in functions if each["Role"].endswith(ROLE))


def _queue_with_short_timeout(account: LocalAccount) -> Queue:
    """A FIFO queue whose Lambda consumer needs more than its visibility timeout."""
    sqs = account.client("sqs")
    url = sqs.create_queue(
        QueueName=f"orders-{uuid.uuid4().hex[:8]}.fifo",
        Attributes={"FifoQueue": "true", "VisibilityTimeout": "900"},  # or Lambda refuses it
        tags={"mendq": "heal"},
    )["QueueUrl"]
    queue = Queue(sqs, url, is_fifo=True)
    account.client("lambda").create_event_source_mapping(
        EventSourceArn=queue.arn, FunctionName=_heal(account), BatchSize=1
    )
    queue.set(VisibilityTimeout="30")
    return queue


def _hears(account: LocalAccount, queue: Queue) -> str:
    """What becomes of three failed calls, told to heal as its mapping would."""
    # After the queue was changed, as far as heal can tell: earlier calls say nothing.
    at = datetime.now(UTC) + timedelta(seconds=60)
    record = {
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "sqs.amazonaws.com",
        "awsRegion": "us-east-1",
        "recipientAccountId": "000000000000",
        "resources": [{"type": "AWS::SQS::Queue", "ARN": queue.arn}],
        "eventName": "DeleteMessage",
        "errorCode": "InvalidParameterValue",
        "errorMessage": EXPIRED,
    }
    calls = [{**record, "eventID": str(uuid.uuid4())} for _ in range(3)]
    records = [
        {"messageId": each["eventID"], "body": json.dumps({"detail": each})} for each in calls
    ]
    answer = account.client("lambda").invoke(
        FunctionName=_heal(account), Payload=json.dumps({"Records": records}).encode()
    )
    again = json.loads(answer["Payload"].read())["batchItemFailures"]
    items = account.client("dynamodb").scan(TableName=account.outputs["CaseTable"])["Items"]
    states = [
        each["state"]["S"] for each in items if "state" in each and queue.arn in json.dumps(each)
    ]
    visibility = queue.attributes("VisibilityTimeout")["VisibilityTimeout"]
    return f"{states[0] if states else 'no case'} at {visibility}{', again' if again else ''}"


@contextmanager
def _without(account: LocalAccount, action: str) -> Iterator[None]:
    """Heal's role with one action taken out of every Allow; put back afterwards."""
    iam = account.client("iam")
    before = {
        name: iam.get_role_policy(RoleName=ROLE, PolicyName=name)["PolicyDocument"]
        for name in iam.list_role_policies(RoleName=ROLE)["PolicyNames"]
    }
    assert action in json.dumps(before)
    _put(account, {name: _fewer(policy, action) for name, policy in before.items()})
    try:
        yield
    finally:
        _put(account, before)


def _put(account: LocalAccount, policies: Mapping[str, Any]) -> None:
    for name, policy in policies.items():
        text = policy if isinstance(policy, str) else json.dumps(policy)
        account.client("iam").put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=text)


def _fewer(policy: Any, action: str) -> dict[str, Any]:
    document = json.loads(policy) if isinstance(policy, str) else policy
    retained = []
    for each in document["Statement"]:
        actions = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        fewer = [one for one in actions if one != action or each["Effect"] == "Deny"]
        retained += [{**each, "Action": fewer}] if fewer else []
    return {**document, "Statement": retained}


def test_with_all_of_its_role_heal_fixes_a_queue(own_account: LocalAccount) -> None:
    assert _hears(own_account, _queue_with_short_timeout(own_account)) == FIXED


@pytest.mark.parametrize(
    ("action", "becomes"),
    [
        ("sqs:SetQueueAttributes", "escalated at 30"),
        ("sqs:GetQueueAttributes", AGAIN),
        ("lambda:ListEventSourceMappings", AGAIN),
        ("dynamodb:ConditionCheckItem", AGAIN),
        ("dynamodb:PutItem", "no case at 72, again"),
    ],
)
def test_without_any_one_action_it_does_not(
    own_account: LocalAccount, action: str, becomes: str
) -> None:
    queue = _queue_with_short_timeout(own_account)
    with _without(own_account, action):
        assert _hears(own_account, queue) == becomes


def test_a_queue_that_is_not_tagged_for_it_cannot_be_written(own_account: LocalAccount) -> None:
    """The second lock: even a Mendq gone wrong is refused by IAM."""
    role = f"arn:aws:iam::000000000000:role/{ROLE}"
    assumed = own_account.client("sts").assume_role(RoleArn=role, RoleSessionName="test")
    given = assumed["Credentials"]
    as_mendq = own_account.client(
        "sqs",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    for tags in ({}, {"mendq": "observe"}, {"mendq": "off"}, {"owner": "heal"}):
        queue = new_queue(own_account, tags=tags)
        with pytest.raises(as_mendq.exceptions.ClientError, match="AccessDenied"):
            as_mendq.set_queue_attributes(
                QueueUrl=queue.url, Attributes={"VisibilityTimeout": "31"}
            )
        assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
