from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report.drawing import DARK, LIGHT, as_picture
from mendq.report.times import Scale, Strip, axis_chart, scale_of, strip_chart
from tests.report.drawn import SVG, drawn

COLOUR = LIGHT.series[0]
SECONDS = st.floats(0, 2**63, allow_nan=False)


def _strip(*seconds: float, p90: float | None = None) -> ET.Element:
    ranked = tuple(sorted(seconds))
    strip = Strip(ranked, ranked[len(ranked) // 2], p90)
    return drawn(strip_chart(strip, scale_of(ranked), LIGHT, COLOUR))


def _dots(svg: ET.Element) -> list[tuple[float, float]]:
    dots = [each for each in svg.iter(f"{SVG}path") if each.get("fill") == COLOUR]
    places = [re.findall(r"[\d.]+", each.get("transform") or "") for each in dots]
    return [(float(x), float(y)) for x, y in places]


@pytest.mark.parametrize(
    ("seconds", "least", "most", "ticks"),
    [
        ([5], 1, 10, ["1 s", "10 s"]),
        ([0], 1, 10, ["1 s", "10 s"]),
        ([10], 10, 60, ["10 s", "1 min"]),
        ([20, 400], 10, 600, ["10 s", "1 min", "10 min"]),
        ([5, 90_000], 1, 604_800, ["1 s", "1 min", "1 h", "1 d"]),
        ([2_592_000], 604_800, 2_592_000, ["7 d", "30 d"]),
        ([3e6], 604_800, 3e6, ["7 d", "30 d"]),
    ],
)
def test_the_scale_holds_every_dot_between_two_ticks(
    seconds: list[float], least: float, most: float, ticks: list[str]
) -> None:
    scale = scale_of(seconds)
    assert (scale.least, scale.most) == (least, most)
    assert [text for _, text in scale.ticks] == ticks


@given(st.lists(SECONDS, min_size=1, max_size=20))
def test_a_scale_is_never_upside_down_nor_crowded(seconds: list[float]) -> None:
    scale = scale_of(seconds)
    assert 0 < scale.least < scale.most
    assert scale.most >= max(seconds)
    assert 1 <= len(scale.ticks) <= 5


def test_a_dot_for_each_time_in_the_order_of_the_scale() -> None:
    places = _dots(_strip(20, 40, 80, 300))
    assert len(places) == 4
    assert [x for x, _ in places] == sorted({x for x, _ in places})


def test_equal_times_stand_side_by_side_and_far_apart_ones_on_one_line() -> None:
    assert len(set(_dots(_strip(41, 41, 41)))) == 3
    assert len({y for _, y in _dots(_strip(20, 60, 300))}) == 1


def test_what_would_lie_on_the_very_same_place_is_drawn_once() -> None:
    assert len(_dots(_strip(*[41.0] * 200))) <= 9


def test_a_dot_is_hidden_by_neither_bar_nor_ring() -> None:
    fills = [each.get("fill") for each in _strip(41, 41, 41, 41, 41, p90=41).iter(f"{SVG}path")]
    bar, ring = LIGHT.ink, LIGHT.paper
    last_below = max(n for n, each in enumerate(fills) if each in {bar, ring})
    assert fills.index(COLOUR) > last_below


def test_the_ring_is_there_where_there_is_a_percentile() -> None:
    def rings(svg: ET.Element) -> int:
        paths = svg.iter(f"{SVG}path")
        return sum(
            (each.get("fill"), each.get("stroke")) == ("#ffffff", LIGHT.ink) for each in paths
        )

    assert rings(_strip(20, 40, 80)) == 0
    assert rings(_strip(20, 40, 80, 90, 300, p90=300)) == 1


def test_axis_and_strips_are_equally_wide() -> None:
    scale = Scale(1, 600)
    strip = as_picture(strip_chart(Strip((41.0,), 41.0, None), scale, DARK, COLOUR))
    axis = drawn(axis_chart(scale, DARK))
    assert f"{strip.width}" == axis.get("width")
    texts = ["".join(each.itertext()) for each in axis.iter(f"{SVG}text")]
    assert texts == ["1 s", "10 s", "1 min", "10 min"]
    assert {each.get("font-size") for each in axis.iter(f"{SVG}text")} == {"13px"}
