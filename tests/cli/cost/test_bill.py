"""What is billed of a template: every resource type has a price, or a reason for none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from mendq.cli.cost import bill
from mendq.cli.cost.bill import Deployed, NotPriced, hours_a_month, series, times_a_month
from mendq.model.names import WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.infra.synthesized import SETTINGS, template_of

CLOUDWATCH = "AWS::CloudWatch::"
MEASURED = {"Id": "m", "MetricStat": {"Period": 300}}
BAND = {"Id": "b", "Expression": "ANOMALY_DETECTION_BAND(m, 2)"}
# Nothing may make the stack dearer unnoticed: whoever raises these says so in the changelog.
MOST_WITHOUT_DASHBOARD, MOST_WITH_DASHBOARD = 10, 13


def stack(*resources: Mapping[str, Any]) -> Deployed:
    return Deployed({"Resources": {f"R{n}": each for n, each in enumerate(resources)}})


def alarm(**properties: Any) -> Mapping[str, Any]:
    return {"Type": f"{CLOUDWATCH}Alarm", "Properties": properties}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_resource_type_has_a_price_or_a_reason_for_none(name: str) -> None:
    assert bill.not_priced(Deployed(template_of(name).raw)) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_the_idle_stack_stays_under_what_is_said_with_its_dashboard_and_without(name: str) -> None:
    """At list price; `beyond` is what AWS does not give."""
    lines = bill.lines(Deployed(template_of(name).raw))
    with_one, without = bill.with_and_without_dashboard(lines)
    assert 3 < without < MOST_WITHOUT_DASHBOARD < with_one < MOST_WITH_DASHBOARD
    has_one = SETTINGS[name].get("dashboard", True)
    whole = sum(each.dollars for each in lines)
    assert whole == pytest.approx(with_one if has_one else without)
    assert sum(each.beyond for each in lines) < MOST_WITHOUT_DASHBOARD


def test_both_kinds_of_stack_are_among_the_settings() -> None:
    assert {each.get("dashboard", True) for each in SETTINGS.values()} == {True, False}


def test_what_nobody_priced_is_named_and_not_zero() -> None:
    unknown = stack({"Type": "AWS::EC2::NatGateway"}, alarm())
    assert bill.not_priced(unknown) == ["AWS::EC2::NatGateway"]
    assert "AWS::EC2::NatGateway" not in bill.free(unknown)


def test_nothing_is_both_priced_and_free() -> None:
    assert bill.PRICED.keys() & bill.FREE.keys() == set()


def test_the_dearest_comes_first() -> None:
    found = [each.dollars for each in bill.lines(Deployed(template_of("default").raw))]
    assert found == sorted(found, reverse=True)


def test_no_trail_of_ours_no_line_for_it() -> None:
    existing = bill.lines(Deployed(template_of("existing trail").raw))
    assert "the trail" not in {each.what for each in existing}


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
    assert bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(alarm(**properties))).dollars == pytest.approx(
        expected
    )


def test_the_reason_names_every_alarm_of_more_than_one_metric() -> None:
    single = alarm(AlarmName="late", MetricName="Age")
    beats = alarm(AlarmName="heartbeat", Metrics=[MEASURED, MEASURED, MEASURED])
    fixes = alarm(AlarmName="fixes", Metrics=[MEASURED, BAND])
    assert bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(single)).because == "a metric each"
    assert bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(single, beats)).because == (
        "a metric each, but 3 of heartbeat"
    )
    assert bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(single, fixes, beats)).because == (
        "a metric each, but 3 of fixes and 3 of heartbeat; an anomaly band is two of them"
    )


def test_whoever_adds_up_the_reason_of_the_stack_comes_to_its_number() -> None:
    line = bill.PRICED[f"{CLOUDWATCH}Alarm"](Deployed(template_of("default").raw))
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
    assert bill.PRICED[f"{CLOUDWATCH}CompositeAlarm"](both).dollars == 1
    assert bill.PRICED[f"{CLOUDWATCH}Dashboard"](both).dollars == 3


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
    said = bill.PRICED[f"{CLOUDWATCH}CompositeAlarm"](both).because
    assert said == "1 of them page people; 2 alarms page by themselves"


@pytest.mark.parametrize("dashboards", [0, 1])
def test_with_and_without_is_the_same_whichever_the_stack_has(dashboards: int) -> None:
    found = stack(*[{"Type": f"{CLOUDWATCH}Dashboard"}] * dashboards, alarm())
    lines = [bill.PRICED[f"{CLOUDWATCH}Dashboard"](found), bill.PRICED[f"{CLOUDWATCH}Alarm"](found)]
    assert bill.with_and_without_dashboard(lines) == pytest.approx((3.10, 0.10))


def test_what_aws_gives_is_taken_off_once() -> None:
    line = bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(*[alarm()] * 12))
    assert [line.dollars, line.beyond] == pytest.approx([1.2, 0.2])


def test_settings_change_the_bill() -> None:
    """A probe every 20 minutes is three times as many calls as one an hour."""
    hourly, thrice = (Deployed(template_of(name).raw) for name in ("default", "proposing"))
    trail = bill.PRICED["AWS::CloudTrail::Trail"]
    assert trail(thrice).dollars == pytest.approx(3 * trail(hourly).dollars)
    invocations = bill.PRICED["AWS::Lambda::Function"]
    assert invocations(thrice).dollars > invocations(hourly).dollars


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("rate(1 minute)", 43_200),
        ("rate(10 minutes)", 4_320),
        ("rate(1 hour)", 720),
        ("rate(2 days)", 15),
        ("cron(0 2 * * ? *)", 30),
        ("cron(30 6 ? * MON *)", 30 / 7),
    ],
)
def test_schedules_are_counted(expression: str, times: float) -> None:
    assert times_a_month(expression) == pytest.approx(times)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "rate(0 minutes)",
        "rate(1 fortnight)",
        "cron(0 2 * * MON-FRI *)",
        "cron(*/5 * * * ? *)",
        "cron(0 2 1 * ? *)",
        "at(2026-01-01T00:00:00)",
    ],
)
def test_a_schedule_of_another_kind_is_refused(expression: str) -> None:
    with pytest.raises(NotPriced, match="cannot be counted"):
        times_a_month(expression)


@pytest.mark.parametrize("template", ["Resources:\n", {}, {"Outputs": {}}])
def test_what_is_no_template_of_ours_is_refused(template: Any) -> None:
    with pytest.raises(NotPriced):
        _ = Deployed(template).types


def test_every_metric_is_either_always_there_or_comes_with_something() -> None:
    always = frozenset().union(*series().values())
    assert always | WHEN_SOMETHING_HAPPENS == {*OwnMetric, *NightlyMetric}
    assert always & WHEN_SOMETHING_HAPPENS == set()


def test_what_is_sent_each_minute_exists_all_month() -> None:
    hours = hours_a_month({"follow_up": 43_200})
    assert hours["EscalatedCasesOpen"] == hours["AutoFixes"] == 720


def test_what_is_sent_once_a_nightly_is_billed_for_thirty_hours() -> None:
    hours = hours_a_month({"start_nightly": 30, "probe": 720, "scan": 4_320, "approve": 9})
    assert hours["NightlyRunsWritten"] == 30
    assert hours["ProbesLostInARow"] == 720
    assert not {"FailedCallsSeen", "ScannedQueues"} & hours.keys()
    assert "EscalatedCasesOpen" not in hours
