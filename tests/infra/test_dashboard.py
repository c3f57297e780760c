"""The one page: three questions, and every alarm that pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.infra.synthesized import template_of, templates_of_three

DASHBOARD = "AWS::CloudWatch::Dashboard"


def _widgets(settings: str = "default") -> list[dict[str, Any]]:
    body = template_of(settings).only(DASHBOARD)["DashboardBody"]
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


@pytest.mark.parametrize("settings", ["default", "named"])
def test_dashboard_shows_every_alarm_with_an_action_once(settings: str) -> None:
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


def test_dashboard_asks_three_questions_with_commands_for_its_own_region() -> None:
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
