"""Which alarms watch a queue, whoever made them and however."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mendq.aws.cloudwatch import (
    ANY_QUEUE,
    FORTNIGHT,
    add_alarmed_metrics_of_queue_and_dlq,
    count_deleted_messages,
    read_alarmed_metrics,
    read_two_weeks_of_metrics,
)
from mendq.aws.consumers import read_function_metrics
from mendq.catalogue.configuration.alarm_missing import AGE_METRIC, DEPTH_METRIC, IN_FLIGHT_METRIC
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, standard_queue
from mendq.model.facts import QueueFacts
from tests.scan.scanner import Scanner, open_scanner


@pytest.fixture
def seen() -> Iterator[Scanner]:
    with open_scanner() as made:
        yield made


def metric(name: str, queue: str = "orders", namespace: str = "AWS/SQS") -> dict[str, Any]:
    dimensions = [{"Name": "QueueName", "Value": queue}]
    return {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}


def put(seen: Scanner, name: str, **what: Any) -> None:
    over = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 1}
    seen.account.clients.cloudwatch.put_metric_alarm(AlarmName=name, **{**over, **what})


def of(name: str, of_metric: dict[str, Any]) -> dict[str, Any]:
    return {"Id": name, "MetricStat": {"Metric": of_metric, "Period": 60, "Stat": "Maximum"}}


def test_alarms_count_by_what_they_are_made_of(seen: Scanner) -> None:
    for n in range(60):  # more than one page
        put(
            seen,
            f"of-another-{n}",
            Period=60,
            Statistic="Sum",
            **metric("Errors", "f", "AWS/Lambda"),
        )
    put(seen, "plain", Period=60, Statistic="Maximum", **metric(AGE_METRIC))
    put(
        seen,
        "math",
        Metrics=[of("a", metric(IN_FLIGHT_METRIC)), {"Id": "b", "Expression": "a * 2"}],
    )
    query = f'SELECT MAX({DEPTH_METRIC}) FROM SCHEMA("AWS/SQS", QueueName)'  # noqa: S608 - of CloudWatch
    put(seen, "insights", Metrics=[{"Id": "q", "Expression": query, "Period": 60}])
    assert read_alarmed_metrics(seen.account.clients) == {
        "orders": frozenset({AGE_METRIC, IN_FLIGHT_METRIC}),
        ANY_QUEUE: frozenset({DEPTH_METRIC}),
    }


def test_a_dlq_that_is_gone_has_no_alarms_to_ask_for() -> None:
    alarms = {"orders": frozenset({AGE_METRIC}), "orders-dlq": frozenset({DEPTH_METRIC})}
    there = add_alarmed_metrics_of_queue_and_dlq(
        standard_queue(dlq=QueueFacts(DLQ_ARN, {"DelaySeconds": "0"})), alarms
    )
    assert there.alarmed_metrics == frozenset({AGE_METRIC})
    assert there.dlq is not None
    assert there.dlq.alarmed_metrics == frozenset({DEPTH_METRIC})
    gone = add_alarmed_metrics_of_queue_and_dlq(
        standard_queue(dlq=QueueFacts("a person's text", {})), alarms
    )
    assert gone.dlq is not None
    assert gone.dlq.alarmed_metrics is None


def test_a_fortnight_is_the_largest_value_of_each_five_minutes(seen: Scanner) -> None:
    arn, now = STANDARD_ARN, seen.account.now.replace(minute=30, second=0, microsecond=0)
    for minutes, age in ((1, 40), (3, 70), (60, 10)):
        seen.put_metrics(arn, now - timedelta(minutes=minutes), age=age)
    seen.put_metrics(arn, now - FORTNIGHT - timedelta(minutes=10), age=9_000)
    found = read_two_weeks_of_metrics(
        seen.account.clients, arn, [AGE_METRIC, IN_FLIGHT_METRIC], now
    )
    assert [value for _, value in found[AGE_METRIC]] == [10, 70]
    assert found[IN_FLIGHT_METRIC] == []
    assert read_two_weeks_of_metrics(seen.account.clients, arn, [], now) == {}, "nothing is billed"


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_metrics_leave_out_what_is_no_finite_number(seen: Scanner, odd: float) -> None:
    now = seen.account.now

    def answer(**_: Any) -> tuple[Any, dict[str, Any]]:
        moments = [now - timedelta(minutes=minutes) for minutes in (9, 8, 7)]
        names = ("m0", "deleted", "invocations_sum_0")
        values = [3.0, odd, 4.0]
        points = {"Timestamps": moments, "Values": values, "StatusCode": "Complete"}
        results = [{"Id": name, "Label": name, **points} for name in names]
        return SimpleNamespace(status_code=200), {"MetricDataResults": results}

    events = seen.account.clients.cloudwatch.meta.events
    events.register_first("before-call.*.GetMetricData", cast("Callable[..., None]", answer))
    clients, since = seen.account.clients, now - timedelta(hours=1)
    assert [
        value
        for _, value in read_two_weeks_of_metrics(clients, STANDARD_ARN, [AGE_METRIC], now)[
            AGE_METRIC
        ]
    ] == [
        3.0,
        4.0,
    ]
    assert count_deleted_messages(clients, STANDARD_ARN, since, now) == 7
    assert read_function_metrics(clients, ["bill"], now)["bill"]["invocations"] == 7
