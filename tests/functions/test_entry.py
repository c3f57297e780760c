"""Every Lambda writes valid log lines and metrics."""

from __future__ import annotations

import json
from math import inf, nan

import pytest
from aws_lambda_powertools import Metrics

from functions.entry import to_log_line
from mendq.model.json_text import refuse_nan_constant
from tests.functions.builders import make_invocation


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_metric_that_is_nan_or_infinite_is_not_sent(value: float) -> None:
    metrics = Metrics(namespace="Test", service="test")
    call = make_invocation(metrics)
    call.send_metric_value("not_finite", value, "Seconds")
    call.send_metric_value("usual", 7, "Count")
    (group,) = metrics.serialize_metric_set()["_aws"]["CloudWatchMetrics"]
    assert [metric["Name"] for metric in group["Metrics"]] == ["usual"]
    metrics.clear_metrics()


def test_log_line_with_a_nan_value_is_valid_json_with_null() -> None:
    line = to_log_line({"seconds": nan, "why": ValueError("x"), "queue": "a"})
    read = json.loads(line, parse_constant=refuse_nan_constant)
    assert read == {"seconds": None, "why": "x", "queue": "a"}
