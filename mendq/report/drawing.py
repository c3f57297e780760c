"""The pictures of the report: bar charts of days and weeks, and bars of one case on a time scale.

Altair describes a bar chart and vl-convert draws it. Only numbers and days go into such a chart.

A case's picture has lanes: rows with horizontal bars. Their labels may be other people's text. The
template `lanes.svg.j2` draws the lanes inside the page, in the page's colours, and escapes the
labels.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from math import log1p
from typing import Any

import altair as alt
import vl_convert
from msgspec import Struct

from mendq.report.days import NOTIFIED_CASE_MARK, IncidentsPerDay
from mendq.report.summary_parts import CaseWithPictures, NamedTimeSpan, SummaryTimelinePoint
from mendq.report.tiles import WeeklyFigures
from mendq.report.words import format_clock_time, format_duration, format_short_day, make_visible

# The font that vl-convert brings with it to measure text, because Lambda has no fonts. The reader's
# own font draws the text.
FONT_FAMILIES = "Liberation Sans, Arial, sans-serif"


class Palette(Struct, frozen=True):
    """CSS colours of a chart, chosen for a light or a dark background."""

    text_colour: str
    muted_text_colour: str
    grid_colour: str
    background_colour: str
    bad_news_colour: str
    # Colours that are easy to tell apart, in the order of the page's legend.
    series_colours: tuple[str, ...]


LIGHT_PALETTE = Palette(
    text_colour="#16202c",
    muted_text_colour="#566472",
    grid_colour="#e3e8ed",
    background_colour="#ffffff",
    bad_news_colour="#b3202c",
    series_colours=("#0b67c2", "#d1435b", "#e3a008", "#5b7f95", "#7b5ea7"),
)
DARK_PALETTE = Palette(
    text_colour="#e8eef4",
    muted_text_colour="#9fb0c0",
    grid_colour="#2b3743",
    background_colour="#18212b",
    bad_news_colour="#ff8f88",
    series_colours=("#4f9df0", "#f07084", "#f0b94a", "#86b3c9", "#b39ae0"),
)


class Picture(Struct, frozen=True):
    """A chart as an SVG image that a page can embed."""

    # A `data:` address, which contains the image.
    data_url: str
    # Size in CSS pixels.
    width: int
    height: int


def make_picture(chart: alt.LayerChart) -> Picture:
    """Draw a chart as an SVG image, with its size and a `data:` address for an `img` element.

    A browser runs no script inside such an image and loads no file for it.
    """
    # Validation takes a third of a page's time, and vl-convert refuses a wrong chart anyway.
    svg_text = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), allowed_base_urls=[])
    width = float(_read_svg_attribute(svg_text, "width"))
    height = float(_read_svg_attribute(svg_text, "height"))
    data_url = f"data:image/svg+xml;base64,{b64encode(svg_text.encode()).decode('ascii')}"
    return Picture(data_url, round(width), round(height))


def draw_for_both_palettes(make_chart: Callable[[Palette], alt.LayerChart]) -> dict[str, Picture]:
    """Draw a chart twice, for a light and a dark page. The keys are `light` and `dark`."""
    return {
        "light": make_picture(make_chart(LIGHT_PALETTE)),
        "dark": make_picture(make_chart(DARK_PALETTE)),
    }


def make_png(chart: alt.LayerChart, scale: float = 2) -> bytes:
    """Draw a chart as a PNG for a mail, and return its bytes.

    The PNG is `scale` times as wide and as high, in pixels, as the chart in CSS pixels.
    """
    png_bytes: bytes = vl_convert.vegalite_to_png(
        chart.to_dict(), scale=scale, allowed_base_urls=[]
    )
    return png_bytes


def _read_svg_attribute(svg_text: str, attribute_name: str) -> str:
    """Return the value of the first XML attribute with this name in an SVG document.

    Empty if there is none.
    """
    return svg_text.partition(f' {attribute_name}="')[2].partition('"')[0]


SPARKLINE_WIDTH = 168
SPARKLINE_HEIGHT = 26


def make_sparkline_chart(
    weekly_figures: WeeklyFigures, bad_news_figures: WeeklyFigures, palette: Palette
) -> alt.LayerChart:
    """Return the small bar chart of a tile: a bar for each week, this week's in a stronger colour.

    A week without a figure has no bar.

    Args:
        weekly_figures: The figures of the weeks, this week's last.
        bad_news_figures: Parts of these figures that are drawn over the bars in the colour for
            bad news. Empty, or as long as `weekly_figures`.
        palette: The colours.
    """
    zero_line = alt.Chart(alt.InlineData(values=[{"value": 0}])).mark_rule(
        color=palette.grid_colour
    )
    bar_colours = [palette.series_colours[3]] * (len(weekly_figures) - 1)
    bar_colours.append(palette.series_colours[0])
    chart_layers = [zero_line, _make_week_bars(weekly_figures, bar_colours)]
    if any(bad_news_figures):
        chart_layers.append(
            _make_week_bars(bad_news_figures, [palette.bad_news_colour] * len(bad_news_figures))
        )
    highest_figure = max((figure for figure in weekly_figures if figure), default=1)
    chart: alt.LayerChart = (
        alt.layer(*chart_layers)
        .encode(y=alt.Y("value:Q", axis=None, scale=alt.Scale(domain=[0, highest_figure])))
        .properties(
            width=SPARKLINE_WIDTH,
            height=SPARKLINE_HEIGHT,
            background=palette.background_colour,
            padding=0,
        )
        .configure(font=FONT_FAMILIES, view=alt.ViewConfig(stroke=None))
    )
    return chart


def _make_week_bars(weekly_figures: WeeklyFigures, bar_colours: list[str]) -> alt.Chart:
    """Return a bar chart with one bar for each week. A week whose value is None has no bar."""
    chart_rows = []
    for week_index, figure in enumerate(weekly_figures):
        if figure is not None:
            chart_rows.append(
                {"week": week_index, "value": figure, "colour": bar_colours[week_index]}
            )
    week_axis = alt.X("week:O", axis=None, scale=alt.Scale(domain=[*range(len(weekly_figures))]))
    bar_chart = alt.Chart(alt.InlineData(values=chart_rows)).mark_bar()
    chart: alt.Chart = bar_chart.encode(x=week_axis, color=alt.Color("colour:N", scale=None))
    return chart


AXIS_TICK_COUNT = 4


class ChartSize(Struct, frozen=True):
    """Size of a chart in pixels, without its axes, and the size of its texts.

    The page stretches or shrinks the picture with its texts to the width of a column.
    """

    width: int
    height: int
    # Vega expression for the label of a day.
    day_label_expression: str
    font_size: int


WIDE_CHART_SIZE = ChartSize(width=480, height=210, day_label_expression="datum.label", font_size=11)
# A mail has only one picture, which a phone shrinks and a desktop stretches.
MAIL_CHART_SIZE = ChartSize(
    width=370, height=190, day_label_expression="split(datum.label, ' ')", font_size=13
)
NARROW_CHART_SIZE = ChartSize(
    width=272, height=180, day_label_expression="split(datum.label, ' ')", font_size=11
)


def make_days_chart(
    incidents_per_day: IncidentsPerDay, chart_size: ChartSize, palette: Palette
) -> alt.LayerChart:
    """Return the bar chart of the incidents per day.

    Every day of the week has a place, even without incidents or if it was not read. The mark for
    cases that notified a person is above the day's number, because a phone has no room beside it.
    """
    incident_count_texts = [day.figure for day in incidents_per_day.days]
    notified_case_texts = [
        f"{NOTIFIED_CASE_MARK} {day.notified_cases:,}" if day.notified_cases else ""
        for day in incidents_per_day.days
    ]
    text_options: dict[str, Any] = {"baseline": "bottom", "fontSize": chart_size.font_size}
    chart_layers = [
        _make_day_bars(incidents_per_day, palette),
        _make_bar_texts(incidents_per_day, incident_count_texts).mark_text(
            **text_options, dy=-4, color=palette.text_colour, fontWeight="bold"
        ),
        _make_bar_texts(incidents_per_day, notified_case_texts).mark_text(
            **text_options, dy=-6 - chart_size.font_size, color=palette.bad_news_colour
        ),
    ]
    day_axis = alt.X(
        "day:N",
        scale=alt.Scale(domain=[day.name for day in incidents_per_day.days], paddingInner=0.4),
        axis=alt.Axis(
            labelAngle=0,
            labelExpr=chart_size.day_label_expression,
            labelPadding=6,
            domainColor=palette.grid_colour,
        ),
    )
    chart: alt.LayerChart = (
        alt.layer(*chart_layers)
        .encode(x=day_axis)
        .properties(
            width=chart_size.width, height=chart_size.height, background=palette.background_colour
        )
        .configure(font=FONT_FAMILIES, padding=4, view=alt.ViewConfig(stroke=None))
        .configure_axis(
            title=None,
            labelFontSize=chart_size.font_size,
            labelColor=palette.muted_text_colour,
            ticks=False,
        )
    )
    return chart


def _make_day_bars(incidents_per_day: IncidentsPerDay, palette: Palette) -> alt.Chart:
    """Return the stacked bars, one for each day with incidents, and the axis of the counts.

    If every day has fewer than AXIS_TICK_COUNT incidents, the ticks are set here, so that all are
    whole numbers.
    """
    chart_rows = []
    for day in incidents_per_day.days:
        for series_index, incident_count in enumerate(day.incident_counts):
            if incident_count:
                chart_rows.append(
                    {"day": day.name, "series": f"{series_index}", "incidents": incident_count}
                )
    series_keys = [
        f"{series_index}" for series_index in range(len(incidents_per_day.series_titles))
    ]
    colour_scale = alt.Scale(
        domain=series_keys, range=list(palette.series_colours[: len(series_keys)])
    )
    highest_incident_count = max(day.total for day in incidents_per_day.days)
    tick_values = (
        list(range(highest_incident_count + 1))
        if highest_incident_count < AXIS_TICK_COUNT
        else alt.Undefined
    )
    count_axis = alt.Axis(
        format=",d",
        values=tick_values,
        tickCount=AXIS_TICK_COUNT,
        gridColor=palette.grid_colour,
        domain=False,
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=chart_rows))
        .mark_bar(stroke=palette.background_colour, strokeWidth=1)
        .encode(
            y=alt.Y("incidents:Q", stack="zero", axis=count_axis),
            color=alt.Color("series:N", scale=colour_scale, legend=None),
            order=alt.Order("series:N"),
        )
    )
    return chart


def _make_bar_texts(incidents_per_day: IncidentsPerDay, bar_texts: Sequence[str]) -> alt.Chart:
    """Return a chart that shows one of `bar_texts` at the top of each day's bar."""
    chart_rows = []
    for day, bar_text in zip(incidents_per_day.days, bar_texts, strict=True):
        chart_rows.append({"day": day.name, "incidents": day.total, "text": bar_text})
    chart: alt.Chart = alt.Chart(alt.InlineData(values=chart_rows)).encode(
        y="incidents:Q", text="text:N"
    )
    return chart


