"""The dashboard's picture says what it is, and shows every widget that the template has."""

from __future__ import annotations

import importlib
import json
import re
from types import ModuleType

import pytest

from tests.docs.test_states_page import DOCS
from tests.infra.alarms.evaluator import Data
from tests.infra.synthesized import template_of

_NUMBERS = re.compile(r'font-size="30">([^<]+)</text><text[^>]*>([^<]+)<')

_TILES = re.compile(r'y="(\d+)" width="6" height="34"')


@pytest.fixture
def dashboard_picture(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("dashboard_picture")


def test_it_shows_the_templates_dashboard_at_the_end_of_the_day(
    dashboard_picture: ModuleType,
) -> None:
    svg = dashboard_picture.drawn().svg()
    dashboard = template_of("named").only("AWS::CloudWatch::Dashboard")
    titles = [
        each["properties"]["title"]
        for each in json.loads(dashboard["DashboardBody"])["widgets"]
        if each["type"] != "text"
    ]
    assert len(titles) > 10
    assert [each for each in titles if f">{each}<" not in svg] == []
    assert "not a screenshot" in svg
    assert svg.count(">ALARM<") == 2


def test_a_number_that_nobody_sent_is_no_zero_unless_it_is_filled(
    dashboard_picture: ModuleType,
) -> None:
    template = template_of("named")
    every = [
        *template.all("AWS::CloudWatch::Alarm"),
        *template.all("AWS::CloudWatch::CompositeAlarm"),
    ]
    svg = dashboard_picture.Drawn(template, Data(), dict.fromkeys(every, "any OK")).svg()
    by_label = {label: number for number, label in _NUMBERS.findall(svg)}
    assert by_label["escalated"] == by_label["fixes"] == "--"
    assert by_label["refusals"] == by_label["messages sent back"] == "0"


def test_no_alarm_lies_beyond_its_box(dashboard_picture: ModuleType) -> None:
    drawn = dashboard_picture.drawn()
    shown = [each for each in drawn.widgets if each["type"] == "alarm"]
    assert len(shown) == 2
    for each in shown:
        wide = each["width"] * dashboard_picture.COLUMN - dashboard_picture.GAP
        high = each["height"] * dashboard_picture.ROW - dashboard_picture.GAP
        tiles = drawn._alarms(each["properties"]["alarms"], wide)
        assert max(int(y) for y in _TILES.findall(tiles)) + 34 <= high


def test_the_picture_that_is_kept_is_a_picture() -> None:
    assert (DOCS / "dashboard.png").read_bytes().startswith(b"\x89PNG")
