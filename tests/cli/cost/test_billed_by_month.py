"""What stands there is billed by the piece, and an alarm by its metrics."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cli.cost import billed_by_month
from cli.cost.deployed import Deployed
from tests.cli.cost.templates import CLOUDWATCH, alarm, stack
from tests.infra.synthesized import template_of

MEASURED = {"Id": "m", "MetricStat": {"Period": 300}}
BAND = {"Id": "b", "Expression": "ANOMALY_DETECTION_BAND(m, 2)"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"MetricName": "Errors", "Period": 60}, 0.10),
        ({"MetricName": "Errors", "Period": 10}, 0.30),
        ({"Metrics": [MEASURED, MEASURED, {"Id": "e", "Expression": "m1 + m2"}]}, 0.20),
        ({"Metrics": [MEASURED, BAND]}, 0.30),
        ({"Metrics": [{"Id": "m", "MetricStat": {"Period": 30}}]}, 0.30),
    ],
)
def test_an_alarm_costs_what_its_metrics_do(properties: dict[str, Any], expected: float) -> None:
    assert billed_by_month.alarms(stack(alarm(**properties))).dollars == pytest.approx(expected)


def test_the_reason_names_every_alarm_of_more_than_one_metric() -> None:
    single = alarm(AlarmName="late", MetricName="Age")
    beats = alarm(AlarmName="heartbeat", Metrics=[MEASURED, MEASURED, MEASURED])
    fixes = alarm(AlarmName="fixes", Metrics=[MEASURED, BAND])
    assert billed_by_month.alarms(stack(single)).because == "a metric each"
    assert billed_by_month.alarms(stack(single, beats)).because == (
        "a metric each, but 3 of heartbeat"
    )
    assert billed_by_month.alarms(stack(single, fixes, beats)).because == (
        "a metric each, but 3 of fixes and 3 of heartbeat; an anomaly band is two of them"
    )


def test_whoever_adds_up_the_reason_of_the_stack_comes_to_its_number() -> None:
    line = billed_by_month.alarms(Deployed(template_of("default").raw))
    number, metrics = (int(each) for each in re.findall(r"\d+", line.quantity))
    several = [int(each) for each in re.findall(r"(\d+) of mendq-", line.because)]
    assert several
    assert number - len(several) + sum(several) == metrics


def test_composites_and_dashboards_are_billed_by_the_piece() -> None:
    both = stack(
        {"Type": f"{CLOUDWATCH}CompositeAlarm"},
        {"Type": f"{CLOUDWATCH}CompositeAlarm"},
        {"Type": f"{CLOUDWATCH}Dashboard"},
    )
    assert billed_by_month.composites(both).dollars == 1
    assert billed_by_month.dashboards(both).dollars == 3


def test_it_says_which_alarms_page() -> None:
    """Some composites page nobody, and most alarms page without one."""
    tells = {"AlarmActions": ["arn"]}
    both = stack(
        {"Type": f"{CLOUDWATCH}CompositeAlarm", "Properties": tells},
        {"Type": f"{CLOUDWATCH}CompositeAlarm"},
        alarm(**tells),
        alarm(**tells),
        alarm(),
    )
    said = billed_by_month.composites(both).because
    assert said == "1 of them page people; 2 alarms page by themselves"


@pytest.mark.parametrize("dashboards", [0, 1])
def test_with_and_without_is_the_same_whichever_the_stack_has(dashboards: int) -> None:
    found = stack(*[{"Type": f"{CLOUDWATCH}Dashboard"}] * dashboards, alarm())
    lines = [billed_by_month.dashboards(found), billed_by_month.alarms(found)]
    assert billed_by_month.with_and_without_dashboard(lines) == pytest.approx((3.10, 0.10))


def test_what_aws_gives_is_taken_off_once() -> None:
    line = billed_by_month.alarms(stack(*[alarm()] * 12))
    assert [line.dollars, line.beyond] == pytest.approx([1.2, 0.2])
