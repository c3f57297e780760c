"""Test the monthly price of the stack's template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics

from functions import deliver_report, follow_up
from functions.entry import LambdaInvocation
from mendq.cli.cost import bill
from mendq.cli.cost.bill import BilledStack, NotPriced, count_runs_a_month
from mendq.follow_up.follow_up import FollowUpResult
from mendq.heal.batch import BatchResult
from mendq.model import prices
from mendq.model.names import GAUGE_METRICS, METRIC_NAMESPACE, METRICS_SENT_ON_EVENTS, OwnMetric
from mendq.model.settings import FULL_ALARMS
from tests.cli.named_rows import parametrize_rows
from tests.functions.builders import make_invocation
from tests.infra.synthesized import NIGHTLY_OFF, SETTINGS, template_of, template_with

KNOWN = json.loads(Path(__file__).with_name("tables.json").read_text())
CLOUDWATCH = "AWS::CloudWatch::"
# Dollars a month. A change that raises one of these must be in the changelog.
MOST_WITHOUT_DASHBOARD = 10.5
MOST_WITH_DASHBOARD = 13.5
MOST_WITH_ESSENTIAL_ALARMS = 5.0


def make_stack(*resources: Mapping[str, Any]) -> BilledStack:
    return BilledStack({"Resources": {f"R{n}": resource for n, resource in enumerate(resources)}})


def make_alarm(**properties: Any) -> Mapping[str, Any]:
    return {"Type": f"{CLOUDWATCH}Alarm", "Properties": properties}


# Mendq's price list has no price for an invocation of this hook.
HOOK = "AWS::CloudFormation::LambdaHook"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_resource_type_of_the_stack_but_the_hook_has_a_price(name: str) -> None:
    deployed = BilledStack(template_of(name).raw)
    assert bill.list_unpriced_types(deployed) == sorted(deployed.resource_types & {HOOK})


@pytest.mark.parametrize("name", SETTINGS)
def test_idle_stack_costs_less_than_its_ceiling_with_and_without_dashboard(name: str) -> None:
    lines = bill.list_costs(BilledStack(template_of(name).raw))
    with_one, without = bill.sum_with_and_without_dashboard(lines)
    if SETTINGS[name].get("alarms") == "essential":
        assert 3 < without < MOST_WITH_ESSENTIAL_ALARMS
    else:
        assert 3 < without < MOST_WITHOUT_DASHBOARD < with_one < MOST_WITH_DASHBOARD
    total = sum(line.dollars for line in lines)
    assert total == pytest.approx(with_one if SETTINGS[name].get("dashboard", True) else without)


@parametrize_rows(KNOWN["alarms"])
def test_price_of_an_alarm_depends_on_the_metrics_that_it_reads(
    properties: dict[str, Any], dollars: float
) -> None:
    assert bill.PRICING_FUNCTION_BY_TYPE[f"{CLOUDWATCH}Alarm"](
        make_stack(make_alarm(**properties))
    ).dollars == pytest.approx(dollars)


@pytest.mark.parametrize(("expression", "times"), KNOWN["schedules"].items())
def test_runs_a_month_of_rate_and_cron_schedules_are_counted(expression: str, times: float) -> None:
    assert count_runs_a_month(expression) == pytest.approx(times)


@pytest.mark.parametrize("expression", KNOWN["uncountable"])
def test_schedule_that_cannot_be_counted_is_refused_as_not_priced(expression: str) -> None:
    with pytest.raises(NotPriced, match="cannot be counted"):
        count_runs_a_month(expression)


@pytest.mark.parametrize(
    "template", ["Resources:\n", {}, {"Outputs": {}}], ids=["YAML text", "empty", "no resources"]
)
def test_template_without_resources_is_refused_as_not_priced(template: Any) -> None:
    with pytest.raises(NotPriced):
        _ = BilledStack(template).resource_types


def _list_sent_metrics(
    send_metrics: Callable[[LambdaInvocation[Any]], None], alarms: str = FULL_ALARMS
) -> frozenset[str]:
    metrics = EphemeralMetrics(namespace=METRIC_NAMESPACE)
    call = make_invocation(metrics)
    call.settings.alarms = alarms
    send_metrics(call)
    (sent,) = metrics.serialize_metric_set()["_aws"]["CloudWatchMetrics"]
    return frozenset(metric["Name"] for metric in sent["Metrics"])


def _list_metrics_of_follow_up(alarms: str) -> frozenset[str]:
    """Return the metrics that follow-up sends in a run in which nothing happens."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    followed = FollowUpResult([])
    return _list_sent_metrics(lambda call: follow_up.send_metrics(call, followed, now), alarms)


