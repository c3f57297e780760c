"""What is billed of a template: every resource type has a price, or a reason for none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics

from functions import deliver_report, follow_up
from functions.entry import Call
from mendq.cli.cost import bill
from mendq.cli.cost.bill import ALWAYS_SENT, Deployed, NotPriced, hours_a_month, times_a_month
from mendq.follow_up.follow_up import Followed
from mendq.heal.batch import Healed
from mendq.model.names import NAMESPACE, WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.functions.conftest import call_with
from tests.infra.synthesized import SETTINGS, template_of

if TYPE_CHECKING:
    pass

KNOWN = json.loads(Path(__file__).with_name("tables.json").read_text())
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
def test_the_idle_stack_stays_under_what_is_said_with_its_dashboard_and_without(name: str) -> None:
    """At list price; `beyond` is what AWS does not give."""
    deployed = Deployed(template_of(name).raw)
    assert bill.not_priced(deployed) == []
    lines = bill.lines(deployed)
    with_one, without = bill.with_and_without_dashboard(lines)
    assert 3 < without < MOST_WITHOUT_DASHBOARD < with_one < MOST_WITH_DASHBOARD
    has_one = SETTINGS[name].get("dashboard", True)
    whole = sum(each.dollars for each in lines)
    assert whole == pytest.approx(with_one if has_one else without)
    assert sum(each.beyond for each in lines) < MOST_WITHOUT_DASHBOARD


def test_what_nobody_priced_is_named_and_not_zero() -> None:
    unknown = stack({"Type": "AWS::EC2::NatGateway"}, alarm())
    assert bill.not_priced(unknown) == ["AWS::EC2::NatGateway"]
    assert "AWS::EC2::NatGateway" not in bill.free(unknown)


@pytest.mark.parametrize(("properties", "expected"), KNOWN["alarms"])
def test_an_alarm_costs_what_its_metrics_do(properties: dict[str, Any], expected: float) -> None:
    assert bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(alarm(**properties))).dollars == pytest.approx(
        expected
    )


def _because(*alarms: Mapping[str, Any]) -> str:
    return bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(*alarms)).because


def test_the_reason_names_every_alarm_of_more_than_one_metric() -> None:
    single = alarm(AlarmName="late", MetricName="Age")
    beats = alarm(AlarmName="heartbeat", Metrics=[MEASURED, MEASURED, MEASURED])
    fixes = alarm(AlarmName="fixes", Metrics=[MEASURED, BAND])
    assert _because(single) == "a metric each"
    assert _because(single, beats) == "a metric each, but 3 of heartbeat"
    every = "a metric each, but 3 of fixes and 3 of heartbeat; an anomaly band is two of them"
    assert _because(single, fixes, beats) == every


def test_what_aws_gives_is_taken_off_once() -> None:
    line = bill.PRICED[f"{CLOUDWATCH}Alarm"](stack(*[alarm()] * 12))
    assert [line.dollars, line.beyond] == pytest.approx([1.2, 0.2])


@pytest.mark.parametrize(("expression", "times"), KNOWN["schedules"].items())
def test_schedules_are_counted(expression: str, times: float) -> None:
    assert times_a_month(expression) == pytest.approx(times)


@pytest.mark.parametrize("expression", KNOWN["uncountable"])
def test_a_schedule_of_another_kind_is_refused(expression: str) -> None:
    with pytest.raises(NotPriced, match="cannot be counted"):
        times_a_month(expression)


@pytest.mark.parametrize("template", ["Resources:\n", {}, {"Outputs": {}}])
def test_what_is_no_template_of_ours_is_refused(template: Any) -> None:
    with pytest.raises(NotPriced):
        _ = Deployed(template).types


def _names_sent(emit: Callable[[Call[Any]], None]) -> frozenset[str]:
    metrics = EphemeralMetrics(namespace=NAMESPACE)
    emit(call_with(metrics))
    (sent,) = metrics.serialize_metric_set()["_aws"]["CloudWatchMetrics"]
    return frozenset(each["Name"] for each in sent["Metrics"])


def test_what_is_billed_all_month_is_what_the_lambdas_send_of_a_run_that_found_nothing() -> None:
    now, followed = datetime(2026, 1, 1, tzinfo=UTC), Followed([])
    assert ALWAYS_SENT["follow_up"] == _names_sent(lambda call: follow_up.emit(call, followed, now))
    probed = _names_sent(lambda call: call.count(Healed().counts()))
    assert ALWAYS_SENT["probe"] == probed | {OwnMetric.PROBES_LOST}
    assert ALWAYS_SENT["deliver_report"] == {deliver_report.DELIVERED, deliver_report.NOT_DELIVERED}
    always = frozenset[str]().union(*ALWAYS_SENT.values())
    assert always | WHEN_SOMETHING_HAPPENS == {*OwnMetric, *NightlyMetric}
    assert always & WHEN_SOMETHING_HAPPENS == set()


def test_a_metric_is_billed_for_the_hours_in_which_it_comes() -> None:
    runs = {"follow_up": 43_200, "start_nightly": 30, "probe": 700, "scan": 4_320, "approve": 9}
    hours = hours_a_month(runs)
    assert hours["EscalatedCasesOpen"] == hours["AutoFixes"] == 720
    assert (hours["NightlyRunsWritten"], hours["ProbesLostInARow"]) == (30, 700)
    assert not {"FailedCallsSeen", "ScannedQueues"} & hours.keys()
