"""What the template has of alarms: who may page, what the words say, what is watched."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from infra.alarms import NOTIFIED, WATCHED, fixes
from infra.alarms.alarm import AlarmDescription
from mendq.model.names import OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.infra.synthesized import (
    ACCOUNT,
    REGION,
    SETTINGS,
    THREE,
    Template,
    template_of,
    templates_of_three,
)

ROOT = Path(__file__).resolve().parents[3]
ON_METRICS = "AWS::CloudWatch::Alarm"
PAGING = "AWS::CloudWatch::CompositeAlarm"
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html
MOST_CHARACTERS = 1_024
# "2 of 6 periods of 5 minutes", "3 periods of 5 minutes", "30 of 60 minutes".
_IN_SO_MANY = r"\bin (\d+)(?: of (\d+))? (?:periods of (\d+) )?minutes"
# They are emptied by heal and by the probe itself; their ages and counts are watched elsewhere.
READ_BY_US = ("IntakeQueue", "ProbeQueue")


def _properties(template: Template, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in template.all(kind).values()]


def _watched_in(template: Template, dimension: str) -> set[str]:
    """The queues or functions that alarms on metrics name."""
    return {
        each["Value"]
        for properties in _properties(template, ON_METRICS)
        for each in properties.get("Dimensions", ())
        if each["Name"] == dimension
    }


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_pages_tells_one_topic_of_its_beginning_and_its_end(settings: str) -> None:
    template = template_of(settings)
    notified = tuple(each.called() for each in NOTIFIED)
    for each in (*_properties(template, ON_METRICS), *_properties(template, PAGING)):
        assert "InsufficientDataActions" not in each
        assert each.get("AlarmActions") == each.get("OKActions")
        name = each["AlarmName"]
        pages = name in notified or name.startswith(tuple(f"{start}-" for start in notified))
        assert len(each.get("AlarmActions", ())) == pages, name


@pytest.mark.parametrize("announced", NOTIFIED, ids=lambda announced: announced.name)
def test_a_page_goes_to_the_topic_of_its_severity(announced: Any) -> None:
    template = template_of("named")
    found = [
        each
        for each in (*_properties(template, ON_METRICS), *_properties(template, PAGING))
        if each["AlarmName"] == announced.called()
        or each["AlarmName"].startswith(f"{announced.called()}-")
    ]
    assert found
    for each in found:
        (topic,) = each["AlarmActions"]
        assert topic.lower().startswith(f"topics{announced.severity}topic")


@pytest.mark.parametrize("settings", SETTINGS)
def test_whatever_is_watched_reaches_people_by_one_page(settings: str) -> None:
    """All but what holds a page back, and what ends that."""
    template = template_of(settings)
    rules = [each["AlarmRule"] for each in _properties(template, PAGING) if "AlarmActions" in each]
    for name, each in template.all(ON_METRICS).items():
        given = each["Properties"]
        pages = sum(f'"arn:{name}"' in rule for rule in rules) + ("AlarmActions" in given)
        holding = ("mendq-fix-being-verified", "mendq-fix-verified-for-long")
        assert pages == (given["AlarmName"] not in holding), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_how_often_is_said_as_it_is_looked_at(settings: str) -> None:
    """Of periods, or of minutes where those are its periods."""
    said = set()
    for each in _properties(template_of(settings), ON_METRICS):
        (when,) = re.findall(r"^Fires: (.+)\.$", each["AlarmDescription"], re.MULTILINE)
        period = _period(each) // 60
        for of, periods, minutes in re.findall(_IN_SO_MANY, when):
            said.add(each["AlarmName"])
            looked_at = (each["DatapointsToAlarm"], each["EvaluationPeriods"], period)
            assert looked_at == (int(of), int(periods or of), int(minutes or 1)), when
        assert not re.search(r"\b(two|three|six|quarters?)\b", when), when
    assert len(said) >= 7


def _period(alarm: dict[str, Any]) -> int:
    """In seconds, of an alarm on one metric, or of the first of several."""
    if "Period" in alarm:
        return int(alarm["Period"])
    return int(
        next(each["MetricStat"]["Period"] for each in alarm["Metrics"] if "MetricStat" in each)
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_queue_that_keeps_what_was_given_up_is_watched(settings: str) -> None:
    template = template_of(settings)
    queues = {name for name in template.all("AWS::SQS::Queue") if not name.startswith(READ_BY_US)}
    assert len(queues) >= 8
    assert queues <= _watched_in(template, "QueueName")


def test_every_lambda_without_dlq_whose_caller_does_not_wait_is_watched() -> None:
    """approve and rollback answer the person who called them; of the scan it is told anyway."""
    template = template_of("default")
    retained = {
        each["Properties"]["FunctionName"]
        for each in template.all("AWS::Lambda::EventInvokeConfig").values()
        if "OnFailure" in each["Properties"].get("DestinationConfig", {})
    }
    answering = ("ApproveFunction", "RollbackFunction")
    wanted = {
        name
        for name in template.all("AWS::Lambda::Function")
        if name not in retained and not name.startswith(answering)
    }
    assert wanted
    (scan,) = (each for each in template.all("AWS::Lambda::Function") if each.startswith("Scan"))
    assert _watched_in(template, "FunctionName") == {*wanted, scan}


@pytest.mark.parametrize("settings", SETTINGS)
def test_metrics_of_ours_that_are_watched_are_metrics_that_we_send(settings: str) -> None:
    known = {str(each) for each in (*OwnMetric, *NightlyMetric)}
    for each in _properties(template_of(settings), ON_METRICS):
        if each.get("Namespace") == "Mendq":
            assert each["MetricName"] in known
            assert "Dimensions" not in each


def test_the_band_reads_up_alone_and_silence_is_no_spike() -> None:
    (found,) = (
        each
        for each in _properties(template_of("default"), ON_METRICS)
        if "ThresholdMetricId" in each
    )
    assert found["ComparisonOperator"] == "GreaterThanUpperThreshold"
    assert found["TreatMissingData"] == "notBreaching"
    assert "Threshold" not in found


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_alarm_says_what_it_means_what_to_type_and_where_to_read(settings: str) -> None:
    template = template_of(settings)
    announced = {each.called(): each for each in (*NOTIFIED, *WATCHED)}
    for each in (*_properties(template, ON_METRICS), *_properties(template, PAGING)):
        name = each["AlarmName"]
        words = announced[name] if name in announced else announced[_shared(name, announced)]
        said = each["AlarmDescription"]
        assert said.startswith(f"{words.impact}\nFires: {words.when}.\n")
        assert _first_of(said) == (ACCOUNT, f"{words.command} --region {REGION}")
        assert said.endswith(f"\nRunbook: {words.page}")
        assert len(said) <= MOST_CHARACTERS


def _first_of(description: str) -> tuple[str, str]:
    """The account, and what to type first there."""
    (found,) = re.findall(r"^First, in account (.+?): (.+)$", description, re.MULTILINE)
    account, command = found
    return account, command


def test_what_to_type_first_acts_on_the_stack_that_rang() -> None:
    """Not on the profile's own region: `mendq freeze` would stop another healer."""
    said = set()
    for template in templates_of_three():
        alarms = (*_properties(template, ON_METRICS), *_properties(template, PAGING))
        found = {_first_of(each["AlarmDescription"]) for each in alarms}
        said |= {(account, command.partition(" --region ")[2]) for account, command in found}
        assert len({account for account, _ in found}) == 1
        assert len({command.partition(" --region ")[2] for _, command in found}) == 1
    assert said == {(each["account"], each["region"]) for each in THREE}


