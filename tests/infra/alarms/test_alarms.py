"""What the template has of alarms: who may page, what the words say, what is watched."""

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
from tests.infra.alarms.simulated import own
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
from tests.infra.template_rules.limits import alarms_can_fire

ESSENTIAL = "existing trail"
FULL = [each for each in SETTINGS if each != ESSENTIAL]
ROOT = Path(__file__).resolve().parents[3]
ON_METRICS = "AWS::CloudWatch::Alarm"
PAGING = "AWS::CloudWatch::CompositeAlarm"
# They are emptied by heal and by the probe itself; their ages and counts are watched elsewhere.
READ_BY_US = ("IntakeQueue", "ProbeQueue")
HOLDING = ("mendq-fix-being-verified", "mendq-fix-verified-for-long")


def _properties(template: Template, *kinds: str) -> list[dict[str, Any]]:
    return [each["Properties"] for kind in kinds for each in template.all(kind).values()]


def _words(name: str) -> AlarmDescription:
    """What is said of an alarm, or of several that are called alike before whose they are."""
    (found,) = (
        each
        for each in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if name == each.alarm_name() or (name.startswith(f"{each.alarm_name()}-") and each.severity)
    )
    return found


@pytest.mark.parametrize("settings", FULL)
def test_every_alarm_notifies_the_topic_of_its_severity_and_describes_impact_command_and_runbook(
    settings: str,
) -> None:
    """What pages tells one topic of its beginning and its end."""
    alarms = _properties(template_of(settings), ON_METRICS, PAGING)
    names = [each["AlarmName"] for each in alarms]
    assert len(set(names)) == len(names)
    for each in alarms:
        words, said = _words(each["AlarmName"]), each["AlarmDescription"]
        topics = each.get("AlarmActions", [])
        assert re.fullmatch(r"mendq-[a-z-]+", each["AlarmName"])
        assert "InsufficientDataActions" not in each
        assert topics == each.get("OKActions", [])
        assert len(topics) == bool(words.severity)
        for topic in topics:
            assert topic.lower().startswith(f"topics{words.severity}topic")
        assert said.startswith(f"{words.impact}\nFires: {words.firing_condition}.\n")
        assert _first_of(said) == (ACCOUNT, f"{words.command} --region {REGION}")
        page = link_runbooks(f"Runbook: {words.runbook_path}", SETTINGS[settings].get("docsUrl"))
        assert said.endswith(f"\n{page}")


def test_essential_alarms_are_exactly_those_declared_essential_and_each_notifies_a_topic() -> None:
    """None is joined: what would be says itself what it means, as urgently."""
    template = template_of(ESSENTIAL)
    assert not template.all(PAGING)
    alarms = {each["AlarmName"]: each for each in _properties(template, ON_METRICS)}
    assert {name.replace("-dlq-intake", "-dlq") for name in alarms} == {
        each.alarm_name()
        for each in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES)
        if each.is_essential
    }
    for name, each in alarms.items():
        (topic,) = each["AlarmActions"]
        severity = _words(name).severity or Severity.URGENT
        assert topic.lower().startswith(f"topics{severity}topic"), name
    (watched,) = alarms["mendq-own-dlq-intake"]["Dimensions"]
    assert watched["Value"].startswith("IntakeDlq")


def _first_of(description: str) -> tuple[str, str]:
    """The account, and what to type first there."""
    (found,) = re.findall(r"^First, in account (.+?): (.+)$", description, re.MULTILINE)
    account, command = found
    return account, command


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_metric_alarm_notifies_directly_or_through_exactly_one_composite_alarm(
    settings: str,
) -> None:
    """All but what holds a page back, and what ends that."""
    template = template_of(settings)
    rules = [each["AlarmRule"] for each in _properties(template, PAGING) if "AlarmActions" in each]
    for name, each in template.all(ON_METRICS).items():
        given = each["Properties"]
        pages = sum(f'"arn:{name}"' in rule for rule in rules) + ("AlarmActions" in given)
        assert pages == (given["AlarmName"] not in HOLDING), name


