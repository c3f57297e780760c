"""Test which CloudWatch alarms count as watching a queue, and the reading of two weeks' metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mendq.aws.cloudwatch import (
    FORTNIGHT,
    AlarmedMetrics,
    add_alarmed_metrics_of_queue_and_dlq,
    count_deleted_messages,
    read_alarmed_metrics,
    read_two_weeks_of_metrics,
)
from mendq.aws.consumers import read_function_metrics
from mendq.catalogue.configuration.alarm_missing import AGE_METRIC, DEPTH_METRIC, IN_FLIGHT_METRIC
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, standard_queue
from mendq.model.facts import QueueFacts
from tests.account.faults import calls_of
from tests.scan.scanner import Scanner, open_scanner


@pytest.fixture
def scanner() -> Iterator[Scanner]:
    with open_scanner() as opened_scanner:
        yield opened_scanner


def make_metric(name: str, queue: str = "orders", namespace: str = "AWS/SQS") -> dict[str, Any]:
    dimensions = [{"Name": "QueueName", "Value": queue}]
    return {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}


def put_alarm(scanner: Scanner, name: str, **parameters: Any) -> None:
    rule = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 1}
    scanner.account.clients.cloudwatch.put_metric_alarm(AlarmName=name, **{**rule, **parameters})


def make_metric_query(query_id: str, metric: dict[str, Any]) -> dict[str, Any]:
    return {"Id": query_id, "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}


def test_alarmed_metrics_include_metric_math_and_metrics_insights_on_all_pages(
    scanner: Scanner,
) -> None:
    for n in range(60):  # more than one page
        put_alarm(
            scanner,
            f"of-another-{n}",
            Period=60,
            Statistic="Sum",
            **make_metric("Errors", "f", "AWS/Lambda"),
        )
    put_alarm(scanner, "plain", Period=60, Statistic="Maximum", **make_metric(AGE_METRIC))
    put_alarm(
        scanner,
        "math",
        Metrics=[
            make_metric_query("a", make_metric(IN_FLIGHT_METRIC)),
            {"Id": "b", "Expression": "a * 2"},
        ],
    )
    put_insights_alarm(scanner, DEPTH_METRIC)
    alarmed_metrics = read_alarmed_metrics(scanner.account.clients)
    assert alarmed_metrics.list_metrics_of("orders") == {AGE_METRIC, IN_FLIGHT_METRIC, DEPTH_METRIC}
    assert alarmed_metrics.list_metrics_of("bills") == {DEPTH_METRIC}


def put_insights_alarm(scanner: Scanner, metric: str, conditions: str = "") -> None:
    query = f'SELECT MAX({metric}) FROM SCHEMA("AWS/SQS", QueueName) {conditions}'  # noqa: S608 - of CloudWatch
    put_alarm(scanner, "insights", Metrics=[{"Id": "q", "Expression": query, "Period": 60}])


@pytest.mark.parametrize(
    ("conditions", "watched"),
    [
        ("WHERE QueueName != 'orders-dlq' AND QueueName != 'bills-dlq'", {"orders", "bills"}),
        ("WHERE QueueName = 'orders'", {"orders"}),
        ("""WHERE "QueueName"='orders' GROUP BY QueueName""", {"orders"}),
        ("WHERE QueueName = 'orders' AND QueueName = 'bills'", set()),
        ("WHERE tag.team = 'shop'", {"orders", "bills", "orders-dlq", "bills-dlq"}),
    ],
    ids=["all but two", "one", "one, quoted", "two at once", "by tag, which may be any"],
)
def test_metrics_insights_alarm_watches_no_queue_that_its_conditions_exclude(
    scanner: Scanner, conditions: str, watched: set[str]
) -> None:
    put_insights_alarm(scanner, AGE_METRIC, conditions)
    alarmed_metrics = read_alarmed_metrics(scanner.account.clients)
    names = ("orders", "bills", "orders-dlq", "bills-dlq")
    assert {name for name in names if alarmed_metrics.list_metrics_of(name)} == watched


ALARMS = AlarmedMetrics(
    {"orders": frozenset({AGE_METRIC}), "orders-dlq": frozenset({DEPTH_METRIC})}
)


def test_queue_and_its_dlq_each_get_their_own_alarmed_metrics() -> None:
    with_dlq = add_alarmed_metrics_of_queue_and_dlq(
        standard_queue(dlq=QueueFacts(DLQ_ARN, {"DelaySeconds": "0"})), ALARMS
    )
    assert with_dlq.alarmed_metrics == frozenset({AGE_METRIC})
    assert with_dlq.dlq is not None
    assert with_dlq.dlq.alarmed_metrics == frozenset({DEPTH_METRIC})


def test_alarmed_metrics_of_a_deleted_dlq_are_unknown() -> None:
    with_deleted_dlq = add_alarmed_metrics_of_queue_and_dlq(
        standard_queue(dlq=QueueFacts("a person's text", {})), ALARMS
    )
    assert with_deleted_dlq.dlq is not None
    assert with_deleted_dlq.dlq.alarmed_metrics is None


def test_two_weeks_of_metrics_hold_the_maximum_of_each_five_minutes_and_nothing_older(
    scanner: Scanner,
) -> None:
    arn = STANDARD_ARN
    now = scanner.account.now.replace(minute=30, second=0, microsecond=0)
    for minutes, age in ((1, 40), (3, 70), (60, 10)):
        scanner.put_metrics(arn, now - timedelta(minutes=minutes), age=age)
    scanner.put_metrics(arn, now - FORTNIGHT - timedelta(minutes=10), age=9_000)
    points = read_two_weeks_of_metrics(
        scanner.account.clients, arn, [AGE_METRIC, IN_FLIGHT_METRIC], now
    )
    assert [value for _, value in points[AGE_METRIC]] == [10, 70]
    assert points[IN_FLIGHT_METRIC] == []


def test_two_weeks_of_no_metrics_make_no_billed_call(scanner: Scanner) -> None:
    calls = calls_of(scanner.account)
    clients = scanner.account.clients
    assert read_two_weeks_of_metrics(clients, STANDARD_ARN, [], scanner.account.now) == {}
    assert calls == []


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_metrics_leave_out_nan_and_infinite_datapoints(scanner: Scanner, odd: float) -> None:
    now = scanner.account.now

    def answer(**_: Any) -> tuple[Any, dict[str, Any]]:
        moments = [now - timedelta(minutes=minutes) for minutes in (9, 8, 7)]
        names = ("m0", "deleted", "invocations_sum_0")
        values = [3.0, odd, 4.0]
        points = {"Timestamps": moments, "Values": values, "StatusCode": "Complete"}
        results = [{"Id": name, "Label": name, **points} for name in names]
        return SimpleNamespace(status_code=200), {"MetricDataResults": results}

    events = scanner.account.clients.cloudwatch.meta.events
    events.register_first("before-call.*.GetMetricData", cast("Callable[..., None]", answer))
    clients = scanner.account.clients
    points = read_two_weeks_of_metrics(clients, STANDARD_ARN, [AGE_METRIC], now)
    assert [value for _, value in points[AGE_METRIC]] == [3.0, 4.0]
    since = now - timedelta(hours=1)
    assert count_deleted_messages(clients, STANDARD_ARN, since, now) == 7
    assert read_function_metrics(clients, ["bill"], now)["bill"]["invocations"] == 7
