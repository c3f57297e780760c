"""The alarms of the templates: whom they notify, what they describe and what they watch."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.alarms import ALARMS_IN_COMPOSITES, NOTIFYING_ALARMS
from infra.alarms.alarm import AlarmDescription
from mendq.model.case import Severity
from mendq.model.names import OwnMetric
from mendq.notifications.text import link_runbooks
from tests.infra.alarms.evaluator import Data, MetricAlarm, State
from tests.infra.alarms.simulated import make_own_series
from tests.infra.synthesized import (
    ACCOUNT,
    REGION,
    SETTINGS,
    THREE,
    Template,
    template_of,
    template_with,
    templates_of_three,
)
from tests.infra.template_rules.limits import check_alarms_can_fire

ESSENTIAL = "existing trail"
FULL_ALARM_SETTINGS = [name for name in SETTINGS if name != ESSENTIAL]
ROOT = Path(__file__).resolve().parents[3]
METRIC_ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE_ALARM = "AWS::CloudWatch::CompositeAlarm"
# Heal and the probe empty these queues. Other alarms watch the age and number of their messages.
QUEUES_READ_BY_MENDQ = ("IntakeQueue", "ProbeQueue")
SUPPRESSING_ALARMS = ("mendq-fix-being-verified", "mendq-fix-verified-for-long")


def _list_properties(template: Template, *kinds: str) -> list[dict[str, Any]]:
    return [resource["Properties"] for kind in kinds for resource in template.all(kind).values()]


def _find_description(name: str) -> AlarmDescription:
    """Return the description of an alarm, also of one with a suffix such as its queue."""
    (match,) = (
        description
        for description in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if name == description.alarm_name()
        or (name.startswith(f"{description.alarm_name()}-") and description.severity)
    )
    return match


@pytest.mark.parametrize("settings", FULL_ALARM_SETTINGS)
def test_alarm_notifies_the_topic_of_its_severity_with_command_and_runbook(
    settings: str,
) -> None:
    """An alarm notifies the same topic when it starts and when it ends."""
    alarms = _list_properties(template_of(settings), METRIC_ALARM, COMPOSITE_ALARM)
    names = [alarm["AlarmName"] for alarm in alarms]
    assert len(set(names)) == len(names)
    for alarm in alarms:
        description = _find_description(alarm["AlarmName"])
        text = alarm["AlarmDescription"]
        topics = alarm.get("AlarmActions", [])
        assert re.fullmatch(r"mendq-[a-z-]+", alarm["AlarmName"])
        assert "InsufficientDataActions" not in alarm
        assert topics == alarm.get("OKActions", [])
        assert len(topics) == bool(description.severity)
        for topic in topics:
            assert topic.lower().startswith(f"topics{description.severity}topic")
        start = f"{description.impact}\nFires: {description.firing_condition}.\n"
        assert text.startswith(start)
        assert _read_first_command(text) == (ACCOUNT, f"{description.command} --region {REGION}")
        page = link_runbooks(
            f"Runbook: {description.runbook_path}", SETTINGS[settings].get("docsUrl")
        )
        assert text.endswith(f"\n{page}")


def test_essential_alarms_are_exactly_those_declared_essential_and_each_notifies_a_topic() -> None:
    """There is no composite alarm, so an alarm that would be part of one notifies directly."""
    template = template_of(ESSENTIAL)
    assert not template.all(COMPOSITE_ALARM)
    alarms = {alarm["AlarmName"]: alarm for alarm in _list_properties(template, METRIC_ALARM)}
    assert {name.replace("-dlq-intake", "-dlq") for name in alarms} == {
        description.alarm_name()
        for description in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if description.is_essential
    }
    for name, alarm in alarms.items():
        (topic,) = alarm["AlarmActions"]
        severity = _find_description(name).severity or Severity.URGENT
        assert topic.lower().startswith(f"topics{severity}topic"), name
    (watched,) = alarms["mendq-own-dlq-intake"]["Dimensions"]
    assert watched["Value"].startswith("IntakeDlq")


def _read_first_command(description: str) -> tuple[str, str]:
    """Return the account and the first command that the description tells people to type."""
    (match,) = re.findall(r"^First, in account (.+?): (.+)$", description, re.MULTILINE)
    account, command = match
    return account, command


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_metric_alarm_notifies_once_directly_or_by_a_composite_alarm_unless_it_suppresses(
    settings: str,
) -> None:
    """The alarms that only suppress another alarm are left out."""
    template = template_of(settings)
    rules = [
        alarm["AlarmRule"]
        for alarm in _list_properties(template, COMPOSITE_ALARM)
        if "AlarmActions" in alarm
    ]
    for name, alarm in template.all(METRIC_ALARM).items():
        properties = alarm["Properties"]
        composite_count = sum(f'"arn:{name}"' in rule for rule in rules)
        notification_count = composite_count + ("AlarmActions" in properties)
        assert notification_count == (properties["AlarmName"] not in SUPPRESSING_ALARMS), name


@pytest.mark.parametrize("settings", FULL_ALARM_SETTINGS)
def test_every_dlq_and_every_lambda_without_a_failure_destination_has_an_alarm(
    settings: str,
) -> None:
    """Approve, rollback and the hook answer their caller. The scan has an alarm of its own."""
    template = template_of(settings)
    watched = {
        dimension["Value"]
        for properties in _list_properties(template, METRIC_ALARM)
        for dimension in properties.get("Dimensions", ())
    }
    queues = {
        name
        for name in template.all("AWS::SQS::Queue")
        if not name.startswith(QUEUES_READ_BY_MENDQ)
    }
    retained = {
        invocation["FunctionName"]
        for invocation in _list_properties(template, "AWS::Lambda::EventInvokeConfig")
        if "OnFailure" in invocation.get("DestinationConfig", {})
    }
    functions = {
        name
        for name in template.all("AWS::Lambda::Function")
        if name.startswith("Scan")
        or (name not in retained and not name.startswith(("Approve", "Rollback", "TemplateHook")))
    }
    assert len(queues) >= 8
    assert functions
    assert (
        watched - {name for name in watched if name.startswith(QUEUES_READ_BY_MENDQ)}
        == queues | functions
    )


def test_alarm_description_commands_name_the_account_and_region_of_their_stack() -> None:
    """In the region of the profile, `mendq freeze` would stop the Mendq of another stack."""
    for template in templates_of_three():
        alarms = _list_properties(template, METRIC_ALARM, COMPOSITE_ALARM)
        commands = [_read_first_command(alarm["AlarmDescription"]) for alarm in alarms]
        places = {(account, command.partition(" --region ")[2]) for account, command in commands}
        assert len(places) == 1
        assert places <= {(environment["account"], environment["region"]) for environment in THREE}


@pytest.mark.parametrize(
    "description", [*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES], ids=lambda alarm: alarm.name
)
def test_every_alarm_has_a_runbook_that_names_the_alarm(description: AlarmDescription) -> None:
    page = ROOT / description.runbook_path
    assert page.exists(), (
        f"write {description.runbook_path}, as CONTRIBUTING describes for a metric with an alarm"
    )
    assert f"`{description.alarm_name()}" in page.read_text(), (
        f"{description.runbook_path} must name the alarm"
    )


@cache
def _make_template_with_probe_interval(minutes: int) -> Template:
    is_default = minutes == SETTINGS["proposing"]["timing"]["probeMinutes"]
    if is_default:
        return template_of("proposing")
    return template_with({"timing": {"probeMinutes": minutes}})


def _find_metric_alarm(name: str, template: Template) -> dict[str, Any]:
    (match,) = (
        alarm for alarm in _list_properties(template, METRIC_ALARM) if alarm["AlarmName"] == name
    )
    return match


@pytest.mark.parametrize("probe_minutes", [20, 1_430, 1_440])
def test_probe_lost_alarm_covers_a_late_probe_for_every_legal_probe_interval(
    probe_minutes: int,
) -> None:
    """The shortest and longest legal intervals, and one near the maximum alarm period of a day."""
    template = _make_template_with_probe_interval(probe_minutes)
    assert list(check_alarms_can_fire(template)) == []
    alarm = _find_metric_alarm("mendq-probe-lost", template)
    assert alarm["Period"] * alarm["EvaluationPeriods"] >= (probe_minutes + 10) * 60
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]


@pytest.mark.parametrize("late_minutes", [0, 9])
@pytest.mark.parametrize(("lost", "rings"), [((0, 0, 0, 0), False), ((0, 1, 2, 3), True)])
def test_probe_lost_alarm_with_a_daily_probe_fires_only_for_lost_probes(
    lost: tuple[int, ...], rings: bool, late_minutes: int
) -> None:
    alarm = MetricAlarm.read(
        _find_metric_alarm("mendq-probe-lost", _make_template_with_probe_interval(1_440))
    )
    sent = {day * 1_440 + late_minutes * (day % 2): float(count) for day, count in enumerate(lost)}
    data = Data({make_own_series(OwnMetric.PROBES_LOST): sent})
    states = set()
    for minute in range(1_440, 4 * 1_440):
        alarm.look(data, minute, lambda _: 0.0)
        states.add(alarm.state)
    assert (State.ALARM in states) is rings
