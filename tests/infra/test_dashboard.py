"""The one page: three questions, every alarm that pages, and nothing that nobody sends."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mendq.model.names import WHEN_SOMETHING_HAPPENS
from tests.infra.synthesized import template_of, templates_of_three

DASHBOARD = "AWS::CloudWatch::Dashboard"
# What an account gets of the first three dashboards for nothing.
# https://aws.amazon.com/cloudwatch/pricing/
MOST_METRICS = 50


def _widgets(settings: str = "default") -> list[dict[str, Any]]:
    body = template_of(settings).only(DASHBOARD)["DashboardBody"]
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


def _metrics(settings: str = "default") -> list[list[Any]]:
    """Those with a name; expressions are made of them."""
    shown = [each["properties"].get("metrics", ()) for each in _widgets(settings)]
    every = [metric for each in shown for metric in each]
    return [each for each in every if len(each) > 1]


@pytest.mark.parametrize("settings", ["default", "named"])
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


def test_a_number_of_what_is_sent_only_when_something_happens_is_filled_with_zeros() -> None:
    filled = set()
    for widget in (each for each in _widgets() if each["properties"].get("view") == "singleValue"):
        metrics = widget["properties"]["metrics"]
        expressions = {each[0].get("expression") for each in metrics if len(each) == 1}
        sparse = [each for each in metrics if len(each) > 1 and each[1] in WHEN_SOMETHING_HAPPENS]
        for _, name, said in sparse:
            assert said["visible"] is False, name
            assert f"FILL({said['id']}, 0)" in expressions, name
            filled.add(name)
    assert filled >= {"FailedCallsSeen", "RedrivenMessages"}


def test_it_costs_nothing_by_the_number_of_its_metrics() -> None:
    assert len(_metrics()) <= MOST_METRICS


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
