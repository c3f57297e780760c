"""What dies, and what a move task brings back: as boto3 sees the messages."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.sqs import queue_metrics as metric
from tests.local_account.dead_letters import Pipe, ended, new_pipe, received
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
TRACED = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}
ATTRIBUTES = {
    "type": {"DataType": "String", "StringValue": "order"},
    "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
}


def _peek(queue: Queue, *names: str) -> dict[str, Any]:
    """One message, which stays visible."""
    answer = queue.sqs.receive_message(
        QueueUrl=queue.url, VisibilityTimeout=0, MessageSystemAttributeNames=list(names)
    )
    message: dict[str, Any] = answer["Messages"][0]
    return message


def _start(dead: Queue, **more: Any) -> str:
    handle: str = dead.sqs.start_message_move_task(SourceArn=dead.arn, **more)["TaskHandle"]
    return handle


def test_a_dead_letter_says_where_it_died_and_when_it_was_sent(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    sent = time.time()
    pipe.die("poison")
    asked = _peek(pipe.dead, "DeadLetterQueueSourceArn")
    assert asked["Attributes"] == {"DeadLetterQueueSourceArn": pipe.source.arn}
    told = _peek(pipe.dead, "All")["Attributes"]
    assert told["DeadLetterQueueSourceArn"] == pipe.source.arn
    assert abs(int(told["SentTimestamp"]) / 1000 - sent) < 2
    assert "Attributes" not in _peek(pipe.dead)


def test_a_standard_letter_keeps_its_time_and_a_fifo_letter_gets_a_new_one(
    account: LocalAccount,
) -> None:
    for fifo in (False, True):
        pipe = new_pipe(account, fifo=fifo)
        pipe.source.send("poison")
        account.put_back(pipe.source.arn, minutes=90)
        died = time.time()
        pipe.die("another")
        letters = received(pipe.dead, 2)
        first = next(each for each in letters if each["Body"] == "poison")
        age_minutes = (died - int(first["Attributes"]["SentTimestamp"]) / 1000) / 60
        assert (age_minutes > 89) is not fifo
        if fifo:
            assert first["Attributes"]["MessageDeduplicationId"] == first["MessageId"]
            numbers = [each["Attributes"]["SequenceNumber"] for each in letters]
            assert len(set(numbers)) == 2


def test_what_a_task_moves_is_a_new_message_with_the_old_content(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("order 1", MessageAttributes=ATTRIBUTES, MessageSystemAttributes=TRACED)
    account.put_back(pipe.dead.arn, minutes=90)
    letter = _peek(pipe.dead, "All")
    assert int(letter["Attributes"]["ApproximateReceiveCount"]) > 1
    began = int(time.time() * 1000)
    _start(pipe.dead)
    (moved,) = received(pipe.source, 1)
    told = moved["Attributes"]
    assert moved["MessageId"] != letter["MessageId"]
    assert moved["MessageAttributes"] == ATTRIBUTES
    assert told["AWSTraceHeader"] == TRACE
    assert told["ApproximateReceiveCount"] == "1"
    assert int(told["SentTimestamp"]) >= began
    assert "DeadLetterQueueSourceArn" not in told


def test_a_batch_keeps_its_trace_headers_too(account: LocalAccount) -> None:
    queue = new_queue(account)
    entries = [
        {"Id": "a", "MessageBody": "traced", "MessageSystemAttributes": TRACED},
        {"Id": "b", "MessageBody": "untraced"},
    ]
    queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    found = {each["Body"]: each["Attributes"] for each in received(queue, 2)}
    assert found["traced"]["AWSTraceHeader"] == TRACE
    assert "AWSTraceHeader" not in found["untraced"]


def test_a_fifo_letter_keeps_its_group_and_none_is_taken_for_a_duplicate(
    account: LocalAccount,
) -> None:
    pipe = new_pipe(account, fifo=True)
    pipe.die("1", "2", "3", MessageGroupId="one")
    ids = {each["Body"]: each["MessageId"] for each in (_peek(pipe.dead, "All"),)}
    _start(pipe.dead)
    ended(pipe.dead, "COMPLETED")
    moved = received(pipe.source, 3)
    assert [each["Body"] for each in moved] == ["1", "2", "3"]
    assert {each["Attributes"]["MessageGroupId"] for each in moved} == {"one"}
    assert moved[0]["Attributes"]["MessageDeduplicationId"] == ids["1"]


def test_a_letter_that_does_not_fit_stays_where_it_is(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("x" * 2_000)
    pipe.source.set(MaximumMessageSize="1024")
    _start(pipe.dead)
    assert ended(pipe.dead, "FAILED")["FailureReason"] == "InvalidParameterValue"
    assert (pipe.dead.count(), pipe.source.count()) == (1, 0)


def test_a_delayed_queue_delays_what_comes_back(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("poison")
    pipe.source.set(DelaySeconds="900")
    _start(pipe.dead)
    ended(pipe.dead, "COMPLETED")
    assert pipe.source.count("ApproximateNumberOfMessagesDelayed") == 1


def test_what_a_task_moves_is_counted_nowhere(account: LocalAccount) -> None:
    pipe = new_pipe(account)
    pipe.die("1", "2")
    before = _counted(account, pipe)
    assert before["source NumberOfMessagesSent"] == 2
    _start(pipe.dead)
    ended(pipe.dead, "COMPLETED")
    assert pipe.source.count() == 2
    assert _counted(account, pipe) == before
    assert before["dead NumberOfMessagesReceived"] == before["dead NumberOfMessagesDeleted"] == 0


def _counted(account: LocalAccount, pipe: Pipe) -> dict[str, float]:
    """What CloudWatch has counted of both queues."""
    queries = {
        f"{role}_{name}": (f"{role} {name}", queue, name)
        for role, queue in (("source", pipe.source), ("dead", pipe.dead))
        for name in metric.COUNTED
    }
    now = datetime.now(UTC)
    answer = account.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        MetricDataQueries=[
            {
                "Id": asked.lower(),
                "MetricStat": {
                    "Metric": {
                        "Namespace": metric.NAMESPACE,
                        "MetricName": name,
                        "Dimensions": [
                            {"Name": "QueueName", "Value": queue.url.rpartition("/")[2]}
                        ],
                    },
                    "Period": 3600,
                    "Stat": "Sum",
                },
            }
            for asked, (_, queue, name) in queries.items()
        ],
    )
    values = {each["Id"]: sum(each["Values"]) for each in answer["MetricDataResults"]}
    return {label: values[asked.lower()] for asked, (label, *_) in queries.items()}
