"""The CloudWatch dashboard shows every alarm that notifies people, and three questions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.infra.synthesized import template_of, templates_of_three

DASHBOARD = "AWS::CloudWatch::Dashboard"


def _read_widgets(settings: str = "default") -> list[dict[str, Any]]:
    body = template_of(settings).only(DASHBOARD)["DashboardBody"]
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


@pytest.mark.parametrize("settings", ["default", "named"])
def test_dashboard_shows_every_alarm_with_an_action_once(settings: str) -> None:
    shown = [
        arn
        for widget in _read_widgets(settings)
        if widget["type"] == "alarm"
        for arn in widget["properties"]["alarms"]
    ]
    paging = {
        name
        for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        for name, alarm in template_of(settings).all(kind).items()
        if "AlarmActions" in alarm["Properties"]
    }
    assert sorted(shown) == sorted(f"arn:{name}" for name in paging)


def test_dashboard_asks_three_questions_with_commands_for_its_own_region() -> None:
    for template in templates_of_three():
        body = json.loads(template.only(DASHBOARD)["DashboardBody"])
        region = template.only(DASHBOARD)["DashboardName"].removeprefix("mendq-")
        texts = [widget["properties"].get("markdown", "") for widget in body["widgets"]]
        asked = re.findall(r"## (.+\?)\n`mendq (.+?)`", "\n".join(texts))
        assert [question for question, _ in asked] == [
            "Is the healer well?",
            "What is broken now?",
            "What did it do today?",
        ]
        assert all(command.endswith(f" --region {region}") for _, command in asked)