@pytest.mark.parametrize("settings", FULL)
def test_every_dlq_and_every_lambda_without_a_failure_destination_has_an_alarm(
    settings: str,
) -> None:
    """Approve, rollback and the hook answer whoever asks; of the scan it is told anyway."""
    template = template_of(settings)
    watched = {
        each["Value"]
        for properties in _properties(template, ON_METRICS)
        for each in properties.get("Dimensions", ())
    }
    queues = {name for name in template.all("AWS::SQS::Queue") if not name.startswith(READ_BY_US)}
    retained = {
        each["FunctionName"]
        for each in _properties(template, "AWS::Lambda::EventInvokeConfig")
        if "OnFailure" in each.get("DestinationConfig", {})
    }
    functions = {
        name
        for name in template.all("AWS::Lambda::Function")
        if name.startswith("Scan")
        or (name not in retained and not name.startswith(("Approve", "Rollback", "TemplateHook")))
    }
    assert len(queues) >= 8
    assert functions
    assert watched - {name for name in watched if name.startswith(READ_BY_US)} == queues | functions


def test_alarm_description_commands_name_the_account_and_region_of_their_stack() -> None:
    """Not on the profile's own region: `mendq freeze` would stop another healer."""
    for template in templates_of_three():
        alarms = _properties(template, ON_METRICS, PAGING)
        found = [_first_of(each["AlarmDescription"]) for each in alarms]
        said = {(account, command.partition(" --region ")[2]) for account, command in found}
        assert len(said) == 1
        assert said <= {(each["account"], each["region"]) for each in THREE}


@pytest.mark.parametrize(
    "announced", [*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES], ids=lambda announced: announced.name
)
def test_every_alarm_has_a_runbook_that_names_the_alarm(announced: AlarmDescription) -> None:
    page = ROOT / announced.runbook_path
    assert page.exists(), (
        f"write {announced.runbook_path}, as CONTRIBUTING says of a metric with an alarm"
    )
    assert f"`{announced.alarm_name()}" in page.read_text(), (
        f"{announced.runbook_path} must name the alarm"
    )


@cache
def _probed_every(minutes: int) -> Template:
    proposing = minutes == SETTINGS["proposing"]["timing"]["probeMinutes"]
    asked = {"timing": {"probeMinutes": minutes}}
    return template_of("proposing") if proposing else template_with(asked)


def _named(name: str, template: Template) -> dict[str, Any]:
    (found,) = (each for each in _properties(template, ON_METRICS) if each["AlarmName"] == name)
    return found


@pytest.mark.parametrize("probe_minutes", [20, 1_430, 1_440])
def test_probe_lost_alarm_covers_a_late_probe_for_every_legal_probe_interval(
    probe_minutes: int,
) -> None:
    """At the ends of what is legal, and where a day is too short for one period."""
    template = _probed_every(probe_minutes)
    assert list(alarms_can_fire(template)) == []
    alarm = _named("mendq-probe-lost", template)
    assert alarm["Period"] * alarm["EvaluationPeriods"] >= (probe_minutes + 10) * 60
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]


@pytest.mark.parametrize("late_minutes", [0, 9])
@pytest.mark.parametrize(("lost", "rings"), [((0, 0, 0, 0), False), ((0, 1, 2, 3), True)])
def test_probe_lost_alarm_with_a_daily_probe_fires_only_for_lost_probes(
    lost: tuple[int, ...], rings: bool, late_minutes: int
) -> None:
    alarm = MetricAlarm.read(_named("mendq-probe-lost", _probed_every(1_440)))
    sent = {day * 1_440 + late_minutes * (day % 2): float(each) for day, each in enumerate(lost)}
    data, states = Data({own(OwnMetric.PROBES_LOST): sent}), set()
    for minute in range(1_440, 4 * 1_440):
        alarm.look(data, minute, lambda _: 0.0)
        states.add(alarm.state)
    assert (State.ALARM in states) is rings
