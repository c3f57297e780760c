"""Metrics of queues have no gap, however late a busy machine measures a minute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ministack.core.responses import request_scope
from ministack.services import sqs

from local_account.sqs import counting
from local_account.sqs.counting import (
    COUNTER_METRICS,
    MINUTE_SECONDS,
    RECEIVED_METRIC,
    QueueCounter,
)

ACCOUNT = "111122223333"
REGION = "eu-west-1"
VISIBLE = "ApproximateNumberOfMessagesVisible"
START_OF_MINUTE = 1_796_000_400.0


class StoppedClock:
    """A clock that stands still until a test sets it."""

    def __init__(self) -> None:
        self.now = START_OF_MINUTE

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    stopped = StoppedClock()
    monkeypatch.setattr(counting, "time", stopped)
    return stopped


@pytest.fixture
def queue() -> Iterator[dict[str, Any]]:
    """A queue of MiniStack in this process."""
    with request_scope(ACCOUNT, REGION):
        url = sqs._HANDLERS["CreateQueue"]({"QueueName": "orders"}, "")["QueueUrl"]
        yield sqs._get_q(url)
        sqs._HANDLERS["DeleteQueue"]({"QueueUrl": url}, url)


def list_minutes(counter: QueueCounter, metric: str) -> list[float]:
    points = counter.collect_points(ACCOUNT, REGION)["orders", metric]
    return [point["Timestamp"] for point in points]


def test_minute_with_a_receive_that_was_measured_two_minutes_late_has_every_metric(
    clock: StoppedClock, queue: dict[str, Any]
) -> None:
    counter = QueueCounter()
    counter.count_move(queue)
    clock.now += 2 * MINUTE_SECONDS
    counter.measure()
    expected_minutes = [START_OF_MINUTE, START_OF_MINUTE + 2 * MINUTE_SECONDS]
    for metric in (*COUNTER_METRICS, VISIBLE):
        assert list_minutes(counter, metric) == expected_minutes, metric
    points = counter.collect_points(ACCOUNT, REGION)["orders", RECEIVED_METRIC]
    assert [point["Value"] for point in points] == [1.0, 0.0]
