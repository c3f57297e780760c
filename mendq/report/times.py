"""Charts of the times to heal: one strip of dots for each symptom.

All strips have the same logarithmic time scale. A vertical bar marks the median.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import altair as alt

from mendq.report.days import IncidentsPerDay
from mendq.report.drawing import FONT_FAMILIES, Palette, draw_for_both_palettes
from mendq.report.summary import Summary
from mendq.report.summary_parts import TimesToHeal
from mendq.report.words import format_count, format_duration, format_symptom

MAXIMUM_STRIPS = 6
TOO_FEW_FOR_P90_TEXT = "n<5"


def make_time_strips(summary: Summary, incidents_per_day: IncidentsPerDay) -> dict[str, Any]:
    """Return the template's data of the strips: one strip for each symptom that has known times.

    At most MAXIMUM_STRIPS symptoms have a strip.

    Returns:
        A dict, empty if no time is known. Its keys are `rows`, one for each symptom; `axis`, the
        drawn axis; `caption`; and `beyond`, a sentence about the other symptoms with times, empty
        if there are none.
    """
    symptoms_with_heal_times = [
        symptom_times for symptom_times in summary.times_to_heal if symptom_times.seconds
    ]
    if not symptoms_with_heal_times:
        return {}
    drawn_symptoms = symptoms_with_heal_times[:MAXIMUM_STRIPS]
    other_symptoms = symptoms_with_heal_times[MAXIMUM_STRIPS:]
    shown_heal_seconds: list[float] = []
    for symptom_times in drawn_symptoms:
        shown_heal_seconds.extend(symptom_times.seconds)
    tick_seconds = choose_ticks(shown_heal_seconds)
    other_symptoms_sentence = ""
    if other_symptoms:
        other_healed_incident_count = sum(
            symptom_times.incidents for symptom_times in other_symptoms
        )
        symptoms_text = format_count(len(other_symptoms), "more symptom")
        other_symptoms_sentence = (
            f"{symptoms_text}: {format_count(other_healed_incident_count, 'healed incident')}."
        )
    are_all_incidents_timed = all(
        len(symptom_times.seconds) >= symptom_times.incidents for symptom_times in drawn_symptoms
    )
    dots_explanation = "Dots for a sample of healed incidents"
    if are_all_incidents_timed:
        dots_explanation = "A dot for each healed incident"
    return {
        "rows": [
            _make_strip_row(symptom_times, incidents_per_day, tick_seconds)
            for symptom_times in drawn_symptoms
        ],
        "axis": draw_for_both_palettes(lambda palette: make_axis_chart(tick_seconds, palette)),
        "caption": f"{dots_explanation}, on a log scale. The bar is the median.",
        "beyond": other_symptoms_sentence,
    }


def _make_strip_row(
    symptom_times: TimesToHeal, incidents_per_day: IncidentsPerDay, tick_seconds: Sequence[int]
) -> dict[str, Any]:
    """Return the template's data of one symptom: its numbers as texts, and the drawn strip.

    The dots have the colour of the symptom in the chart of incidents per day. If the symptom is not
    named there, they have the colour of the last series.
    """
    symptom_title = format_symptom(symptom_times.symptom)
    heal_seconds = symptom_times.seconds
    median_seconds = symptom_times.median_seconds or heal_seconds[(len(heal_seconds) - 1) // 2]
    series_index = (
        incidents_per_day.series_titles.index(symptom_title)
        if symptom_title in incidents_per_day.series_titles
        else len(incidents_per_day.series_titles) - 1
    )
    shortest_text = format_duration(heal_seconds[0])
    longest_text = format_duration(heal_seconds[-1])
    range_text = (
        shortest_text
        if shortest_text == longest_text
        else f"from {shortest_text} to {longest_text}"
    )
    return {
        "symptom": symptom_title,
        "count": f"{symptom_times.incidents:,}",
        "median": format_duration(median_seconds),
        "p90": TOO_FEW_FOR_P90_TEXT
        if symptom_times.p90_seconds is None
        else format_duration(symptom_times.p90_seconds),
        # Median and p90 are printed beside the strip, so this text adds only the extremes.
        "in_words": f"{format_count(symptom_times.incidents, 'healed incident')}, {range_text}",
        "strip": draw_for_both_palettes(
            lambda palette: make_strip_chart(
                heal_seconds, median_seconds, tick_seconds, palette, series_index
            )
        ),
    }


# Size of a strip in pixels, and of the axis below the strips.
STRIP_WIDTH_PIXELS = 300
STRIP_HEIGHT_PIXELS = 34
AXIS_HEIGHT_PIXELS = 22
STRIP_MARGIN = {"left": 22, "right": 22}
# The page shows the strips smaller than the bars of the days, so their text must be larger.
TICK_LABEL_FONT_SIZE = 13
# Possible ticks of the scale, in seconds.
POSSIBLE_TICK_SECONDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
# The strip has this many columns, each about as wide as a dot.
_STRIP_COLUMN_COUNT = 60
# Height of the nth dot of a column (a Vega expression), so that dots do not cover each other.
_DOT_HEIGHT_EXPRESSION = "(datum.nth % 2 ? -1 : 1) * (2 * floor(datum.nth / 2) % 5)"


def choose_ticks(heal_seconds: Sequence[float]) -> Sequence[int]:
    """Return the ticks of the time scale, in seconds.

    The scale begins at the largest of POSSIBLE_TICK_SECONDS that is not above the shortest time,
    and ends at the smallest that is not below the longest time. It has at least two ticks. A time
    outside of POSSIBLE_TICK_SECONDS is drawn at the end of the scale.
    """
    first_tick_index = min(
        max(bisect_right(POSSIBLE_TICK_SECONDS, min(heal_seconds)) - 1, 0),
        len(POSSIBLE_TICK_SECONDS) - 2,
    )
    last_tick_index = max(
        bisect_left(POSSIBLE_TICK_SECONDS, max(heal_seconds)), first_tick_index + 1
    )
    return POSSIBLE_TICK_SECONDS[first_tick_index : last_tick_index + 1]


def make_strip_chart(
    heal_seconds: Sequence[float],
    median_seconds: float,
    tick_seconds: Sequence[int],
    palette: Palette,
    series_index: int,
) -> alt.LayerChart:
    """Return the strip of one symptom: a dot for each time, and a bar at the median.

    Several dots at the same place are drawn as one.

    Args:
        heal_seconds: The times to heal.
        median_seconds: Their median.
        tick_seconds: The ticks of the time scale.
        palette: The colours.
        series_index: Index of the dots' colour in `palette.series_colours`.
    """
    position_expression = (
        f"log(datum.seconds / {tick_seconds[0]}) / log({tick_seconds[-1] / tick_seconds[0]})"
    )
    dots_layer = (
        _make_times_chart(heal_seconds)
        .transform_calculate(
            column=f"round(clamp({position_expression}, 0, 1) * {_STRIP_COLUMN_COUNT})"
        )
        .transform_window(nth="row_number()", groupby=["column"])
        .transform_calculate(lane=_DOT_HEIGHT_EXPRESSION)
        .transform_aggregate(seconds="min(seconds)", groupby=["column", "lane"])
        .mark_circle(size=34, color=palette.series_colours[series_index], opacity=0.6, aria=False)
        .encode(y=alt.Y("lane:Q", scale=alt.Scale(domain=[-5, 5]), axis=None))
    )
    median_layer = _make_times_chart([median_seconds]).mark_tick(
        thickness=2.5, size=26, color=palette.text_colour, opacity=1
    )
    return _combine_layers_on_time_scale(
        [median_layer, dots_layer], tick_seconds, STRIP_HEIGHT_PIXELS, palette, labels=False
    )


def make_axis_chart(tick_seconds: Sequence[int], palette: Palette) -> alt.LayerChart:
    """Return the time axis that the page shows below the strips."""
    label_by_tick = {seconds: format_duration(seconds) for seconds in tick_seconds}
    empty_layer = _make_times_chart([]).mark_point()
    axis_options = {
        "labelExpr": f"{label_by_tick}[datum.value]",
        "labelPadding": 4 - AXIS_HEIGHT_PIXELS,
        "grid": False,
    }
    return _combine_layers_on_time_scale(
        [empty_layer], tick_seconds, AXIS_HEIGHT_PIXELS, palette, **axis_options
    )


def _make_times_chart(seconds: Sequence[float]) -> alt.Chart:
    """Return a chart, still without marks, whose rows are these times in seconds."""
    return alt.Chart(alt.InlineData(values=[{"seconds": value} for value in seconds]))


def _combine_layers_on_time_scale(
    chart_layers: Sequence[alt.Chart],
    tick_seconds: Sequence[int],
    chart_height: int,
    palette: Palette,
    **axis_options: Any,
) -> alt.LayerChart:
    """Combine layers into one chart with the common time scale.

    All strips and the axis have the same width and margins, so that equal times are below each
    other. A margin has room for half the label of a tick.
    """
    time_scale = alt.Scale(
        type="log", domain=[tick_seconds[0], tick_seconds[-1]], nice=False, clamp=True
    )
    chart: alt.LayerChart = (
        alt.layer(*chart_layers)
        .encode(
            x=alt.X(
                "seconds:Q", scale=time_scale, axis=alt.Axis(values=tick_seconds, **axis_options)
            )
        )
        .properties(
            width=STRIP_WIDTH_PIXELS,
            height=chart_height,
            background=palette.background_colour,
            padding=STRIP_MARGIN,
        )
        .configure(font=FONT_FAMILIES, view=alt.ViewConfig(stroke=None), autosize="none")
        .configure_axis(title=None, ticks=False, domain=False, gridColor=palette.grid_colour)
        .configure_axisX(
            labelColor=palette.muted_text_colour,
            labelFontSize=TICK_LABEL_FONT_SIZE,
            labelFlush=False,
        )
    )
    return chart
