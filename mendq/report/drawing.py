"""The charts of the report, and pictures of horizontal bars on one time scale ("lanes").

Altair describes a chart and vl-convert draws it. Only numbers and days go into a chart. The labels
of lanes may be other people's text: the template `lanes.svg.j2` draws the lanes within the page,
in the page's colours, and escapes the labels.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from math import log1p
from typing import Any

import altair as alt
import vl_convert
from msgspec import Struct

from mendq.report.days import REACHED, PerDay
from mendq.report.summary_parts import CaseWithPictures, Moment, Span
from mendq.report.tiles import Series
from mendq.report.words import clock, duration, make_visible, short_day

# The font that vl-convert brings with it to measure text, because Lambda has no fonts. The reader's
# own font draws the text.
FONT = "Liberation Sans, Arial, sans-serif"


class Palette(Struct, frozen=True):
    """Colours for charts on one background, as CSS colours."""

    ink: str
    muted: str
    line: str
    paper: str
    bad: str
    # Colours that are easy to tell apart, in the order of the page's legend.
    series: tuple[str, ...]


LIGHT = Palette(
    ink="#16202c",
    muted="#566472",
    line="#e3e8ed",
    paper="#ffffff",
    bad="#b3202c",
    series=("#0b67c2", "#d1435b", "#e3a008", "#5b7f95", "#7b5ea7"),
)
DARK = Palette(
    ink="#e8eef4",
    muted="#9fb0c0",
    line="#2b3743",
    paper="#18212b",
    bad="#ff8f88",
    series=("#4f9df0", "#f07084", "#f0b94a", "#86b3c9", "#b39ae0"),
)


class Picture(Struct, frozen=True):
    """A drawn chart."""

    # A `data:` address, which contains the image.
    address: str
    # Size in CSS pixels.
    width: int
    height: int


def make_picture(chart: alt.LayerChart) -> Picture:
    """Draw the chart as an SVG image in a `data:` address.

    In an image, a browser runs no scripts of the SVG and loads nothing for it.
    """
    # Validation takes a third of a page's time, and vl-convert refuses a wrong chart anyway.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), allowed_base_urls=[])
    width = float(_read_attribute(svg, "width"))
    height = float(_read_attribute(svg, "height"))
    address = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode('ascii')}"
    return Picture(address, round(width), round(height))


def draw_both(draw: Callable[[Palette], alt.LayerChart]) -> dict[str, Picture]:
    """Draw a chart twice: for a light and for a dark page."""
    return {"light": make_picture(draw(LIGHT)), "dark": make_picture(draw(DARK))}


def make_png(chart: alt.LayerChart, scale: float = 2) -> bytes:
    """Draw the chart as a PNG for a mail.

    The PNG's width and height in pixels are `scale` times the chart's CSS width and height.
    """
    png: bytes = vl_convert.vegalite_to_png(chart.to_dict(), scale=scale, allowed_base_urls=[])
    return png


def _read_attribute(svg: str, name: str) -> str:
    """Return the value of the first attribute of that name."""
    return svg.partition(f' {name}="')[2].partition('"')[0]


SPARKLINE_WIDTH = 168
SPARKLINE_HEIGHT = 26


def sparkline_chart(series: Series, part: Series, palette: Palette) -> alt.LayerChart:
    """Return a small bar chart of some weeks, in which this week's bar has a stronger colour.

    `part` is drawn over the bars in the colour for bad news. It is empty or as long as `series`.
    """
    floor = alt.Chart(alt.InlineData(values=[{"value": 0}])).mark_rule(color=palette.line)
    colours = [palette.series[3]] * (len(series) - 1)
    colours.append(palette.series[0])
    layers = [floor, _week_bars(series, colours)]
    if any(part):
        layers.append(_week_bars(part, [palette.bad] * len(part)))
    most = max((value for value in series if value), default=1)
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(y=alt.Y("value:Q", axis=None, scale=alt.Scale(domain=[0, most])))
        .properties(
            width=SPARKLINE_WIDTH, height=SPARKLINE_HEIGHT, background=palette.paper, padding=0
        )
        .configure(font=FONT, view=alt.ViewConfig(stroke=None))
    )
    return chart


def _week_bars(series: Series, colours: list[str]) -> alt.Chart:
    """Return a bar for each week. A week without a value has a gap."""
    rows = []
    for week, value in enumerate(series):
        if value is not None:
            rows.append({"week": week, "value": value, "colour": colours[week]})
    weeks = alt.X("week:O", axis=None, scale=alt.Scale(domain=[*range(len(series))]))
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    chart: alt.Chart = bars.encode(x=weeks, color=alt.Color("colour:N", scale=None))
    return chart


FEW_TICKS = 4


class Size(Struct, frozen=True):
    """Size of a chart in pixels, without its axes.

    The page stretches the picture to the width of its column, and its text with it.
    """

    width: int
    height: int
    # Vega expression for the label of a day.
    label: str
    font_size: int


WIDE = Size(width=480, height=210, label="datum.label", font_size=11)
# A mail has only one picture, which a phone shrinks and a desktop stretches.
IN_A_MAIL = Size(width=370, height=190, label="split(datum.label, ' ')", font_size=13)
NARROW = Size(width=272, height=180, label="split(datum.label, ' ')", font_size=11)


def days_chart(week: PerDay, size: Size, palette: Palette) -> alt.LayerChart:
    """Return the bar chart of the week.

    Days without incidents and days that were not read have a place too. The mark for cases that
    reached a person is above the figure, because a phone has no room beside it.
    """
    figures = [day.figure for day in week.days]
    case_marks = [f"{REACHED} {day.reached:,}" if day.reached else "" for day in week.days]
    above: dict[str, Any] = {"baseline": "bottom", "fontSize": size.font_size}
    layers = [
        _day_bars(week, palette),
        _bar_texts(week, figures).mark_text(**above, dy=-4, color=palette.ink, fontWeight="bold"),
        _bar_texts(week, case_marks).mark_text(**above, dy=-6 - size.font_size, color=palette.bad),
    ]
    days = alt.X(
        "day:N",
        scale=alt.Scale(domain=[day.name for day in week.days], paddingInner=0.4),
        axis=alt.Axis(labelAngle=0, labelExpr=size.label, labelPadding=6, domainColor=palette.line),
    )
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=days)
        .properties(width=size.width, height=size.height, background=palette.paper)
        .configure(font=FONT, padding=4, view=alt.ViewConfig(stroke=None))
        .configure_axis(
            title=None, labelFontSize=size.font_size, labelColor=palette.muted, ticks=False
        )
    )
    return chart


def _day_bars(week: PerDay, palette: Palette) -> alt.Chart:
    """Return the stacked bars. The axis has whole numbers only: Vega would print a half as 1."""
    rows = []
    for day in week.days:
        for series, count in enumerate(day.incidents):
            if count:
                rows.append({"day": day.name, "series": f"{series}", "incidents": count})
    names = [f"{series}" for series in range(len(week.series))]
    colours = alt.Scale(domain=names, range=list(palette.series[: len(names)]))
    most = max(day.total for day in week.days)
    ticks = list(range(most + 1)) if most < FEW_TICKS else alt.Undefined
    counts = alt.Axis(
        format=",d", values=ticks, tickCount=FEW_TICKS, gridColor=palette.line, domain=False
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(stroke=palette.paper, strokeWidth=1)
        .encode(
            y=alt.Y("incidents:Q", stack="zero", axis=counts),
            color=alt.Color("series:N", scale=colours, legend=None),
            order=alt.Order("series:N"),
        )
    )
    return chart


def _bar_texts(week: PerDay, texts: Sequence[str]) -> alt.Chart:
    """Return a text for each day, at the top of the day's bar."""
    rows = []
    for day, text in zip(week.days, texts, strict=True):
        rows.append({"day": day.name, "incidents": day.total, "text": text})
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).encode(y="incidents:Q", text="text:N")
    return chart


