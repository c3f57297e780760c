"""Times to heal by symptom: a strip of dots for each, all on one logarithmic scale.

A bar stands at the median.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import altair as alt

from mendq.report.days import PerDay
from mendq.report.drawing import FONT, Look, in_both
from mendq.report.summary import Summary
from mendq.report.summary_parts import TimesToHeal
from mendq.report.words import counted, duration, title

MOST_SYMPTOMS = 6
TOO_FEW = "n<5"


def times(summary: Summary, week: PerDay) -> dict[str, Any]:
    """The symptoms with most healed incidents, and the others; empty where none was timed."""
    timed = [each for each in summary.times_to_heal if each.seconds]
    if not timed:
        return {}
    shown, others = timed[:MOST_SYMPTOMS], timed[MOST_SYMPTOMS:]
    ticks = ticks_around([second for each in shown for second in each.seconds])
    count = sum(each.incidents for each in others)
    beyond = f"{counted(len(others), 'more symptom')}: {counted(count, 'healed incident')}."
    every = all(len(each.seconds) >= each.incidents for each in shown)
    dots = "A dot for each healed incident" if every else "Dots for a sample of healed incidents"
    return {
        "rows": [_row(each, week, ticks) for each in shown],
        "axis": in_both(lambda look: axis_chart(ticks, look)),
        "caption": f"{dots}, on a log scale. The bar is the median.",
        "beyond": beyond if others else "",
    }


def _row(times_of: TimesToHeal, week: PerDay, ticks: Sequence[int]) -> dict[str, Any]:
    """A symptom's figures and strip, in the colour that the symptom has in the days' picture."""
    symptom, seconds = title(times_of.symptom), times_of.seconds
    median = times_of.median_seconds or seconds[(len(seconds) - 1) // 2]
    series = week.series.index(symptom) if symptom in week.series else len(week.series) - 1
    count = counted(times_of.incidents, "healed incident")
    ends = dict.fromkeys((duration(seconds[0]), duration(seconds[-1])))
    return {
        "symptom": symptom,
        "count": f"{times_of.incidents:,}",
        "median": duration(median),
        "p90": TOO_FEW if times_of.p90_seconds is None else duration(times_of.p90_seconds),
        # The figures stand beside it, so the least and the most are what the dots add.
        "in_words": f"{count}, {'from ' * (len(ends) > 1)}{' to '.join(ends)}",
        "strip": in_both(lambda look: strip_chart(seconds, median, ticks, look, series)),
    }


WIDTH, HEIGHT, AXIS_HEIGHT, MARGIN = 300, 34, 22, {"left": 22, "right": 22}
# The strips are shown smaller than the bars, whose labels are as large in the end.
FONT_SIZE = 13
# Where somebody reads a scale of seconds.
TICKS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
# Of as many columns across, each about a dot: where the nth dot in one stands beside the line.
_COLUMNS = 60
_LANE = "(datum.nth % 2 ? -1 : 1) * (2 * floor(datum.nth / 2) % 5)"


def ticks_around(seconds: Sequence[float]) -> Sequence[int]:
    """From the tick below the shortest to the one above the longest; beyond is at an end."""
    first = min(max(bisect_right(TICKS, min(seconds)) - 1, 0), len(TICKS) - 2)
    last = max(bisect_left(TICKS, max(seconds)), first + 1)
    return TICKS[first : last + 1]


def strip_chart(
    seconds: Sequence[float], median: float, ticks: Sequence[int], look: Look, series: int
) -> alt.LayerChart:
    """One symptom's dots above the bar; those that fall on the very same place are drawn once."""
    share = f"log(datum.seconds / {ticks[0]}) / log({ticks[-1] / ticks[0]})"
    dots = (
        _at(seconds)
        .transform_calculate(column=f"round(clamp({share}, 0, 1) * {_COLUMNS})")
        .transform_window(nth="row_number()", groupby=["column"])
        .transform_calculate(lane=_LANE)
        .transform_aggregate(seconds="min(seconds)", groupby=["column", "lane"])
        .mark_circle(size=34, color=look.series[series], opacity=0.6, aria=False)
        .encode(y=alt.Y("lane:Q", scale=alt.Scale(domain=[-5, 5]), axis=None))
    )
    bar = _at([median]).mark_tick(thickness=2.5, size=26, color=look.ink, opacity=1)
    return _framed([bar, dots], ticks, HEIGHT, look, labels=False)


def axis_chart(ticks: Sequence[int], look: Look) -> alt.LayerChart:
    """What stands below the strips: the ticks of their scale, as many as there is room for."""
    names, nothing = {each: duration(each) for each in ticks}, _at([]).mark_point()
    said = {"labelExpr": f"{names}[datum.value]", "labelPadding": 4 - AXIS_HEIGHT, "grid": False}
    return _framed([nothing], ticks, AXIS_HEIGHT, look, **said)


def _at(seconds: Sequence[float]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[{"seconds": each} for each in seconds]))


def _framed(
    layers: Sequence[alt.Chart], ticks: Sequence[int], height: int, look: Look, **of_axis: Any
) -> alt.LayerChart:
    """A margin as wide as half a tick's text, the same for all, so that they stand in line."""
    ends = alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False, clamp=True)
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=alt.X("seconds:Q", scale=ends, axis=alt.Axis(values=ticks, **of_axis)))
        .properties(width=WIDTH, height=height, background=look.paper, padding=MARGIN)
        .configure(font=FONT, view=alt.ViewConfig(stroke=None), autosize="none")
        .configure_axis(title=None, ticks=False, domain=False, gridColor=look.line)
        .configure_axisX(labelColor=look.muted, labelFontSize=FONT_SIZE, labelFlush=False)
    )
    return chart
