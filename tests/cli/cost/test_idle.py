"""What is billed of a template: every resource type has a price, or a reason for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cli.cost import idle
from cli.cost.deployed import Deployed, NotPriced, times_a_month
from tests.infra.synthesized import SETTINGS, template_of

# Nothing may make the stack dearer unnoticed: whoever raises this says so in the changelog.
MOST_DOLLARS = 10
CLOUDWATCH = "AWS::CloudWatch::"


def stack(*resources: Mapping[str, Any]) -> Deployed:
    return Deployed({"Resources": {f"R{n}": each for n, each in enumerate(resources)}})


def alarm(**properties: Any) -> Mapping[str, Any]:
    return {"Type": f"{CLOUDWATCH}Alarm", "Properties": properties}


def dollars(deployed: Deployed, what: str) -> float:
    (found,) = (each.dollars for each in idle.lines(deployed) if each.what == what)
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_every_resource_type_has_a_price_or_a_reason_for_none(name: str) -> None:
    assert idle.not_priced(Deployed(template_of(name).raw)) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_the_idle_stack_stays_under_ten_dollars(name: str) -> None:
    """At list price but for the dashboard, of which AWS gives each payer three."""
    lines = idle.lines(Deployed(template_of(name).raw))
    assert 3 < sum(each.dollars for each in lines if each.what != "dashboard") < MOST_DOLLARS
    assert sum(each.beyond for each in lines) < MOST_DOLLARS


def test_what_nobody_priced_is_named_and_not_zero() -> None:
    unknown = stack({"Type": "AWS::EC2::NatGateway"}, alarm())
    assert idle.not_priced(unknown) == ["AWS::EC2::NatGateway"]
    assert "AWS::EC2::NatGateway" not in idle.free(unknown)


def test_nothing_is_both_priced_and_free() -> None:
    assert idle.PRICED.keys() & idle.FREE.keys() == set()


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
    assert dollars(stack(alarm(**properties)), "alarms") == pytest.approx(expected)


def test_what_aws_gives_is_taken_off_once() -> None:
    (line,) = (e for e in idle.lines(stack(*[alarm()] * 12)) if e.what == "alarms")
    assert [line.dollars, line.beyond] == pytest.approx([1.2, 0.2])


def test_composites_and_dashboards_are_billed_by_the_piece() -> None:
    both = stack(
        {"Type": f"{CLOUDWATCH}CompositeAlarm"},
        {"Type": f"{CLOUDWATCH}CompositeAlarm"},
        {"Type": f"{CLOUDWATCH}Dashboard"},
    )
    assert dollars(both, "composite alarms") == 1
    assert dollars(both, "dashboard") == 3


def test_settings_change_the_bill() -> None:
    """A pulse every 20 minutes is three times as many calls as one an hour."""
    hourly, thrice = (Deployed(template_of(name).raw) for name in ("default", "proposing"))
    assert dollars(thrice, "the trail") == pytest.approx(3 * dollars(hourly, "the trail"))
    assert dollars(thrice, "Lambda") > dollars(hourly, "Lambda")


def test_no_trail_of_ours_no_line_for_it() -> None:
    existing = idle.lines(Deployed(template_of("existing trail").raw))
    assert "the trail" not in {each.what for each in existing}


def test_the_dearest_comes_first() -> None:
    found = [each.dollars for each in idle.lines(Deployed(template_of("default").raw))]
    assert found == sorted(found, reverse=True)


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
        idle.lines(Deployed(template))