@pytest.mark.parametrize("page", ["docs/alarms.md", "docs/runbooks/fixes_spike.md"])
def test_for_how_long_many_fixes_are_held_back_is_said_in_one_way(page: str) -> None:
    assert fixes.HELD_BACK_WHILE in (ROOT / page).read_text()
    assert fixes.HELD_BACK_WHILE in fixes.FIXES_SPIKE.when
    threats = (ROOT / "docs" / "threat-model.md").read_text()
    assert f"{fixes.HELD_AT_MOST} of {fixes.OF_MINUTES} minutes" in threats


def _shared(name: str, announced: dict[str, AlarmDescription]) -> str:
    """What several alarms are called before the dash and whose they are."""
    (found,) = (each for each in announced if name.startswith(f"{each}-"))
    return found


@pytest.mark.parametrize("announced", [*NOTIFIED, *WATCHED], ids=lambda announced: announced.name)
def test_a_runbook_is_there_and_speaks_of_the_alarm(announced: AlarmDescription) -> None:
    page = (ROOT / announced.page).read_text()
    assert f"`{announced.called()}" in page
    assert re.match(r"# \S", page)
    assert "## What to do" in page or "## Find where it ends" in page or "## Send it again" in page


def test_the_sign_of_life_is_what_lambda_counts_and_what_was_said() -> None:
    """`AWS/` is a namespace that PutMetricData takes from nobody."""
    (found,) = (
        each
        for each in _properties(template_of("default"), ON_METRICS)
        if each["AlarmName"] == "mendq-heartbeat-missing"
    )
    stats = {each["Id"]: each["MetricStat"] for each in found["Metrics"] if "MetricStat" in each}
    named = {name: each["Metric"]["Namespace"] for name, each in stats.items()}
    assert named == {"runs": "AWS/Lambda", "errors": "AWS/Lambda", "beats": "Mendq"}
    assert {each["Period"] for each in stats.values()} == {60}
    returned = [each for each in found["Metrics"] if each.get("ReturnData", True)]
    assert [each["Expression"] for each in returned] == ["(runs - errors) * beats"]
    assert found["TreatMissingData"] == "breaching"


def test_no_two_alarms_share_a_name() -> None:
    for settings in SETTINGS:
        template = template_of(settings)
        names = Counter(
            each["AlarmName"]
            for kind in (ON_METRICS, PAGING)
            for each in _properties(template, kind)
        )
        assert set(names.values()) == {1}
        assert all(re.fullmatch(r"mendq-[a-z-]+", each) for each in names)
