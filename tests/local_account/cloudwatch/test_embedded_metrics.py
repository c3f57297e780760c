"""Metrics in log lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.cloudwatch import metrics_in


def _line(dimensions: Any, **root: Any) -> str:
    directive = {
        "Namespace": "Mendq",
        "Dimensions": dimensions,
        "Metrics": [{"Name": "AutoFixes", "Unit": "Count"}],
    }
    aws = {"Timestamp": 1_700_000_000_500, "CloudWatchMetrics": [directive]}
    return json.dumps({"_aws": aws, "AutoFixes": 1, **root})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "START RequestId: 1",
        '{"level": "INFO", "message": "text"}',
        '{"_aws": "no"}',
        '{"_aws": {}}',
        'not JSON "_aws"',
        _line([["symptom"]]),  # names a dimension that the line does not carry
    ],
)
def test_other_lines_carry_none(line: str) -> None:
    assert metrics_in(line) == ()


def test_a_metric_without_dimensions() -> None:
    for line in (_line([[]]), _line([])):
        (datum,) = metrics_in(line)
        assert datum[:5] == ("Mendq", "AutoFixes", {}, 1_700_000_000.5, "Count")
        assert datum[5:] == (None, [1.0], None, None)


def test_one_metric_for_each_set_of_dimensions() -> None:
    data = metrics_in(_line([["symptom"], ["symptom", "mode"], []], symptom="x", mode="heal"))
    assert [each[2] for each in data] == [
        {"symptom": "x"},
        {"symptom": "x", "mode": "heal"},
        {},
    ]


def test_several_values_of_one_moment() -> None:
    (datum,) = metrics_in(_line([[]], AutoFixes=[1, 2.5]))
    assert datum[6] == [1.0, 2.5]
