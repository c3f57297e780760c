"""AWS/SQS as boto3 sees it: counted as SQS counts, per queue, at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.sqs import counting as metric
from mendq.aws.cloudwatch import build_query
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account
VISIBLE = "ApproximateNumberOfMessagesVisible"
NOT_VISIBLE = "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
ALL = (*metric.COUNTER_METRICS, VISIBLE, NOT_VISIBLE, DELAYED, metric.OLDEST_AGE_METRIC)


def _series(
    account: LocalAccount,
    queue: Queue,
    *names: str,
    stat: str = "Sum",
    period: int = 3600,
    start: datetime | None = None,
    ahead: timedelta = timedelta(0),
) -> dict[str, list[float]]:
    now = datetime.now(UTC)
    of_queue = (metric.SQS_NAMESPACE, "QueueName", queue.url.rpartition("/")[2])
    queries = [build_query(name.lower(), of_queue, name, stat, period) for name in names]
    answer = account.client("cloudwatch").get_metric_data(
        StartTime=start or now - timedelta(hours=2),
        EndTime=now + ahead + timedelta(minutes=1),
        MetricDataQueries=queries,
    )
    values = {
        metric_data_result["Id"]: metric_data_result["Values"]
        for metric_data_result in answer["MetricDataResults"]
    }
    return {name: values[name.lower()] for name in names}


def _sums(account: LocalAccount, queue: Queue, period: int = 3600) -> dict[str, float]:
    """Sum each counter over the queue's whole life."""
    found = _series(account, queue, *metric.COUNTER_METRICS, period=period)
    return {name: sum(values) for name, values in found.items()}


def _counts(sent: int = 0, received: int = 0, deleted: int = 0, empty: int = 0) -> dict[str, int]:
    return {
        metric.SENT_METRIC: sent,
        metric.RECEIVED_METRIC: received,
        metric.DELETED_METRIC: deleted,
        metric.EMPTY_RECEIVES_METRIC: empty,
    }


def test_queue_metrics_count_each_batch_entry_and_each_repeated_delete(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    entries = [{"Id": str(n), "MessageBody": "hello"} for n in range(3)]
    queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    queue.send()
    received: list[Any] = []
    while len(received) < 4:
        received += queue.receive_some()
    handles = [message["ReceiptHandle"] for message in received]
    queue.delete(handles[0])
    queue.delete(handles[0])  # a duplicate counts as well
    doomed = [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(handles[1:3])]
    queue.sqs.delete_message_batch(
        QueueUrl=queue.url, Entries=[*doomed, {"Id": "bad", "ReceiptHandle": "no handle"}]
    )
    assert "Messages" not in queue.sqs.receive_message(QueueUrl=queue.url)
    for period in (60, 3600):
        found = _sums(account, queue, period)
        assert found == _counts(sent=4, received=4, deleted=4, empty=1)


def test_every_metric_of_a_queue_without_traffic_is_0(account: LocalAccount) -> None:
    queue = new_queue(account)
    assert _series(account, queue, *ALL, stat="Maximum") == {name: [0] for name in ALL}


def test_message_that_sqs_moves_to_the_dlq_is_not_counted_as_sent_there(
    account: LocalAccount,
) -> None:
    dead = new_queue(account)
    redrive = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}
    queue = new_queue(account, RedrivePolicy=json.dumps(redrive))
    queue.send()
    queue.receive(seconds=0)
    queue.sqs.receive_message(QueueUrl=queue.url)
    assert dead.count() == 1
    assert _sums(account, dead) == _counts()
    assert _series(account, dead, VISIBLE, stat="Maximum")[VISIBLE] == [1]
    assert _sums(account, queue) == _counts(sent=1, received=1, empty=1)


def test_queue_depth_metrics_show_the_current_visible_in_flight_and_delayed_counts(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    fifo = new_queue(account, fifo=True)
    for _ in range(3):
        queue.send()
        fifo.send()  # each of a group of its own
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody="later", DelaySeconds=900)
    queue.receive(), fifo.receive(), fifo.receive()
    depths = (VISIBLE, NOT_VISIBLE, DELAYED, metric.GROUPS_IN_FLIGHT_METRIC)
    newest_by_queue = ((queue, [[2], [1], [1], []]), (fifo, [[1], [2], [0], [2]]))
    for measured_queue, newest in newest_by_queue:
        found = _series(account, measured_queue, *depths, stat="Maximum", period=60)
        assert [values[-1:] for values in found.values()] == newest


AHEAD = timedelta(minutes=90)


def test_metrics_of_a_time_in_the_future_are_those_of_a_queue_to_which_nothing_happens(
    account: LocalAccount,
) -> None:
    """The follow-up can be given a later time. Then SQS would have reported the time until then."""
    queue = new_queue(account)
    for _ in range(3):
        queue.send()
    queue.delete(queue.receive())
    shown = (*metric.COUNTER_METRICS, VISIBLE, metric.OLDEST_AGE_METRIC)
    since = datetime.now(UTC) + timedelta(minutes=30)
    later = _series(account, queue, *shown, stat="Maximum", period=60, start=since, ahead=AHEAD)
    assert {name: set(later[name]) for name in metric.COUNTER_METRICS} == {
        name: {0.0} for name in metric.COUNTER_METRICS
    }
    assert set(later[VISIBLE]) == {2.0}
    minutes = (AHEAD - timedelta(minutes=30)) // timedelta(minutes=1)
    assert {len(values) for values in later.values()} <= {minutes - 1, minutes, minutes + 1}
    ages = later[metric.OLDEST_AGE_METRIC]
    assert ages[0] >= 28 * 60
    assert [after - before for before, after in pairwise(ages)] == [60.0] * (len(ages) - 1)
    now = _series(account, queue, VISIBLE, metric.SENT_METRIC, period=60)
    assert sum(now[metric.SENT_METRIC]) == 3
    assert len(now[VISIBLE]) <= 2, "a caller with the right clock sees no later minutes"


def test_metrics_of_a_time_in_the_future_leave_out_a_deleted_queue(account: LocalAccount) -> None:
    queue = new_queue(account)
    assert _series(account, queue, VISIBLE, stat="Maximum")[VISIBLE] == [0]
    queue.sqs.delete_queue(QueueUrl=queue.url)
    since = datetime.now(UTC) + timedelta(minutes=30)
    assert _series(account, queue, VISIBLE, start=since, ahead=AHEAD) == {VISIBLE: []}
