"""Messages that are too long or lack an id: what boto3 gets, and what CloudTrail writes."""

from __future__ import annotations

import json

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles
from tests.real_records import SQS_ERRORS, sqs_errors

pytestmark = pytest.mark.account
TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def _entry(number: int, **more: str) -> dict[str, str]:
    return {"Id": str(number), "MessageBody": "x", **more}


def test_the_words_are_those_that_the_real_sqs_said() -> None:
    if not SQS_ERRORS.exists():
        pytest.skip("the recorded errors are not here")
    said = {(each["code"], each["message"]) for each in sqs_errors()}
    assert {("InvalidParameterValue", TOO_LONG), ("InvalidParameterValue", NO_ID)} <= said


def test_a_message_that_just_fits_is_taken(account: LocalAccount) -> None:
    queue = new_queue(account, MaximumMessageSize="1024")
    queue.send("x" * 1024)
    assert queue.count() == 1


def test_a_message_that_is_too_long_is_refused_and_recorded(account: LocalAccount) -> None:
    queue, files = new_queue(account, MaximumMessageSize="1024"), TrailFiles(account)
    assert error_of(lambda: queue.send("x" * 1025)) == ("InvalidParameterValue", TOO_LONG)
    attribute = {"a": {"DataType": "String", "StringValue": "y" * 20}}
    long = {"QueueUrl": queue.url, "MessageBody": "x" * 1000, "MessageAttributes": attribute}
    assert error_of(lambda: queue.sqs.send_message(**long)) == ("InvalidParameterValue", TOO_LONG)
    assert queue.count() == 0
    _recorded(files, queue, "SendMessage", TOO_LONG, times=2)


def test_an_entry_that_is_too_long_fails_alone(account: LocalAccount) -> None:
    queue = new_queue(account, MaximumMessageSize="1024")
    entries = [_entry(1), {**_entry(2), "MessageBody": "x" * 1025}]
    answer = queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [each["Id"] for each in answer["Successful"]] == ["1"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"]) == ("2", "InvalidParameterValue")
    assert failed["Message"] == TOO_LONG
    assert queue.count() == 1


def test_one_missing_id_fails_call_and_batch(account: LocalAccount) -> None:
    queue, files = new_queue(account, fifo=True), TrailFiles(account)
    sqs = queue.sqs
    one = {"QueueUrl": queue.url, "MessageBody": "x", "MessageGroupId": "g"}
    assert error_of(lambda: sqs.send_message(**one)) == ("InvalidParameterValue", NO_ID)
    entries = [
        _entry(1, MessageGroupId="g", MessageDeduplicationId="d"),
        _entry(2, MessageGroupId="g"),
    ]
    many = {"QueueUrl": queue.url, "Entries": entries}
    assert error_of(lambda: sqs.send_message_batch(**many)) == ("InvalidParameterValue", NO_ID)
    assert queue.count() == 0
    for event_name in ("SendMessage", "SendMessageBatch"):
        _recorded(files, queue, event_name, NO_ID, times=1)
    queue.set(ContentBasedDeduplication="true")
    sqs.send_message(**one)
    assert queue.count() == 1


def _recorded(files: TrailFiles, queue: Queue, event_name: str, message: str, times: int) -> None:
    eventually(lambda: len(files.records(queue, event_name)) == times)
    for record in files.records(queue, event_name):
        assert (record["errorCode"], record["errorMessage"]) == ("InvalidParameterValue", message)
        assert record["requestParameters"]["queueUrl"].endswith(queue.arn.rpartition(":")[2])
        assert "xxx" not in json.dumps(record)
