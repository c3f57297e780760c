"""Test the processing times that consumers publish, one metric per queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from typing import Any, cast

import pytest

from local_account.cloudwatch import parse_embedded_metrics
from mendq.consumer import MOST_VALUES_PER_LINE, ProcessingTimes, VisibilityHeartbeat
from mendq.model.metrics import METRICS_BY_KIND
from tests.consumer.fake_sqs import FakeClock, FakeSqs, make_message

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def make_processing_times(clock: FakeClock, sink: Callable[[str], object]) -> ProcessingTimes:
    return ProcessingTimes(URL, sink=sink, every_seconds=60, clock=clock)


def test_processing_times_are_published_as_one_line_a_minute_of_at_most_100_values(
    clock: FakeClock,
) -> None:
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    for n in range(5_000):
        times.add(n / 100)
    assert lines == [], "a minute is not over"
    clock.now += 60
    times.add(0)
    (line,) = lines
    seconds = json.loads(line)["ProcessingSeconds"]
    assert len(seconds) == 100 == MOST_VALUES_PER_LINE


def test_published_processing_times_are_a_sample_of_the_minute_and_not_its_first_hundred(
    clock: FakeClock,
) -> None:
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    for n in range(5_000):
        times.add(n / 100)
    times.publish()
    seconds = json.loads(lines[0])["ProcessingSeconds"]
    assert set(seconds) <= {n / 100 for n in range(5_000)}
    assert max(seconds) > 1, "every value of the minute is equally likely"


def test_processing_times_publish_nothing_if_none_was_added_since_the_last_line(
    clock: FakeClock,
) -> None:
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    times.add(1.0)
    times.publish()
    times.publish()
    assert len(lines) == 1


def test_processing_times_are_published_as_the_metric_that_a_scan_reads(clock: FakeClock) -> None:
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    for seconds in (0.25, 80.0):
        times.add(seconds)
    times.publish()
    ((namespace, metric, dimensions, at, unit, _, values, *_),) = parse_embedded_metrics(lines[0])
    assert (metric, "p99", namespace, 3600) == METRICS_BY_KIND["processing"]["processing"]
    assert dimensions == {"QueueName": "orders.fifo"}, "one series a queue"
    assert (at, unit, values) == (clock.now, "Seconds", [0.25, 80.0])


@pytest.mark.parametrize("odd", [nan, inf, -inf, 10**400, None, "soon"])
def test_processing_times_leave_out_values_that_are_no_finite_number(
    clock: FakeClock, odd: Any
) -> None:
    """CloudWatch drops a whole line for one NaN, and the consumer's work must not fail for it."""
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    times.add(odd)
    times.publish()
    assert lines == [], "nothing was counted"
    times.add(odd)
    times.add(2.5)
    times.publish()
    assert json.loads(lines[0])["ProcessingSeconds"] == [2.5]


def test_processing_times_ignore_an_error_of_the_log_that_they_are_written_to(
    clock: FakeClock,
) -> None:
    def full(_line: str) -> None:
        raise OSError("no space left")

    times = make_processing_times(clock, full)
    clock.now += 60
    times.add(1.0)
    times.publish()


def test_heartbeat_publishes_the_time_from_receive_to_delete_of_deleted_messages_only(
    clock: FakeClock,
) -> None:
    """Released messages, which may return at once, and lost messages do not count."""
    lines: list[str] = []
    times = make_processing_times(clock, lines.append)
    sqs = FakeSqs({"handle-lost": "ReceiptHandleIsInvalid", "handle-c": "InternalError"})
    held = VisibilityHeartbeat(
        cast("Any", sqs), URL, seconds=60, clock=clock, processing_times=times
    )
    held.add(*map(make_message, ("a", "b", "c", "lost")), received_at=clock())
    clock.now += 9
    held.release("b")
    held.delete("a")
    clock.now += 11
    held.delete("c", "lost")
    held.add(make_message("d"), received_at=clock.now - 2.5)
    assert held.delete("d") == {"d"}
    times.publish()
    assert json.loads(lines[0])["ProcessingSeconds"] == [9, 2.5]
    assert "handle" not in lines[0], "nothing of a message"
