"""DLQs in the account: approved, made and attached under the deployed role."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import Redrive, RedriveAllow
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
SYMPTOM = "dlq_missing"
PROPOSE = {"mendq": "propose"}
PUT_BACK_MINUTES = 66


def _invoke(account: LocalAccount, function: str, event: dict[str, Any]) -> dict[str, Any]:
    response = account.client("lambda").invoke(
        FunctionName=account.outputs[f"{function}Function"], Payload=json.dumps(event).encode()
    )
    answered: dict[str, Any] = json.loads(response["Payload"].read())
    assert "FunctionError" not in response, answered
    return answered


def _case_about(account: LocalAccount, queue: Queue) -> dict[str, Any]:
    """The one that heal opens about what a scan found."""
    found = {"found": [{"queue_arn": queue.arn, "symptom": SYMPTOM}]}
    _invoke(account, "Heal", found)
    s3, bucket = account.client("s3"), account.outputs["CaseBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="cases/").get("Contents", [])
    bodies = (s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in listed)
    (case,) = [each for each in map(json.loads, bodies) if each["queue_arn"] == queue.arn]
    return dict(case)


def _say(account: LocalAccount, case: dict[str, Any]) -> dict[str, Any]:
    request = {"case_id": case["case_id"], "decision": "approve", "actor": "a test"}
    return _invoke(account, "Approve", request)


def test_a_queue_whose_messages_come_back_gets_one_and_gives_it_up_again(
    account: LocalAccount,
) -> None:
    queue = new_queue(account, tags=PROPOSE, VisibilityTimeout="1")
    for _ in range(2):  # the first whole minute is an empty queue's
        account.put_back(queue.arn, minutes=1)
    queue.send()
    for _ in range(8):
        queue.change(queue.receive(), 0)
    account.put_back(queue.arn, minutes=PUT_BACK_MINUTES)
    case = _case_about(account, queue)
    assert case["to"] == "proposed"
    assert _say(account, case)["state"] == "applied"
    dead = f"{queue.arn}-dlq"
    assert json.loads(queue.attributes("RedrivePolicy")["RedrivePolicy"]) == json.loads(
        Redrive(dead, 5).text
    )
    sqs = account.client("sqs")
    url = sqs.get_queue_url(QueueName=dead.rpartition(":")[2])["QueueUrl"]
    made = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert made["MessageRetentionPeriod"] == "1209600"
    allowed = RedriveAllow("byQueue", (queue.arn,))
    assert json.loads(made["RedriveAllowPolicy"]) == json.loads(allowed.text)
    assert not sqs.list_queue_tags(QueueUrl=url).get("Tags")
    undone = _invoke(
        account, "Rollback", {"case_id": case["case_id"], "actor": "a test", "dry_run": False}
    )
    outcomes = {each["attribute"]: each["outcome"] for each in undone["attributes"]}
    assert outcomes == {"DeadLetterQueue": "printed", "RedrivePolicy": "undone"}
    assert "RedrivePolicy" not in queue.attributes()
    assert sqs.get_queue_url(QueueName=dead.rpartition(":")[2])["QueueUrl"] == url


def test_a_name_that_was_deleted_a_moment_ago_waits_approved(account: LocalAccount) -> None:
    """SQS takes no such name for 60 seconds; the case is taken up again after that."""
    sqs, name = account.client("sqs"), f"any-name-{uuid.uuid4()}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    dead = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    queue = new_queue(account, tags=PROPOSE, RedrivePolicy=Redrive(dead["QueueArn"], 7).text)
    before = queue.attributes("RedrivePolicy", "LastModifiedTimestamp")
    sqs.delete_queue(QueueUrl=url)
    case = _case_about(account, queue)
    assert case["steps"] == [
        {"attribute": "DeadLetterQueue", "before": "", "after": dead["QueueArn"]}
    ]
    answered = _say(account, case)
    assert (answered["state"], answered["code"]) == ("approved", "deleted_recently")
    assert queue.attributes("RedrivePolicy", "LastModifiedTimestamp") == before