# Tones of the bars by the state of the case. Any other state has the tone `calm`. `lanes.css` has
# the colours of `calm`, `waits`, `good` and `bad`.
TONES = {
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
MOST_LABEL = 32
# Characters of a lane's label and figure together.
MOST_OF_A_LINE = 53


class Bar(Struct, frozen=True):
    """A bar of a lane. A bar without length is drawn as a mark."""

    begins: float
    ends: float
    tone: str = "calm"


class Lane(Struct, frozen=True):
    """A row of bars. Above it are a label on the left and a figure on the right."""

    label: str
    bars: tuple[Bar, ...]
    figure: str = ""


class Lanes(Struct, frozen=True):
    """A picture of lanes that share one scale."""

    title: str
    lanes: tuple[Lane, ...]
    # Text below the lanes.
    note: str = ""
    # Where a vertical line goes through all lanes, on the scale of the bars. None for no line.
    edge: float | None = None

    @property
    def height(self) -> int:
        """Height of the picture in pixels."""
        note_height = 20 if self.note else 0
        return LANE_HEIGHT * len(self.lanes) + note_height

    def x(self, moment: float) -> float:
        """Return the place of a point of the scale, in pixels from the left."""
        longest = max(bar.ends for lane in self.lanes for bar in lane.bars)
        return round(LANE_WIDTH * moment / longest, 1) if longest else 0


def make_case_pictures(case: CaseWithPictures) -> Iterator[Lanes]:
    """Yield the pictures of a case: its timeline, and the times that its consumers need.

    The timeline is left out if it has fewer than three points, the times if none is known.
    """
    if len(case.timeline) > 2:
        yield _make_timeline(case.timeline)
    if case.visibility:
        yield _make_visibility(case.visibility)


def _make_timeline(points: tuple[Moment, ...]) -> Lanes:
    """Return a picture with a lane for each point of the timeline.

    A lane's bar begins at the point before and ends at its own point.

    The scale is logarithmic, so that seconds and days can both be seen.
    """
    begins = points[0].at
    lanes = []
    lane_begins = 0.0
    for number, point in enumerate(points):
        seconds = max(0.0, (point.at - begins).total_seconds())
        figure = f"+{duration(seconds)}"
        if number == 0:
            figure = f"{short_day(begins)} {clock(begins)}"
        text = f"{point.state.replace('_', ' ')}: {point.says}".removesuffix(": ")
        label = make_visible(text, MOST_OF_A_LINE - len(figure))
        lane_ends = log1p(seconds)
        # A clock that went backwards must not make a bar of negative length.
        bar = Bar(min(lane_begins, lane_ends), lane_ends, TONES.get(point.state, "calm"))
        lanes.append(Lane(label, (bar,), figure))
        lane_begins = lane_ends
    return Lanes("What happened when", tuple(lanes), "Not to scale: longer times are shortened.")


def _make_visibility(spans: tuple[Span, ...]) -> Lanes:
    """Return a picture with a lane for each time that consumers need or have.

    A vertical line marks the visibility timeout before the fix.
    """
    tones = {"timeout before": "bad", "timeout after": "good"}
    lanes = []
    timeout_before = None
    for span in spans:
        bar = Bar(0, span.seconds, tones.get(span.what, "calm"))
        lanes.append(Lane(make_visible(span.what, MOST_LABEL), (bar,), duration(span.seconds)))
        if span.what == "timeout before" and timeout_before is None:
            timeout_before = span.seconds
    return Lanes("Time that consumers need, and have", tuple(lanes), edge=timeout_before)
