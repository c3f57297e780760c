"""Test metrics that only some queues have: Mendq reads them only if CloudWatch lists them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.model.metrics import (
    COUNTER_TOLERANCE_MESSAGES,
    METRIC_KINDS_OF_SOME_QUEUES,
    METRICS_BY_KIND,
    select_series,
)
from tests.scan.scanner import Scanner, start_next_hour

STANDARD = len(select_series(["every queue", "receives"]))
SERIES = select_series(METRIC_KINDS_OF_SOME_QUEUES)


def make_queue_with_backlog(scanner: Scanner, name: str, **over: float) -> str:
    """Make a queue with a backlog and with metrics in each of the last 30 minutes."""
    arn = scanner.account.queue(name, VisibilityTimeout="30")
    scanner.account.later(hours=2)
    start_next_hour(scanner.account)
    url = scanner.account.url(arn)
    for _ in range(COUNTER_TOLERANCE_MESSAGES + 1):
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    for minutes in range(30, 3, -1):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(arn, at, visible=900, deleted=4)
        for key, value in over.items():
            put_series(scanner, arn, key, at, value)
    return arn


def put_series(scanner: Scanner, arn: str, key: str, at: Any, *values: float) -> None:
    metric, _, namespace, _ = SERIES[key]
    datum: Any = {
        "MetricName": metric,
        "Dimensions": [{"Name": "QueueName", "Value": arn.rpartition(":")[2]}],
        "Timestamp": at,
        "Values": list(values),
        "Counts": [1.0] * len(values),
    }
    scanner.account.clients.cloudwatch.put_metric_data(Namespace=namespace, MetricData=[datum])


def test_scan_pages_about_quiet_message_groups_that_wait_behind_a_noisy_group(
    scanner: Scanner,
) -> None:
    queue = make_queue_with_backlog(scanner, "tenants", noisy=1, quiet=400, quiet_age=2_700)
    done = scanner.run_due_scan([NOISY_MESSAGE_GROUPS])
    assert done.metrics == STANDARD + 3
    assert scanner.list_announced_faults() == [(queue, "noisy_message_groups")]
    scanner.heal()
    (transition,) = scanner.account.transitions()
    assert transition["to"] == "escalated", transition


def test_scan_of_a_queue_without_message_group_metrics_reads_only_the_standard_series(
    scanner: Scanner,
) -> None:
    make_queue_with_backlog(scanner, "tenants")
    done = scanner.run_due_scan([NOISY_MESSAGE_GROUPS])
    assert (done.measured, done.metrics, scanner.list_announced_faults()) == (1, STANDARD, [])


def scan_and_heal_with_processing_time(
    scanner: Scanner, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Heal a race of a queue whose consumers published this processing time.

    Check that the queue's visibility timeout is unchanged. Return the case's only transition.
    """
    series_that_moto_answers = SERIES["processing"]._replace(statistic="Maximum")
    processing = {"processing": series_that_moto_answers}
    monkeypatch.setitem(cast("Any", METRICS_BY_KIND), "processing", processing)
    queue = make_queue_with_backlog(scanner, "orders")
    at = scanner.account.now - timedelta(minutes=40)
    scanner.put_metrics(queue, at - timedelta(minutes=20), visible=0)
    scanner.put_metrics(queue, at, sent=1_000, received=1_900, deleted=1_300)
    put_series(scanner, queue, "processing", at, seconds)
    done = scanner.run_due_scan([VISIBILITY_TIMEOUT_TOO_SHORT])
    assert done.metrics == STANDARD + 1
    scanner.heal()
    assert scanner.account.attributes(queue)["VisibilityTimeout"] == "30"
    (transition,) = scanner.account.transitions()
    return transition


def test_fix_based_on_a_processing_time_that_consumers_published_is_proposed_and_not_written(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any caller with PutMetricData can publish it."""
    transition = scan_and_heal_with_processing_time(scanner, 80.0, monkeypatch)
    assert transition["to"] == "proposed"
    assert [step["after"] for step in transition["steps"]] == ["120"]


@pytest.mark.parametrize("seconds", [43_000.0, 20.0], ids=["above all limits", "below the timeout"])
def test_race_of_consumers_that_published_an_unusable_processing_time_is_escalated(
    scanner: Scanner, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unusable value must not hide a race."""
    transition = scan_and_heal_with_processing_time(scanner, seconds, monkeypatch)
    assert (transition["to"], transition["steps"]) == ("escalated", [])
