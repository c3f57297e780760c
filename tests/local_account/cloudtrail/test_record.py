"""The shape of a record, held against the sample in SQS's developer guide."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from local_account.cloudtrail.calls import Answer, Call
from local_account.cloudtrail.record import HIDDEN, record_of

ACCOUNT = "000000000000"
ROOT = {"type": "Root", "accountId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:root"}
AT = datetime(2026, 11, 21, 5, 4, 3, 999_000, tzinfo=UTC)
URL = f"http://127.0.0.1:4566/{ACCOUNT}/orders.fifo"
OK = Answer("request-1", None, None, None, {})
# The sample's members; tlsDetails is missing on purpose, there being no TLS.
SAMPLE = {
    "eventVersion",
    "userIdentity",
    "eventTime",
    "eventSource",
    "eventName",
    "awsRegion",
    "sourceIPAddress",
    "userAgent",
    "requestParameters",
    "responseElements",
    "requestID",
    "eventID",
    "readOnly",
    "resources",
    "eventType",
    "managementEvent",
    "recipientAccountId",
    "eventCategory",
}
FAILED = Answer(
    "request-2",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "The specified queue does not exist.",
    {},
)


def _call(action: str, **parameters: Any) -> Call:
    return Call(action, {"QueueUrl": URL, **parameters}, "test", "us-east-1", "aws-cli", "10.0.0.1")


def _record(call: Call, answer: Answer = OK) -> dict[str, Any]:
    return record_of(call, answer, ROOT, AT)


def test_a_success_has_the_members_of_the_sample_and_no_others() -> None:
    assert _record(_call("SendMessage", MessageBody="secret")).keys() == SAMPLE


def test_a_failure_adds_its_code_and_message() -> None:
    record = _record(_call("DeleteMessage"), FAILED)
    assert record.keys() == SAMPLE | {"errorCode", "errorMessage"}
    assert record["errorMessage"] == "The specified queue does not exist."
    assert record["responseElements"] is None


def test_what_a_message_says_stays_hidden() -> None:
    send = _call(
        "SendMessage",
        MessageBody="secret",
        MessageAttributes={"k": {"StringValue": "secret"}},
        MessageGroupId="g1",
    )
    assert _record(send)["requestParameters"] == {
        "queueUrl": f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/orders.fifo",
        "messageBody": HIDDEN,
        "messageGroupId": "g1",
    }
    batch = _call("SendMessageBatch", Entries=[{"Id": "1", "MessageBody": "secret"}])
    assert "secret" not in str(_record(batch))
    assert "handle-1" not in str(_record(_call("DeleteMessage", ReceiptHandle="handle-1")))


def test_a_denied_call_shows_no_parameters_but_the_queue() -> None:
    denied = Answer("r", "AccessDenied", "AccessDeniedException", "not authorized", {})
    record = _record(_call("DeleteMessage"), denied)
    assert record["requestParameters"] is None
    assert record["resources"][0]["ARN"] == f"arn:aws:sqs:us-east-1:{ACCOUNT}:orders.fifo"


@pytest.mark.parametrize(
    ("action", "category", "read_only"),
    [
        ("SendMessage", "Data", False),
        ("ChangeMessageVisibilityBatch", "Data", False),
        ("GetQueueAttributes", "Data", True),
        ("ReceiveMessage", "Data", True),
        ("SetQueueAttributes", "Management", False),
        ("ListMessageMoveTasks", "Management", True),
    ],
)
def test_category_and_read_only(action: str, category: str, read_only: bool) -> None:
    record = _record(_call(action))
    assert (record["eventCategory"], record["readOnly"]) == (category, read_only)
    assert record["managementEvent"] is (category == "Management")


def test_answers_of_writing_calls_are_shown_and_of_reading_ones_not() -> None:
    answer = Answer("r", None, None, None, {"MD5OfMessageBody": "abc", "MessageId": "m"})
    sent = _record(_call("SendMessage", MessageBody="x"), answer)
    assert sent["responseElements"] == {"mD5OfMessageBody": "abc", "messageId": "m"}
    assert _record(_call("GetQueueUrl"), answer)["responseElements"] is None


def test_times_ids_and_long_texts() -> None:
    long = Answer("r", "InvalidParameterValue", "InvalidParameterValueException", "x" * 3000, {})
    one, two = (_record(_call("DeleteMessage"), long) for _ in range(2))
    assert one["eventTime"] == "2026-11-21T05:04:03Z"
    assert len(one["errorMessage"]) == 1024
    assert re.fullmatch(r"[0-9a-f-]{36}", one["eventID"])
    assert one["eventID"] != two["eventID"]
    assert one["requestID"] == "r"


def test_the_queues_owner_gets_the_record_of_another_accounts_call() -> None:
    stranger = {"type": "AWSAccount", "accountId": "111111111111", "principalId": "AIDA"}
    record = record_of(_call("SendMessage", MessageBody="x"), OK, stranger, AT)
    assert record["recipientAccountId"] == ACCOUNT
    assert record["resources"][0]["accountId"] == ACCOUNT
    assert record["sharedEventID"] != record["eventID"]
    theirs = Call("CreateQueue", {"QueueName": "q"}, "k", "us-east-1", "aws-cli", "10.0.0.1")
    own = record_of(theirs, OK, stranger, AT)
    assert own["recipientAccountId"] == "111111111111"
    assert "sharedEventID" not in own


def test_listing_names_no_queue() -> None:
    call = Call("ListQueues", {}, "test", "us-east-1", "aws-cli", "10.0.0.1")
    assert _record(call)["resources"][0]["ARN"] == f"arn:aws:sqs:us-east-1:{ACCOUNT}:*"
