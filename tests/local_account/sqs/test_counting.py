"""What is counted where boto3 cannot see it: pollers, and messages that moved."""

from __future__ import annotations

from typing import Any

import pytest
from ministack.services import sqs

from local_account.sqs import counting as module
from local_account.sqs import queue_metrics as metric
from local_account.sqs.counting import Counting, put_back_arrivals
from local_account.sqs.move_tasks import MoveTask, remember
from local_account.sqs.queue_metrics import QueueMetrics

ARN = "arn:aws:sqs:us-east-1:000000000000:"
NOON = 43_200.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def _queue(name: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"attributes": {"QueueArn": ARN + name}, "messages": list(messages)}


def _message(at: float) -> dict[str, Any]:
    return {"body": "hello", "sent_at": at, "visible_at": at, "receive_count": 0}


def _sum(metrics: QueueMetrics, name: str, queue: str) -> float:
    return sum(
        float(point["Value"])
        for each in metrics.series("000000000000", "us-east-1")
        if (each.metric, each.queue_arn) == (name, ARN + queue)
        for point in each.points
    )


def test_a_poller_that_finds_nothing_asks_once_in_twenty_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics, clock = QueueMetrics(), Clock()
    monkeypatch.setattr(sqs, "_get_q", lambda _url: _queue("orders"))
    found: list[Any] = []
    poll = Counting(metrics, clock)._counting_polls(lambda _url, _most: found)

    def poll_for(seconds: int) -> None:
        for _ in range(seconds):
            poll("url", 10)
            clock.now += 1

    poll_for(45)
    assert _sum(metrics, metric.EMPTY_RECEIVES, "orders") == 2
    found.append("message")
    poll_for(1)
    found.clear()
    poll_for(20)
    assert _sum(metrics, metric.EMPTY_RECEIVES, "orders") == 2
    assert _sum(metrics, metric.RECEIVED, "orders") == 1


def test_a_message_counts_as_sent_once_and_not_where_it_is_moved() -> None:
    metrics, clock = QueueMetrics(), Clock()
    counting = Counting(metrics, clock)
    message = _message(NOON)
    source, dead = _queue("orders", message), _queue("orders-dlq")
    for _ in range(2):
        counting._note_arrivals(source)
    dead["messages"].append({**message, "visible_at": NOON + 60})
    counting._note_arrivals(dead)
    assert _sum(metrics, metric.SENT, "orders") == 1
    assert _sum(metrics, metric.SENT, "orders-dlq") == 0


def test_in_a_dead_letter_queue_age_begins_with_the_move() -> None:
    clock = Clock()
    counting = Counting(QueueMetrics(), clock)
    message = _message(NOON)
    source = _queue("orders", message)
    counting._note_arrivals(source)
    clock.now += 90
    moved = {**message, "visible_at": NOON + 60}
    counting._note_arrivals(_queue("orders-dlq", moved))
    assert (message[module._SINCE], moved[module._SINCE]) == (NOON, NOON + 60)


def test_a_dead_letter_is_no_poison_where_it_lies_before_it_is_received_there() -> None:
    metrics, clock = QueueMetrics(), Clock()
    counting = Counting(metrics, clock)
    received = metric.POISON_AFTER_RECEIVES + 2
    died = {**_message(NOON), module._IN: ARN + "orders", "receive_count": received}
    dead = _queue("orders-dlq", died)
    counting._note_arrivals(dead)
    assert module._receives_here(died) == 0
    died["receive_count"] += 4
    counting._note_arrivals(dead)
    assert module._receives_here(died) == 4


def test_what_a_move_task_sends_anew_was_not_sent_and_is_not_in_the_future() -> None:
    metrics, clock = QueueMetrics(), Clock()
    counting = Counting(metrics, clock)
    delayed = {**_message(NOON), "visible_at": NOON + 900}
    module.note_moved(delayed, ARN + "orders-dlq")
    counting._note_arrivals(_queue("orders", delayed))
    assert _sum(metrics, metric.SENT, "orders") == 0
    assert delayed[module._SINCE] == NOON


def test_what_is_put_back_tells_so_itself() -> None:
    told = {"SentTimestamp": str(int(NOON * 1000)), "SenderId": "me"}
    letter = {**_message(NOON), "sys": told, "enqueued_at": NOON}
    queue = _queue("orders-dlq.fifo", letter, {"body": "never received"})
    task = MoveTask(ARN + "orders-dlq.fifo", None, 1, 1, NOON)
    remember(queue, task)
    put_back_arrivals(queue, 60)
    assert told["SentTimestamp"] == str(int((NOON - 60) * 1000))
    assert letter["sent_at"] == letter["enqueued_at"] == task.started_at == NOON - 60
