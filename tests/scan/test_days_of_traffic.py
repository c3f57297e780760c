"""Test that the traffic of four days tells a consumer that stopped from one that reads rarely."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.model.limits import Limits
from tests.scan.scanner import Scanner

HOURS_OF_FOUR_DAYS = 96


@pytest.fixture
def hourly_names(scanner: Scanner) -> list[str]:
    """The metrics that GetMetricData was asked for by the hour."""
    names = list[str]()

    def note(params: Any, **_: Any) -> None:
        for query in params["MetricDataQueries"]:
            if query["MetricStat"]["Period"] == 3600:
                names.append(query["MetricStat"]["Metric"]["MetricName"])

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return names


def make_unread_queue(scanner: Scanner, hours_ago_read: Iterable[int], deleted: int = 5) -> str:
    """Make a queue on which messages wait for six hours, and which was read in these hours."""
    queue_arn = scanner.account.queue("orders", ReceiveMessageWaitTimeSeconds="20")
    scanner.account.later(hours=HOURS_OF_FOUR_DAYS)
    for hours in hours_ago_read:
        at = scanner.account.now - timedelta(hours=hours)
        scanner.put_metrics(queue_arn, at, received=5, deleted=deleted)
    for minutes in range(10, 361, 10):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue_arn, at, sent=5, received=0, deleted=0, visible=400 - minutes)
    return queue_arn


def test_consumer_that_read_in_each_hour_and_is_silent_for_six_hours_is_found(
    scanner: Scanner,
) -> None:
    make_unread_queue(scanner, range(7, HOURS_OF_FOUR_DAYS))
    done = scanner.run_due_scan((CONSUMER_STOPPED,))
    assert [finding.symptom for finding in done.findings] == ["consumer_stopped"]


@pytest.mark.parametrize(
    "hours_ago_read",
    [
        pytest.param((), id="archive that nobody reads"),
        pytest.param((20, 44, 68, 92), id="job that reads once a day"),
        pytest.param((8, 9, 20, 21, 33, 46), id="consumer that scales to zero"),
    ],
)
def test_queue_that_is_read_rarely_or_never_is_no_stopped_consumer(
    scanner: Scanner, hours_ago_read: tuple[int, ...], hourly_names: list[str]
) -> None:
    make_unread_queue(scanner, hours_ago_read)
    done = scanner.run_due_scan((CONSUMER_STOPPED,))
    assert (done.findings, done.error_by_target) == ((), {})
    assert sorted(hourly_names) == ["NumberOfMessagesDeleted", "NumberOfMessagesReceived"]


def test_queue_whose_messages_people_only_look_at_is_no_stopped_consumer(scanner: Scanner) -> None:
    make_unread_queue(scanner, range(7, 30), deleted=0)
    assert scanner.run_due_scan((CONSUMER_STOPPED,)).findings == ()


def test_days_of_traffic_are_not_asked_for_if_a_consumer_receives(
    scanner: Scanner, hourly_names: list[str]
) -> None:
    """CloudWatch bills both metrics."""
    queue_arn = make_unread_queue(scanner, range(7, HOURS_OF_FOUR_DAYS))
    scanner.put_metrics(queue_arn, scanner.account.now - timedelta(minutes=30), received=1)
    assert scanner.run_due_scan((CONSUMER_STOPPED,)).findings == ()
    assert hourly_names == []


def test_days_of_traffic_count_as_metrics_of_the_scan(scanner: Scanner) -> None:
    make_unread_queue(scanner, range(7, HOURS_OF_FOUR_DAYS))
    asked_with_days = scanner.run_due_scan((CONSUMER_STOPPED,)).metrics
    assert asked_with_days == 7 + 2


def test_queue_is_not_judged_if_the_metrics_of_the_day_are_spent_before_its_days_of_traffic(
    scanner: Scanner, hourly_names: list[str]
) -> None:
    scanner.account.now = (scanner.account.now + timedelta(days=1)).replace(hour=0)
    queue_arn = make_unread_queue(scanner, range(7, HOURS_OF_FOUR_DAYS))
    # It is the first hour of a day, in which eight metrics may be read: nine are too many.
    limits = Limits(scan_metrics_per_day=12 * 8)
    scanner.account.settings = replace(scanner.account.settings, limits=limits)
    done = scanner.run_due_scan((CONSUMER_STOPPED,))
    assert done.findings == ()
    assert "the metrics that may be read are spent" in str(done.error_by_target[queue_arn])
    assert hourly_names == []
