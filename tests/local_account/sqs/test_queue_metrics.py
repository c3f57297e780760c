"""What a queue's metrics say, without an account."""

from __future__ import annotations

from local_account.sqs import queue_metrics as metric
from local_account.sqs.queue_metrics import QueueMetrics, is_active, oldest_age_seconds

QUEUE = "arn:aws:sqs:us-east-1:000000000000:orders"
ELSEWHERE = "arn:aws:sqs:us-east-1:111111111111:orders"
NOON = 43_200.0


def _values(metrics: QueueMetrics, name: str) -> list[tuple[float, float]]:
    return [
        (point["Timestamp"], point["Value"])
        for each in metrics.series("000000000000", "us-east-1")
        if each.metric == name
        for point in each.points
    ]


def test_a_minute_is_one_point() -> None:
    metrics = QueueMetrics()
    for at in (NOON, NOON + 59.9, NOON + 60):
        metrics.count(QUEUE, metric.SENT, 2, at)
    assert _values(metrics, metric.SENT) == [(NOON, 4.0), (NOON + 60, 2.0)]


def test_a_look_counts_nothing_and_reports_zero() -> None:
    metrics = QueueMetrics()
    metrics.count(QUEUE, metric.SENT, 3, NOON)
    metrics.count(QUEUE, metric.SENT, 0, NOON + 1)
    metrics.count(QUEUE, metric.DELETED, 0, NOON + 1)
    assert _values(metrics, metric.SENT) == [(NOON, 3.0)]
    assert _values(metrics, metric.DELETED) == [(NOON, 0.0)]


def test_the_latest_measurement_of_a_minute_stays() -> None:
    metrics = QueueMetrics()
    for visible in (5, 2):
        metrics.measure(QUEUE, {metric.VISIBLE: visible}, NOON)
    assert _values(metrics, metric.VISIBLE) == [(NOON, 2.0)]


def test_another_accounts_queue_of_that_name_is_another_queue() -> None:
    metrics = QueueMetrics()
    metrics.count(ELSEWHERE, metric.SENT, 1, NOON)
    assert _values(metrics, metric.SENT) == []


def test_age_has_a_unit_of_its_own() -> None:
    metrics = QueueMetrics()
    metrics.measure(QUEUE, {metric.OLDEST_AGE: 7, metric.VISIBLE: 1}, NOON)
    units = {each.metric: each.points[0]["Unit"] for each in metrics.series("0" * 12, "us-east-1")}
    assert units == {metric.OLDEST_AGE: "Seconds", metric.VISIBLE: "Count"}


def test_a_queue_falls_silent_when_empty_for_six_hours() -> None:
    six_hours = 6 * 3600
    assert is_active(has_messages=False, accessed_at=NOON, now=NOON + six_hours - 1)
    assert not is_active(has_messages=False, accessed_at=NOON, now=NOON + six_hours)
    assert is_active(has_messages=True, accessed_at=NOON, now=NOON + six_hours)


def test_a_poison_message_does_not_age_a_standard_queue() -> None:
    arrivals = [(NOON, 4), (NOON + 30, 3)]
    assert oldest_age_seconds(arrivals, is_fifo=False, now=NOON + 100.9) == 70
    assert oldest_age_seconds(arrivals, is_fifo=True, now=NOON + 100.9) == 100


def test_an_empty_queue_has_no_age() -> None:
    assert oldest_age_seconds([], is_fifo=False, now=NOON) == 0
    assert oldest_age_seconds([(NOON, 4)], is_fifo=False, now=NOON) == 0
