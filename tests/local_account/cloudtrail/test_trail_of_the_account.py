"""From a call to its record: in the trail's bucket, on the bus, or in neither."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import Listener, TrailFiles

pytestmark = pytest.mark.account

READ_ONLY_STATE = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"


def _pattern(queue: Queue, **detail: Any) -> dict[str, Any]:
    return {"source": ["aws.sqs"], "detail": {"resources": {"ARN": [queue.arn]}, **detail}}


@pytest.fixture(scope="module")
def files(account: LocalAccount) -> TrailFiles:
    return TrailFiles(account)


def test_a_failed_call_reaches_file_and_bus_with_the_id_of_its_answer(
    account: LocalAccount, files: TrailFiles
) -> None:
    queue = new_queue(account)
    listener = Listener(account, _pattern(queue, errorCode=[{"exists": True}]))
    called = time.monotonic()
    error_of(lambda: queue.delete("nonsense"))
    (event,) = listener.events(at_least=1)
    assert time.monotonic() - called < 5
    eventually(lambda: files.records(queue, "DeleteMessage"), seconds=5)
    (record,) = files.records(queue, "DeleteMessage")
    assert event["detail"] == record
    assert event["detail-type"] == "AWS API Call via CloudTrail"
    assert record["errorCode"] == "ReceiptHandleIsInvalid"
    assert record["userIdentity"]["type"] == "Root"


def test_a_success_is_recorded_too_and_answers_and_records_agree(
    account: LocalAccount, files: TrailFiles
) -> None:
    queue = new_queue(account)
    sent = queue.sqs.send_message(QueueUrl=queue.url, MessageBody="secret words")
    eventually(lambda: files.records(queue, "SendMessage"))
    (record,) = files.records(queue, "SendMessage")
    assert record["requestID"] == sent["ResponseMetadata"]["RequestId"]
    assert record["responseElements"]["messageId"] == sent["MessageId"]
    assert "secret words" not in json.dumps(record)
    assert "errorCode" not in record


def test_an_iam_user_and_a_role_are_named(account: LocalAccount, files: TrailFiles) -> None:
    queue, iam = new_queue(account), account.client("iam")
    iam.create_user(UserName="ann")
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    ann = account.client(
        "sqs",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(
        RoleName="worker",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
    )["Role"]
    session = account.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="one")
    worker = account.client(
        "sqs",
        aws_access_key_id=session["Credentials"]["AccessKeyId"],
        aws_secret_access_key=session["Credentials"]["SecretAccessKey"],
        aws_session_token=session["Credentials"]["SessionToken"],
    )
    for client in (ann, worker):
        denied = error_of(partial(client.purge_queue, QueueUrl=queue.url))
        assert denied[0].startswith("AccessDenied")
    eventually(lambda: len(files.records(queue, "PurgeQueue")) == 2)
    by_user, by_role = (each["userIdentity"] for each in files.records(queue, "PurgeQueue"))
    assert (by_user["type"], by_user["userName"]) == ("IAMUser", "ann")
    assert by_user["arn"] == "arn:aws:iam::000000000000:user/ann"
    assert "sessionContext" not in by_user
    assert by_role["arn"] == "arn:aws:sts::000000000000:assumed-role/worker/one"
    context = by_role["sessionContext"]
    assert context["sessionIssuer"]["arn"] == role["Arn"]
    assert context["attributes"]["creationDate"].endswith("Z")


def test_an_unsigned_call_is_nobodys(account: LocalAccount, files: TrailFiles) -> None:
    queue = new_queue(account)
    stranger = account.client("sqs", aws_access_key_id="AKIAUNKNOWN", aws_secret_access_key="x")
    error_of(lambda: stranger.delete_message(QueueUrl=queue.url, ReceiptHandle="x"))
    queue.send()
    eventually(lambda: files.records(queue, "SendMessage"))
    assert files.records(queue, "DeleteMessage") == []


def test_reading_management_events_reach_only_rules_that_ask_for_them(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    pattern = {"source": ["aws.sqs"], "detail": {"eventName": ["ListMessageMoveTasks", "TagQueue"]}}
    plain, everything = Listener(account, pattern), Listener(account, pattern, READ_ONLY_STATE)
    trail = account.client("cloudtrail")
    with _logging(trail, [{"Field": "eventCategory", "Equals": ["Management"]}]):
        queue.sqs.list_message_move_tasks(SourceArn=queue.arn)
        queue.sqs.tag_queue(QueueUrl=queue.url, Tags={"a": "b"})
        assert len(everything.events(at_least=2)) == 2
        (event,) = plain.events(at_least=1)
        assert event["detail"]["eventName"] == "TagQueue"


class _logging:  # noqa: N801  reads like a verb
    """Another trail beside the deployed one, for a while."""

    def __init__(self, cloudtrail: Any, fields: list[dict[str, Any]]) -> None:
        self._cloudtrail = cloudtrail
        self._fields = fields

    def __enter__(self) -> None:
        self._cloudtrail.create_trail(Name="second", S3BucketName="nowhere")
        self._cloudtrail.put_event_selectors(
            TrailName="second", AdvancedEventSelectors=[{"FieldSelectors": self._fields}]
        )
        self._cloudtrail.start_logging(Name="second")

    def __exit__(self, *_: object) -> None:
        self._cloudtrail.delete_trail(Name="second")


def test_what_the_trail_does_not_log_reaches_neither_file_nor_bus(
    account: LocalAccount, files: TrailFiles
) -> None:
    """A rule that matches everything sees nothing of a trail that is switched off."""
    queue, trail = new_queue(account), account.client("cloudtrail")
    listener = Listener(account, _pattern(queue))
    trail.stop_logging(Name="mendq")
    try:
        error_of(lambda: queue.delete("unseen"))
    finally:
        trail.start_logging(Name="mendq")
    error_of(lambda: queue.delete("seen"))
    names = [each["detail"]["eventName"] for each in listener.events(at_least=1)]
    assert names == ["DeleteMessage"]
    eventually(lambda: files.records(queue, "DeleteMessage"))
    assert len(files.records(queue, "DeleteMessage")) == 1
