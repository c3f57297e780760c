"""Charts of the report: bars, axes, dots and texts."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report.days import IncidentsPerDay, make_incidents_per_day
from mendq.report.drawing import (
    DARK_PALETTE,
    LIGHT_PALETTE,
    NARROW_CHART_SIZE,
    WIDE_CHART_SIZE,
    ChartSize,
    Palette,
    make_days_chart,
    make_picture,
    make_png,
)
from mendq.report.times import (
    POSSIBLE_TICK_SECONDS,
    choose_ticks,
    make_axis_chart,
    make_strip_chart,
    make_time_strips,
)
from tests.report.hostile import PAYLOADS
from tests.report.weeks import (
    make_incident,
    make_notified_case,
    make_reached_a_person,
    make_summary,
)
from tests.report.weeks import make_times_to_heal as times_of

SVG = "{http://www.w3.org/2000/svg}"


def _draw(chart: alt.LayerChart) -> ET.Element:
    """The SVG of a chart, out of the address that the page gives it."""
    head, _, body = make_picture(chart).data_url.partition(",")
    assert head == "data:image/svg+xml;base64"
    return ET.fromstring(b64decode(body))  # noqa: S314 - our own picture


def _read_texts(week: IncidentsPerDay, size: ChartSize = WIDE_CHART_SIZE) -> list[str]:
    drawn = _draw(make_days_chart(week, size, LIGHT_PALETTE))
    return ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]


def _count_per_day(cases: list[Any], **changes: object) -> IncidentsPerDay:
    return make_incidents_per_day(make_summary(cases, **changes))


SIZES_AND_LOOKS = pytest.mark.parametrize(
    ("size", "look"), [(WIDE_CHART_SIZE, LIGHT_PALETTE), (NARROW_CHART_SIZE, DARK_PALETTE)]
)


@SIZES_AND_LOOKS
def test_days_chart_has_one_bar_for_each_day_and_symptom(size: ChartSize, look: Palette) -> None:
    cases = [
        make_incident(),
        make_incident(),
        make_incident(symptom="access_denied"),
        make_incident(day=2),
    ]
    chart = make_days_chart(_count_per_day(cases), size, look)
    bars = [
        path for path in _draw(chart).iter(f"{SVG}path") if path.get("fill") in look.series_colours
    ]
    assert [bar.get("fill") for bar in bars].count(look.series_colours[0]) == 2
    assert len(bars) == 3


@SIZES_AND_LOOKS
def test_days_chart_has_its_size_on_the_page_and_twice_the_pixels_in_a_mail(
    size: ChartSize, look: Palette
) -> None:
    chart = make_days_chart(_count_per_day([make_incident()]), size, look)
    picture = make_picture(chart)
    png = make_png(chart)
    assert picture.width >= size.width
    assert picture.height >= size.height
    width, height = (int.from_bytes(png[offset : offset + 4], "big") for offset in (16, 20))
    assert (width, height) == (2 * picture.width, 2 * picture.height)


def test_days_chart_shows_counts_and_notifications_per_day_and_a_question_mark_if_unread() -> None:
    at = ["2026-11-10T09:00:00Z", *["2026-11-13T14:02:31Z"] * 3, *["2026-11-15T23:59:59Z"] * 4]
    week = _count_per_day(
        [make_incident(day=day) for day in (0, 0, 0, 0, 0, 2)],
        not_seen={"nightly_runs_missing": ["2026-11-10"]},
        reached_a_person=make_reached_a_person(
            *(make_notified_case(notified_at=moment) for moment in at)
        ),
    )
    assert _read_texts(week)[-14:] == [*"5?10000", "", "◆ 1", "", "", "◆ 3", "", "◆ 4"]


def test_days_chart_breaks_the_names_of_days_only_on_a_phone() -> None:
    week = _count_per_day([make_incident()])
    assert "Mon 9" in _read_texts(week, WIDE_CHART_SIZE)
    assert "Mon9" in _read_texts(week, NARROW_CHART_SIZE), (
        "the name is broken into two lines, whose texts are read without a space"
    )


@pytest.mark.parametrize("most", [1, 3, 4, 1_000])
def test_days_chart_axis_has_only_whole_numbers(most: int) -> None:
    rows = [{"date": "2026-11-09", "symptom": "a", "incidents": most, "failed_calls": 1}]
    texts = _read_texts(_count_per_day([], per_day=rows))
    ticks = [tick for tick in texts[:-14] if re.fullmatch(r"[\d,.]+", tick)]
    assert len(ticks) == len(set(ticks)) >= 2
    assert all("." not in tick for tick in ticks)


def test_days_chart_contains_no_hostile_name_and_only_known_fonts() -> None:
    rows = [
        {
            "date": f"2026-11-{9 + n % 7:02}",
            "symptom": symptom,
            "incidents": 40 - n,
            "failed_calls": 1,
        }
        for n, symptom in enumerate(PAYLOADS)
    ]
    for week_rows in (rows, rows[:5], rows[5:10], rows[-5:]):
        week = _count_per_day([], per_day=week_rows)
        drawn = _draw(make_days_chart(week, NARROW_CHART_SIZE, LIGHT_PALETTE))
        names = {element.tag.removeprefix(SVG) for element in drawn.iter()}
        assert names <= {"svg", "g", "rect", "path", "line", "text", "tspan"}
        assert all(
            re.fullmatch(r"[\w ,?:;'/◆-]*", text) for text in _read_texts(week, NARROW_CHART_SIZE)
        )
    fonts = set(re.findall(r'font-family="([^"]+)"', ET.tostring(drawn, encoding="unicode")))
    assert fonts == {"Liberation Sans, Arial, sans-serif"}


COLOUR = LIGHT_PALETTE.series_colours[0]


def _draw_strip(*seconds: float) -> ET.Element:
    ranked = sorted(seconds)
    median = ranked[len(ranked) // 2]
    return _draw(make_strip_chart(ranked, median, choose_ticks(ranked), LIGHT_PALETTE, 0))


def _find_dots(*seconds: float) -> list[tuple[float, float]]:
    dots = [path for path in _draw_strip(*seconds).iter(f"{SVG}path") if path.get("fill") == COLOUR]
    places = [re.findall(r"[\d.]+", dot.get("transform") or "") for dot in dots]
    return [(float(x), float(y)) for x, y in places]


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [
        ([10], ["10 s", "1 min"]),
        ([20, 400], ["10 s", "1 min", "10 min"]),
        ([5, 90_000], ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d"]),
    ],
)
def test_time_axis_has_the_ticks_that_enclose_all_times_most_narrowly(
    seconds: list[float], ticks: list[str]
) -> None:
    assert _list_drawn_ticks(seconds) == ticks


def test_time_axis_begins_at_one_second_at_the_earliest_and_ends_at_thirty_days_at_the_latest() -> (
    None
):
    assert _list_drawn_ticks([0]) == ["1 s", "10 s"]
    forty_days_in_seconds = 40 * 86_400
    assert _list_drawn_ticks([forty_days_in_seconds]) == ["7 d", "30 d"]


def _list_drawn_ticks(seconds: list[float]) -> list[str]:
    drawn = _draw(make_axis_chart(choose_ticks(seconds), DARK_PALETTE))
    return ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]


@given(st.lists(st.floats(0, 2**63, allow_nan=False), min_size=1, max_size=20))
def test_time_axis_has_two_or_more_ticks_up_to_the_largest_time(seconds: list[float]) -> None:
    ticks = choose_ticks(seconds)
    assert len(ticks) >= 2
    assert ticks[-1] >= min(max(seconds), max(POSSIBLE_TICK_SECONDS))


def test_strip_chart_draws_a_dot_for_each_time_and_stacks_equal_times() -> None:
    places = _find_dots(20, 40, 80, 300)
    assert len(places) == 4
    assert [x for x, _ in places] == sorted({x for x, _ in places})
    assert len(set(_find_dots(41, 41, 41))) == 3
    assert len({y for _, y in _find_dots(20, 60, 300)}) == 1


def test_strip_chart_draws_at_most_nine_dots_for_200_equal_times() -> None:
    assert len(_find_dots(*[41.0] * 200)) <= 9, "dots at the same place are drawn as one"


def test_strip_chart_draws_its_dots_in_front_of_the_bar_at_the_median() -> None:
    fills = [path.get("fill") for path in _draw_strip(41, 41, 41).iter(f"{SVG}path")]
    assert fills.index(COLOUR) > max(
        n for n, fill in enumerate(fills) if fill == LIGHT_PALETTE.text_colour
    )


def test_strip_chart_shares_its_colour_with_the_days_chart_and_its_width_with_the_axis() -> None:
    cases = [make_incident(symptom=symptom) for symptom in ("b", "b", "a")]
    week = make_summary(cases, times_to_heal=[times_of("a", 1), times_of("b", 2)])
    found = make_time_strips(week, make_incidents_per_day(week))
    pictures = [*(row["strip"]["light"] for row in found["rows"]), found["axis"]["light"]]
    assert len({picture.width for picture in pictures}) == 1
    svgs = [b64decode(picture.data_url.partition(",")[2]).decode() for picture in pictures]
    assert [LIGHT_PALETTE.series_colours[1] in svg for svg in svgs] == [True, False, False]
    assert [LIGHT_PALETTE.series_colours[0] in svg for svg in svgs] == [False, True, False]
