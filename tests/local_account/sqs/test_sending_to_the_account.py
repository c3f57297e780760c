"""Messages that are too long or lack an id: what boto3 gets, and what CloudTrail writes."""

from __future__ import annotations

import json

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

pytestmark = pytest.mark.account
TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def test_a_message_that_is_too_long_is_refused_and_recorded(account: LocalAccount) -> None:
    queue, files = new_queue(account, MaximumMessageSize="1024"), TrailFiles(account)
    assert error_of(lambda: queue.send("x" * 1025)) == ("InvalidParameterValue", TOO_LONG)
    assert queue.count() == 0
    _recorded(files, queue, "SendMessage", TOO_LONG, times=1)


def test_a_missing_id_fails_the_call(account: LocalAccount) -> None:
    queue, files = new_queue(account, fifo=True), TrailFiles(account)
    sqs = queue.sqs
    one = {"QueueUrl": queue.url, "MessageBody": "x", "MessageGroupId": "g"}
    assert error_of(lambda: sqs.send_message(**one)) == ("InvalidParameterValue", NO_ID)
    assert queue.count() == 0
    _recorded(files, queue, "SendMessage", NO_ID, times=1)
    queue.set(ContentBasedDeduplication="true")
    sqs.send_message(**one)
    assert queue.count() == 1


def _recorded(files: TrailFiles, queue: Queue, event_name: str, message: str, times: int) -> None:
    eventually(lambda: len(files.records(queue, event_name)) == times)
    for record in files.records(queue, event_name):
        assert (record["errorCode"], record["errorMessage"]) == ("InvalidParameterValue", message)
        assert record["requestParameters"]["queueUrl"].endswith(queue.arn.rpartition(":")[2])
        assert "xxx" not in json.dumps(record)