# Tones of the bars by the state of the case. Any other state has the tone `calm`. `lanes.css` has
# the colours of `calm`, `waits`, `good` and `bad`.
TONE_BY_STATE = {
    "verified": "good",
    "watching": "good",
    "closed": "good",
    "ineffective": "bad",
    "escalated": "bad",
    "overridden": "bad",
    "rolled_back": "bad",
}
LANE_HEIGHT = 34
LANE_WIDTH = 340
MOST_LABEL_CHARACTERS = 32
# Characters of a lane's label and figure together.
MOST_LANE_CHARACTERS = 53


class Bar(Struct, frozen=True):
    """One bar of a lane, from `begin` to `end` on the picture's scale.

    If both are equal, the bar is drawn as a mark.
    """

    begin: float
    end: float
    tone: str = "calm"


class Lane(Struct, frozen=True):
    """One row of a picture: its bars, with a label above on the left and a figure on the right."""

    label: str
    bars: tuple[Bar, ...]
    figure: str = ""


class LanePicture(Struct, frozen=True):
    """A picture of lanes (rows with horizontal bars) that share one scale."""

    title: str
    lanes: tuple[Lane, ...]
    # Text below the lanes.
    note: str = ""
    # Where a vertical line goes through all lanes, on the scale of the bars. None for no line.
    line_position: float | None = None

    @property
    def height(self) -> int:
        """Height of the picture in pixels."""
        note_height = 20 if self.note else 0
        return LANE_HEIGHT * len(self.lanes) + note_height

    def scale_to_pixels(self, scale_position: float) -> float:
        """Convert a position on the scale to pixels from the left end of the lane.

        The longest bar ends at LANE_WIDTH. Return 0 if all bars end at 0.
        """
        longest_bar_end = max(bar.end for lane in self.lanes for bar in lane.bars)
        return round(LANE_WIDTH * scale_position / longest_bar_end, 1) if longest_bar_end else 0


