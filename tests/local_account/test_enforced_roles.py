"""The local account enforces roles as synthesized: heal works with its own, not without an action.

That every role holds what its function calls and nothing else is proven in tests/infra/test_roles.
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
from tests.local_account.callers import invoked, session_of
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
ROLE = "mendq-heal-us-east-1"
EXPIRED = "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."


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
        EventSourceArn=queue.arn, FunctionName=account.outputs["HealFunction"], BatchSize=1
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
    again = invoked(account, "Heal", {"Records": records})["batchItemFailures"]
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
    names = iam.list_role_policies(RoleName=ROLE)["PolicyNames"]
    before = {
        name: iam.get_role_policy(RoleName=ROLE, PolicyName=name)["PolicyDocument"]
        for name in names
    }
    for name, document in before.items():
        fewer = []
        for each in document["Statement"]:
            actions = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
            left = [one for one in actions if one != action or each["Effect"] == "Deny"]
            fewer += [{**each, "Action": left}] if left else []
        _put(account, name, {**document, "Statement": fewer})
    try:
        yield
    finally:
        for name, document in before.items():
            _put(account, name, document)


def _put(account: LocalAccount, name: str, document: Any) -> None:
    text = json.dumps(document)
    account.client("iam").put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=text)


@pytest.mark.parametrize(
    ("action", "becomes"),
    [
        ("sqs:SetQueueAttributes", "escalated at 30"),
        ("lambda:ListEventSourceMappings", "no case at 30, again"),
        ("dynamodb:PutItem", "no case at 72, again"),
    ],
)
def test_without_any_one_action_it_does_not(
    account: LocalAccount, action: str, becomes: str
) -> None:
    queue, healed = (_queue_with_short_timeout(account) for _ in range(2))
    with _without(account, action):
        assert _hears(account, queue) == becomes
    assert _hears(account, healed) == "applied at 72"


def test_a_queue_that_is_not_tagged_for_it_cannot_be_written(account: LocalAccount) -> None:
    """The second lock: even a Mendq gone wrong is refused by IAM."""
    session = session_of(account, f"arn:aws:iam::000000000000:role/{ROLE}")
    as_mendq = account.client("sqs", **session)
    for tags in ({}, {"mendq": "observe"}, {"mendq": "off"}, {"owner": "heal"}):
        queue = new_queue(account, tags=tags)
        with pytest.raises(as_mendq.exceptions.ClientError, match="AccessDenied"):
            as_mendq.set_queue_attributes(
                QueueUrl=queue.url, Attributes={"VisibilityTimeout": "31"}
            )
        assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
