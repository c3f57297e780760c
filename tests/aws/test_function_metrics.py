"""Test what is read of a function's metrics: the last hour, and the stretch with failed runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from mendq.aws.clients import Clients
from mendq.aws.consumers import FUNCTION_METRIC_BY_KEY, read_function_metrics
from mendq.model.facts import FailedStretch

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
CLIENTS = Clients(boto3.Session("x", "x", region_name="us-east-1"))
Series = Mapping[datetime, float]


def at(hour: int, minute: int = 0) -> datetime:
    return NOW.replace(hour=hour, minute=minute)


def read_metrics(**series_by_key: Series) -> Mapping[str, Any]:
    """Read the metrics of the function `bill`, whose CloudWatch series these are."""
    results = [
        {"Id": f"{key}_0", "Timestamps": [*series], "Values": [*series.values()]}
        for key, series in series_by_key.items()
    ]
    queries = [
        {
            "Id": f"{key}_0",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/Lambda",
                    "MetricName": metric.name,
                    "Dimensions": [{"Name": "FunctionName", "Value": "bill"}],
                },
                "Period": 3600 if metric.name == "Duration" else 300,
                "Stat": metric.statistic,
            },
        }
        for key, metric in FUNCTION_METRIC_BY_KEY.items()
    ]
    request = {
        "StartTime": at(3),
        "EndTime": NOW,
        "MetricDataQueries": queries,
        "ScanBy": "TimestampAscending",
    }
    with Stubber(CLIENTS.cloudwatch) as cloudwatch:
        cloudwatch.add_response("get_metric_data", {"MetricDataResults": results}, request)
        return read_function_metrics(CLIENTS, ["bill"], NOW)["bill"]


def test_function_metrics_of_the_last_hour_leave_out_earlier_runs() -> None:
    metrics = read_metrics(
        invocations_sum={at(8, 20): 100.0, at(8, 30): 7.0, at(9, 25): 5.0},
        errors_sum={at(8, 20): 50.0, at(8, 30): 2.0, at(9, 25): 1.0},
        throttles_sum={at(8, 20): 90.0, at(9, 25): 4.0},
        duration_p99={at(7): 90_000.0, at(8): 1_000.0, at(9): 3_000.0},
        duration_p50={at(7): 1.0, at(8): 500.0, at(9): 400.0},
    )
    assert metrics["invocations"] == 12
    assert metrics["error_share"] == 3 / 12
    assert metrics["throttled_share"] == 4 / 16
    assert metrics["duration_p99_seconds"] == 3.0
    assert metrics["duration_p50_seconds"] == 0.4


def test_failed_stretch_of_a_function_whose_runs_succeed_is_none() -> None:
    metrics = read_metrics(
        invocations_sum={at(5): 60.0, at(9): 60.0}, errors_sum={at(5): 0.0, at(9): 0.0}
    )
    assert metrics["failed_stretch"] is None


def test_failed_stretch_goes_from_the_first_to_the_last_five_minutes_with_failed_runs() -> None:
    metrics = read_metrics(
        invocations_sum={at(5): 60.0, at(6): 20.0, at(6, 5): 10.0, at(6, 25): 30.0, at(9): 60.0},
        errors_sum={at(5): 0.0, at(6): 20.0, at(6, 5): 0.0, at(6, 25): 25.0, at(9): 0.0},
        duration_p50={at(5): 100.0, at(6): 15_000.0, at(9): 100.0},
        duration_p99={at(5): 200.0, at(6): 15_001.0, at(9): 200.0},
    )
    assert metrics["failed_stretch"] == FailedStretch(
        begins_at=at(6),
        ends_at=at(6, 30),
        invocations=60,
        failed_runs=45,
        failed_run_seconds=15.0,
        invocations_of_all_hours=180,
    )


@pytest.mark.parametrize(("later", "failed_runs"), [(at(6, 25), 15), (at(6, 30), 10)])
def test_failed_runs_half_an_hour_apart_are_two_stretches_of_which_the_worse_counts(
    later: datetime, failed_runs: int
) -> None:
    metrics = read_metrics(
        invocations_sum={at(6): 10.0, later: 5.0}, errors_sum={at(6): 10.0, later: 5.0}
    )
    assert metrics["failed_stretch"].failed_runs == failed_runs


def test_of_two_stretches_with_as_many_failed_runs_the_later_counts() -> None:
    metrics = read_metrics(
        invocations_sum={at(4): 9.0, at(8): 9.0}, errors_sum={at(4): 9.0, at(8): 9.0}
    )
    assert metrics["failed_stretch"].begins_at == at(8)


def test_failed_runs_of_more_than_six_hours_ago_are_no_stretch() -> None:
    metrics = read_metrics(
        invocations_sum={at(3, 25): 9.0, at(9): 1.0}, errors_sum={at(3, 25): 9.0, at(9): 0.0}
    )
    assert metrics["failed_stretch"] is None


def test_failed_runs_among_many_others_of_their_hour_took_as_long_as_its_slowest_runs() -> None:
    metrics = read_metrics(
        invocations_sum={at(6): 500.0, at(6, 30): 54.0},
        errors_sum={at(6): 0.0, at(6, 30): 54.0},
        duration_p50={at(6): 300.0},
        duration_p99={at(6): 30_000.0},
    )
    assert metrics["failed_stretch"].failed_run_seconds == 30.0


def test_duration_of_failed_runs_is_unknown_without_datapoints() -> None:
    metrics = read_metrics(invocations_sum={at(6): 9.0}, errors_sum={at(6): 9.0})
    assert metrics["failed_stretch"].failed_run_seconds is None