def make_case_pictures(case: CaseWithPictures) -> Iterator[LanePicture]:
    """Yield up to two pictures of a case: its timeline, and the times that consumers need.

    The timeline is left out if it has fewer than three points. The times are left out if none is
    known.
    """
    if len(case.timeline) > 2:
        yield _make_timeline_picture(case.timeline)
    if case.visibility:
        yield _make_needed_times_picture(case.visibility)


def _make_timeline_picture(timeline_points: tuple[SummaryTimelinePoint, ...]) -> LanePicture:
    """Return a picture with one lane for each point of a case's timeline.

    The bar of a lane begins at the previous point and ends at the lane's own point. The scale is
    logarithmic, so that seconds and days are both visible.
    """
    start_time = timeline_points[0].at
    lanes = []
    bar_begin = 0.0
    for point_index, timeline_point in enumerate(timeline_points):
        seconds_since_start = max(0.0, (timeline_point.at - start_time).total_seconds())
        time_text = f"+{format_duration(seconds_since_start)}"
        if point_index == 0:
            time_text = f"{format_short_day(start_time)} {format_clock_time(start_time)}"
        state_text = (
            f"{timeline_point.state.replace('_', ' ')}: {timeline_point.says}".removesuffix(": ")
        )
        lane_label = make_visible(state_text, MOST_LANE_CHARACTERS - len(time_text))
        bar_end = log1p(seconds_since_start)
        # A clock that went backwards must not make a bar of negative length.
        timeline_bar = Bar(
            min(bar_begin, bar_end), bar_end, TONE_BY_STATE.get(timeline_point.state, "calm")
        )
        lanes.append(Lane(lane_label, (timeline_bar,), time_text))
        bar_begin = bar_end
    return LanePicture(
        "What happened when", tuple(lanes), "Not to scale: longer times are shortened."
    )


def _make_needed_times_picture(time_spans: tuple[NamedTimeSpan, ...]) -> LanePicture:
    """Return a picture that compares the times consumers need with the queue's visibility timeout.

    Each time has a lane. A vertical line marks the visibility timeout before the fix, if that is
    known.
    """
    tone_by_time_span = {"timeout before": "bad", "timeout after": "good"}
    lanes = []
    timeout_seconds_before_fix = None
    for time_span in time_spans:
        lane_bar = Bar(0, time_span.seconds, tone_by_time_span.get(time_span.what, "calm"))
        lanes.append(
            Lane(
                make_visible(time_span.what, MOST_LABEL_CHARACTERS),
                (lane_bar,),
                format_duration(time_span.seconds),
            )
        )
        if time_span.what == "timeout before" and timeout_seconds_before_fix is None:
            timeout_seconds_before_fix = time_span.seconds
    return LanePicture(
        "Time that consumers need, and have", tuple(lanes), line_position=timeout_seconds_before_fix
    )