def _list_metrics_of_probe() -> frozenset[str]:
    """Return the metrics that a probe sends, also the one that heal sends of it."""
    by_heal = _list_sent_metrics(lambda call: call.send_counts(BatchResult().count_by_metric()))
    return by_heal | {OwnMetric.PROBES_LOST}


def test_metrics_billed_all_month_are_those_that_the_lambdas_send_in_idle_runs() -> None:
    by_others = {
        deliver_report.DELIVERED_METRIC,
        deliver_report.NOT_DELIVERED_METRIC,
        OwnMetric.WEEKS_FAILED,
    }
    sent = _list_metrics_of_follow_up(FULL_ALARMS) | _list_metrics_of_probe() | by_others
    billed = {*OwnMetric} - METRICS_SENT_ON_EVENTS
    assert sent == billed, (
        f"Sent while nothing happens, and not in _METRICS_SENT_REGULARLY of mendq/model/names.py: "
        f"{sorted(sent - billed)}. In it, and not sent then: {sorted(billed - sent)}. "
        "docs/cost.md is derived from it."
    )


def test_follow_up_sends_no_gauge_metric_with_essential_alarms() -> None:
    every_metric = _list_metrics_of_follow_up(FULL_ALARMS)
    essential = _list_metrics_of_follow_up("essential")
    assert essential == every_metric - GAUGE_METRICS < every_metric


def test_custom_metrics_are_billed_all_month_or_for_the_hours_in_which_they_are_sent() -> None:
    """The nightly job and the weekly report send some metrics, so they are sent some hours."""
    always = len(_list_metrics_of_follow_up(FULL_ALARMS) | _list_metrics_of_probe())
    of_weeks = 2 * 30 / 7
    runs = 6 * (30 + 30 / 7)
    on = template_of("default")
    off = template_with(NIGHTLY_OFF)
    for template, sometimes, hours in ((on, 8, runs + of_weeks), (off, 2, of_weeks)):
        lines = {line.item: line for line in bill.list_costs(BilledStack(template.raw))}
        metrics = lines["custom metrics"]
        assert metrics.quantity == f"{always} all month, {sometimes} some hours of it"
        assert metrics.units_by_price[prices.METRIC_MONTH] == pytest.approx(always + hours / 720)
        assert ("EMR Serverless" in lines) is (template is on)


def _price_mapping(**properties: Any) -> bill.CostLine:
    """Return the cost line of a stack that is one event source mapping."""
    mapping = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": properties}
    price_mapping = bill.PRICING_FUNCTION_BY_TYPE["AWS::Lambda::EventSourceMapping"]
    return price_mapping(make_stack(mapping))


def test_event_source_mapping_with_maximum_concurrency_is_billed_for_five_pollers() -> None:
    line = _price_mapping(ScalingConfig={"MaximumConcurrency": 2})
    assert line.units_by_price == {prices.SQS_REQUEST: 5 * 3 * 60 * 720}


@pytest.mark.parametrize(
    ("config", "pollers"), [({"MinimumPollers": 7}, 7), ({"MaximumPollers": 9}, 2)]
)
def test_event_source_mapping_in_provisioned_mode_is_billed_for_its_minimum_of_pollers(
    config: dict[str, int], pollers: int
) -> None:
    line = _price_mapping(ProvisionedPollerConfig=config)
    assert line.units_by_price == {
        prices.SQS_REQUEST: pollers * 3 * 60 * 720,
        prices.POLLER_UNIT_HOUR: pollers * 720,
    }
    assert "AWS does not say" in line.reason
