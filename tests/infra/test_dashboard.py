"""The one page: three questions, every alarm that pages, and nothing that nobody sends."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mendq.model.names import WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.infra.synthesized import SETTINGS, template_of, templates_of_three

DASHBOARD = "AWS::CloudWatch::Dashboard"
# What an account gets of the first three dashboards for nothing.
# https://aws.amazon.com/cloudwatch/pricing/
MOST_METRICS = 50
SHOWN = [name for name, each in SETTINGS.items() if each.get("dashboard", True)]


def _widgets(settings: str = "default") -> list[dict[str, Any]]:
    body = template_of(settings).only(DASHBOARD)["DashboardBody"]
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


def _metrics(settings: str = "default") -> list[list[Any]]:
    """Those with a name; expressions are made of them."""
    every = [
        metric for each in _widgets(settings) for metric in each["properties"].get("metrics", ())
    ]
    return [each for each in every if len(each) > 1]


@pytest.mark.parametrize("settings", SHOWN)
def test_every_alarm_that_pages_is_on_it_once(settings: str) -> None:
    shown = [
        arn
        for each in _widgets(settings)
        if each["type"] == "alarm"
        for arn in each["properties"]["alarms"]
    ]
    paging = {
        name
        for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        for name, each in template_of(settings).all(kind).items()
        if "AlarmActions" in each["Properties"]
    }
    assert sorted(shown) == sorted(f"arn:{name}" for name in paging)


@pytest.mark.parametrize("settings", SHOWN)
def test_it_shows_metrics_that_are_sent_and_costs_nothing_by_their_number(settings: str) -> None:
    known = {str(each) for each in (*OwnMetric, *NightlyMetric)}
    metrics = _metrics(settings)
    assert {each[1] for each in metrics if each[0] == "Mendq"} <= known
    assert 20 < len(metrics) <= MOST_METRICS


def test_a_number_of_what_is_sent_only_when_something_happens_is_filled_with_zeros() -> None:
    numbers = [each for each in _widgets() if each["properties"].get("view") == "singleValue"]
    sparse = set()
    for widget in numbers:
        metrics = widget["properties"]["metrics"]
        expressions = {each[0].get("expression") for each in metrics if len(each) == 1}
        for _, name, said in (each for each in metrics if len(each) > 1):
            if name in WHEN_SOMETHING_HAPPENS:
                sparse.add(name)
                assert said["visible"] is False, name
                assert f"FILL({said['id']}, 0)" in expressions, name
    assert sparse >= {"FailedCallsSeen", "RedrivenMessages"}


@pytest.mark.parametrize(
    ("kind", "of_ours", "left_out"),
    [
        ("AWS::Lambda::Function", "FunctionName", ()),
        ("AWS::SQS::Queue", "QueueName", ("ProbeQueue",)),
    ],
)
def test_every_lambda_and_every_queue_of_ours_is_on_it(
    kind: str, of_ours: str, left_out: tuple[str, ...]
) -> None:
    """But the probe's, which never holds a message."""
    shown = {each[3] for each in _metrics() if of_ours in each}
    ours = {each for each in template_of("default").all(kind) if not each.startswith(left_out)}
    assert shown == ours


def test_it_asks_three_questions_and_each_command_is_for_the_stacks_own_region() -> None:
    for template in templates_of_three():
        body = json.loads(template.only(DASHBOARD)["DashboardBody"])
        region = template.only(DASHBOARD)["DashboardName"].removeprefix("mendq-")
        texts = [each["properties"].get("markdown", "") for each in body["widgets"]]
        asked = [each for text in texts for each in re.findall(r"## (.+\?)\n`mendq (.+?)`", text)]
        assert [question for question, _ in asked] == [
            "Is the healer well?",
            "What is broken now?",
            "What did it do today?",
        ]
        assert all(command.endswith(f" --region {region}") for _, command in asked)
