from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from mendq.report.days import NARROW, WIDE, PerDay, Size, days_chart, per_day
from mendq.report.drawing import DARK, LIGHT, Look, as_picture
from mendq.report.read_summary import read
from tests.report.drawn import SVG, drawn
from tests.report.hostile import hostile_weeks
from tests.report.week_parts import notified, reached_a_person
from tests.report.weeks import incident, summary


def _texts(week: PerDay, size: Size = WIDE) -> list[str]:
    return [
        "".join(each.itertext()) for each in drawn(days_chart(week, size, LIGHT)).iter(f"{SVG}text")
    ]


def _week(cases: list[Any], **changes: object) -> PerDay:
    return per_day(summary(cases, **changes))


@pytest.mark.parametrize(("size", "look"), [(WIDE, LIGHT), (NARROW, DARK)])
def test_a_bar_for_each_day_and_symptom(size: Size, look: Look) -> None:
    cases = [incident(), incident(), incident(symptom="access_denied"), incident(day=2)]
    chart = days_chart(_week(cases), size, look)
    bars = [each for each in drawn(chart).iter(f"{SVG}path") if each.get("fill") in look.series]
    assert [each.get("fill") for each in bars].count(look.series[0]) == 2
    assert len(bars) == 3
    picture = as_picture(chart)
    assert picture.width >= size.width
    assert picture.height >= size.height


def test_every_day_has_its_number_and_a_day_not_read_has_none() -> None:
    cases = [incident(day=each) for each in (0, 0, 0, 0, 0, 2)]
    texts = _texts(_week(cases, not_seen={"nightly_runs_missing": ["2026-11-10"]}))
    assert texts[-14:-7] == ["5", "?", "1", "0", "0", "0", "0"]


def test_cases_that_reached_a_person_are_marked_on_their_day() -> None:
    at = ["2026-11-10T09:00:00Z", *["2026-11-13T14:02:31Z"] * 3, *["2026-11-15T23:59:59Z"] * 4]
    cases = [notified(notified_at=each) for each in at]
    week = _week([incident()], reached_a_person=reached_a_person(*cases))
    assert _texts(week)[-7:] == ["", "◆", "", "", "◆◆◆", "", "◆ 4"]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 9, 1_000])
def test_the_axis_counts_in_whole_numbers(most: int) -> None:
    rows = [{"date": "2026-11-09", "symptom": "a", "incidents": most, "failed_calls": 1}]
    texts = _texts(_week([], per_day=rows))
    ticks = [each for each in texts[:-14] if re.fullmatch(r"[\d,.]+", each)]
    assert len(ticks) == len(set(ticks)) >= 2
    assert all("." not in each for each in ticks)


def test_names_of_days_break_on_a_phone() -> None:
    assert "Mon 9" in _texts(_week([incident()]))
    assert "Mon9" in _texts(_week([incident()]), NARROW)


def test_the_picture_measures_with_a_font_that_travels_with_it() -> None:
    svg = ET.tostring(drawn(days_chart(_week([incident()]), WIDE, LIGHT)), encoding="unicode")
    assert set(re.findall(r'font-family="([^"]+)"', svg)) == {"Liberation Sans, Arial, sans-serif"}


@settings(max_examples=25)
@given(hostile_weeks())
def test_no_name_reaches_the_picture(document: dict[str, Any]) -> None:
    week = per_day(read(document))
    if week.has_incidents:
        svg = ET.tostring(drawn(days_chart(week, NARROW, LIGHT)), encoding="unicode")
        names = {re.sub(r"^\{.*\}", "", each.tag) for each in ET.fromstring(svg).iter()}  # noqa: S314
        assert names <= {"svg", "g", "rect", "path", "line", "text", "tspan"}
        assert all(re.fullmatch(r"[\w ,?:;'/◆-]*", each) for each in _texts(week, NARROW))
