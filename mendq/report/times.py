"""Times to heal by symptom: a strip of dots for each, all on one logarithmic scale.

A bar stands at the median.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from math import log10
from typing import Any, NamedTuple

import altair as alt

from mendq.report.days import PerDay
from mendq.report.drawing import FONT, Look, in_both
from mendq.report.summary import Summary, TimesToHeal
from mendq.report.words import counted, duration, visible

MOST_SYMPTOMS = 6
TOO_FEW = "n<5"


def times(summary: Summary, week: PerDay) -> dict[str, Any]:
    """The symptoms with most healed incidents, and the others; empty where none was timed."""
    timed = [each for each in summary.times_to_heal if each.seconds]
    if not timed:
        return {}
    shown, others = timed[:MOST_SYMPTOMS], timed[MOST_SYMPTOMS:]
    scale = scale_of([second for each in shown for second in each.seconds])
    count = sum(each.incidents for each in others)
    beyond = f"{counted(len(others), 'more symptom')}: {counted(count, 'healed incident')}."
    every = all(len(each.seconds) >= each.incidents for each in shown)
    dots = "A dot for each healed incident" if every else "Dots for a sample of healed incidents"
    return {
        "rows": [_row(each, week, scale) for each in shown],
        "axis": in_both(lambda look: axis_chart(scale, look)),
        "caption": f"{dots}, on a log scale. The bar is the median.",
        "beyond": beyond if others else "",
    }


def _row(times_of: TimesToHeal, week: PerDay, scale: Scale) -> dict[str, Any]:
    """A symptom's figures and strip, in the colour that the symptom has in the days' picture."""
    symptom, seconds = visible(times_of.symptom), times_of.seconds
    middle, p90 = times_of.median_seconds, times_of.p90_seconds
    median = seconds[(len(seconds) - 1) // 2] if middle is None else middle
    series = week.series.index(symptom) if symptom in week.series else len(week.series) - 1
    count = counted(times_of.incidents, "healed incident")
    ends = dict.fromkeys((duration(seconds[0]), duration(seconds[-1])))
    return {
        "symptom": symptom,
        "count": f"{times_of.incidents:,}",
        "median": duration(median),
        "p90": TOO_FEW if p90 is None else duration(p90),
        # The figures stand beside it, so the least and the most are what the dots add.
        "in_words": f"{count}, {'from ' * (len(ends) > 1)}{' to '.join(ends)}",
        "strip": in_both(lambda look: strip_chart(seconds, median, scale, look, series)),
    }


WIDTH, HEIGHT, AXIS_HEIGHT, MARGIN = 300, 34, 22, 22
# The strips are shown smaller than the bars, whose labels are as large in the end.
FONT_SIZE = 13
# Where somebody reads a scale of seconds.
TICKS = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3_600: "1 h",
    21_600: "6 h",
    86_400: "1 d",
    604_800: "7 d",
    2_592_000: "30 d",
}
_MOST_TICKS = 5
_BIN = 0.016  # of the scale's width: about a dot
# Where a dot goes whose place is taken: above, below, further above ...
_LANES = (0.0, -5.0, 5.0, -9.0, 9.0, -2.5, 2.5, -7.0, 7.0)


class Scale(NamedTuple):
    """The seconds from which to which all strips go; what is beyond stands at an end."""

    least: int
    most: int

    @property
    def ticks(self) -> list[int]:
        found = [each for each in TICKS if self.least <= each <= self.most]
        return found[:: -(-len(found) // _MOST_TICKS)]


def scale_of(seconds: Sequence[float]) -> Scale:
    """From the tick below the shortest to the one above the longest."""
    ticks = list(TICKS)
    first = min(max(bisect_right(ticks, min(seconds)) - 1, 0), len(ticks) - 2)
    last = min(max(bisect_left(ticks, max(seconds)), first + 1), len(ticks) - 1)
    return Scale(ticks[first], ticks[last])


def strip_chart(
    seconds: Sequence[float], median: float, scale: Scale, look: Look, series: int
) -> alt.LayerChart:
    """One symptom's dots, hidden by nothing: side by side, and above the bar."""
    plain: dict[str, Any] = {"title": None, "labels": False, "ticks": False, "domain": False}
    axis = alt.Axis(values=scale.ticks, gridColor=look.line, **plain)
    dots = _marked(_placed(seconds, scale)).mark_circle(
        size=34, color=look.series[series], opacity=0.6, aria=False
    )
    bar = _marked([(median, 0.0)]).mark_tick(
        thickness=2.5, size=26, color=look.ink, opacity=1, orient="vertical"
    )
    return _framed([bar, dots], scale, axis, HEIGHT, look)


def axis_chart(scale: Scale, look: Look) -> alt.LayerChart:
    """What stands below the strips: the ticks of their scale."""
    rows = [{"seconds": each, "text": TICKS[each]} for each in scale.ticks]
    texts = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(fontSize=FONT_SIZE, color=look.muted, baseline="middle")
        .encode(text="text:N")
    )
    return _framed([texts], scale, None, AXIS_HEIGHT, look)


def _marked(places: Sequence[tuple[float, float]]) -> alt.Chart:
    rows = [{"seconds": seconds, "lane": lane} for seconds, lane in places]
    lane = alt.Y("lane:Q", scale=alt.Scale(domain=[-12, 12]), axis=None)
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).encode(y=lane)
    return chart


def _framed(
    layers: Sequence[alt.Chart], scale: Scale, axis: alt.Axis | None, height: int, look: Look
) -> alt.LayerChart:
    """A margin as wide as half a tick's text, the same for all, so that they stand in line."""
    logarithmic = alt.Scale(type="log", domain=list(scale), nice=False, clamp=True)
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=alt.X("seconds:Q", scale=logarithmic, axis=axis))
        .properties(
            width=WIDTH,
            height=height,
            background=look.paper,
            padding={"left": MARGIN, "right": MARGIN, "top": 0, "bottom": 0},
            autosize=alt.AutoSizeParams(type="none"),
        )
        .configure(font=FONT, view=alt.ViewConfig(stroke=None))
    )
    return chart


def _placed(seconds: Sequence[float], scale: Scale) -> list[tuple[float, float]]:
    """Each dot and its lane; one that falls on another's very place is not drawn twice."""
    taken = Counter[int]()
    width = log10(scale.most / scale.least)
    placed: dict[tuple[float, float], None] = {}
    for each in seconds:
        column = round(log10(max(each, scale.least) / scale.least) / width / _BIN)
        placed[each, _LANES[taken[column] % len(_LANES)]] = None
        taken[column] += 1
    return list(placed)
