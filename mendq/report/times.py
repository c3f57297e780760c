"""Charts of times to heal: a strip of dots for each symptom, all on one logarithmic scale.

A vertical bar marks the median.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import altair as alt

from mendq.report.days import PerDay
from mendq.report.drawing import FONT, Palette, draw_both
from mendq.report.summary import Summary
from mendq.report.summary_parts import TimesToHeal
from mendq.report.words import duration, format_count, title

MOST_SYMPTOMS = 6
TOO_FEW = "n<5"


def make_time_strips(summary: Summary, week: PerDay) -> dict[str, Any]:
    """Return the strips of the symptoms with most healed incidents, for the page's template.

    The keys are `rows`, `axis`, `caption`, and `beyond`: a sentence about the other symptoms.
    Empty if no incident was timed.
    """
    timed = [times for times in summary.times_to_heal if times.seconds]
    if not timed:
        return {}
    shown = timed[:MOST_SYMPTOMS]
    others = timed[MOST_SYMPTOMS:]
    all_seconds: list[float] = []
    for times in shown:
        all_seconds.extend(times.seconds)
    ticks = ticks_around(all_seconds)
    beyond = ""
    if others:
        count = sum(times.incidents for times in others)
        symptoms = format_count(len(others), "more symptom")
        beyond = f"{symptoms}: {format_count(count, 'healed incident')}."
    is_complete = all(len(times.seconds) >= times.incidents for times in shown)
    dots = "Dots for a sample of healed incidents"
    if is_complete:
        dots = "A dot for each healed incident"
    return {
        "rows": [_make_row(times, week, ticks) for times in shown],
        "axis": draw_both(lambda palette: axis_chart(ticks, palette)),
        "caption": f"{dots}, on a log scale. The bar is the median.",
        "beyond": beyond,
    }


def _make_row(times: TimesToHeal, week: PerDay, ticks: Sequence[int]) -> dict[str, Any]:
    """Return a symptom's figures and strip. It has the symptom's colour in the chart of days."""
    symptom = title(times.symptom)
    seconds = times.seconds
    median = times.median_seconds or seconds[(len(seconds) - 1) // 2]
    series = week.series.index(symptom) if symptom in week.series else len(week.series) - 1
    shortest = duration(seconds[0])
    longest = duration(seconds[-1])
    span = shortest if shortest == longest else f"from {shortest} to {longest}"
    return {
        "symptom": symptom,
        "count": f"{times.incidents:,}",
        "median": duration(median),
        "p90": TOO_FEW if times.p90_seconds is None else duration(times.p90_seconds),
        # Median and p90 are printed beside the strip, so this text adds only the extremes.
        "in_words": f"{format_count(times.incidents, 'healed incident')}, {span}",
        "strip": draw_both(lambda palette: strip_chart(seconds, median, ticks, palette, series)),
    }


# Size of a strip in pixels, and of the axis below the strips.
WIDTH = 300
HEIGHT = 34
AXIS_HEIGHT = 22
MARGIN = {"left": 22, "right": 22}
# The page shows the strips smaller than the bars of the days, so their text must be larger.
FONT_SIZE = 13
# Possible ticks of the scale, in seconds.
TICKS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
# The strip has this many columns, each about as wide as a dot.
_COLUMNS = 60
# Height of the nth dot of a column (a Vega expression), so that dots do not cover each other.
_LANE = "(datum.nth % 2 ? -1 : 1) * (2 * floor(datum.nth / 2) % 5)"


def ticks_around(seconds: Sequence[float]) -> Sequence[int]:
    """Return the ticks from the one below the shortest time to the one above the longest.

    Times beyond the first or last possible tick are drawn at the end of the scale.
    """
    first = min(max(bisect_right(TICKS, min(seconds)) - 1, 0), len(TICKS) - 2)
    last = max(bisect_left(TICKS, max(seconds)), first + 1)
    return TICKS[first : last + 1]


def strip_chart(
    seconds: Sequence[float], median: float, ticks: Sequence[int], palette: Palette, series: int
) -> alt.LayerChart:
    """Return the chart of one symptom: a bar for the median, and dots that are drawn over it.

    Dots at the same place are drawn once. `series` is the index of the dots' colour.
    """
    share = f"log(datum.seconds / {ticks[0]}) / log({ticks[-1] / ticks[0]})"
    dots = (
        _chart_of(seconds)
        .transform_calculate(column=f"round(clamp({share}, 0, 1) * {_COLUMNS})")
        .transform_window(nth="row_number()", groupby=["column"])
        .transform_calculate(lane=_LANE)
        .transform_aggregate(seconds="min(seconds)", groupby=["column", "lane"])
        .mark_circle(size=34, color=palette.series[series], opacity=0.6, aria=False)
        .encode(y=alt.Y("lane:Q", scale=alt.Scale(domain=[-5, 5]), axis=None))
    )
    bar = _chart_of([median]).mark_tick(thickness=2.5, size=26, color=palette.ink, opacity=1)
    return _frame_chart([bar, dots], ticks, HEIGHT, palette, labels=False)


def axis_chart(ticks: Sequence[int], palette: Palette) -> alt.LayerChart:
    """Return the axis below the strips, with as many tick labels as there is room for."""
    names = {tick: duration(tick) for tick in ticks}
    empty_layer = _chart_of([]).mark_point()
    axis_options = {
        "labelExpr": f"{names}[datum.value]",
        "labelPadding": 4 - AXIS_HEIGHT,
        "grid": False,
    }
    return _frame_chart([empty_layer], ticks, AXIS_HEIGHT, palette, **axis_options)


def _chart_of(seconds: Sequence[float]) -> alt.Chart:
    """Return a chart whose data are these times."""
    return alt.Chart(alt.InlineData(values=[{"seconds": value} for value in seconds]))


def _frame_chart(
    layers: Sequence[alt.Chart],
    ticks: Sequence[int],
    height: int,
    palette: Palette,
    **axis_options: Any,
) -> alt.LayerChart:
    """Return the layers on the common time scale.

    All strips and the axis have the same margins, so that their scales are in line. A margin is as
    wide as half the text of a tick.
    """
    ends = alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False, clamp=True)
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=alt.X("seconds:Q", scale=ends, axis=alt.Axis(values=ticks, **axis_options)))
        .properties(width=WIDTH, height=height, background=palette.paper, padding=MARGIN)
        .configure(font=FONT, view=alt.ViewConfig(stroke=None), autosize="none")
        .configure_axis(title=None, ticks=False, domain=False, gridColor=palette.line)
        .configure_axisX(labelColor=palette.muted, labelFontSize=FONT_SIZE, labelFlush=False)
    )
    return chart
