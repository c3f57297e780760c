"""The charts, which Altair describes and vl-convert draws, and lanes of bars on one scale of time.

Only numbers and days go into a chart. The labels of lanes may be somebody else's text: the template
`lanes.svg.j2` draws them within the page, in its colours, and escapes them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import log1p
from typing import Any

import altair as alt
import vl_convert
from msgspec import Struct

from mendq.report.days import REACHED, PerDay
from mendq.report.summary_parts import Moment, Pictured, Span
from mendq.report.tiles import Series
from mendq.report.words import clock, duration, short_day, visible

# What vl-convert carries to measure with: Lambda has no font. The reader's own draws it.
FONT = "Liberation Sans, Arial, sans-serif"


class Look(Struct, frozen=True):
    """Colours that keep apart on one background; `series` in the order of the page's legend."""

    ink: str
    muted: str
    line: str
    paper: str
    bad: str
    series: tuple[str, ...]


LIGHT = Look(
    ink="#16202c",
    muted="#566472",
    line="#e3e8ed",
    paper="#ffffff",
    bad="#b3202c",
    series=("#0b67c2", "#d1435b", "#e3a008", "#5b7f95", "#7b5ea7"),
)
DARK = Look(
    ink="#e8eef4",
    muted="#9fb0c0",
    line="#2b3743",
    paper="#18212b",
    bad="#ff8f88",
    series=("#4f9df0", "#f07084", "#f0b94a", "#86b3c9", "#b39ae0"),
)


class Picture(Struct, frozen=True):
    """An image's address, which holds the image, and its size in CSS pixels."""

    address: str
    width: int
    height: int


def as_picture(chart: alt.LayerChart) -> Picture:
    """The chart as an image within its own address: as an image, SVG runs and fetches nothing."""
    # Vega-Lite refuses what is none of its charts: to validate takes a third of a page's time.
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), allowed_base_urls=[])
    width, height = (float(_attribute(svg, name)) for name in ("width", "height"))
    address = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode('ascii')}"
    return Picture(address, round(width), round(height))


def in_both(draw: Callable[[Look], alt.LayerChart]) -> dict[str, Picture]:
    """The picture of a chart for a light and for a dark page."""
    return {"light": as_picture(draw(LIGHT)), "dark": as_picture(draw(DARK))}


def as_png(chart: alt.LayerChart, scale: float = 2) -> bytes:
    """The same for a mail, `scale` times as many pixels as it is to take up."""
    png: bytes = vl_convert.vegalite_to_png(chart.to_dict(), scale=scale, allowed_base_urls=[])
    return png


def _attribute(svg: str, name: str) -> str:
    return svg.partition(f' {name}="')[2].partition('"')[0]


SPARK_WIDTH, SPARK_HEIGHT = 168, 26


def spark_chart(series: Series, part: Series, look: Look) -> alt.LayerChart:
    """This week's bar stands out; `part`, of the same length or empty, is drawn over the bars."""
    floor = alt.Chart(alt.InlineData(values=[{"value": 0}])).mark_rule(color=look.line)
    layers = [floor, _weeks(series, [*[look.series[3]] * (len(series) - 1), look.series[0]])]
    layers += [_weeks(part, [look.bad] * len(part))] * any(part)
    most = max((each for each in series if each), default=1)
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(y=alt.Y("value:Q", axis=None, scale=alt.Scale(domain=[0, most])))
        .properties(width=SPARK_WIDTH, height=SPARK_HEIGHT, background=look.paper, padding=0)
        .configure(font=FONT, view=alt.ViewConfig(stroke=None))
    )
    return chart


def _weeks(series: Series, colours: list[str]) -> alt.Chart:
    rows = [
        {"week": n, "value": value, "colour": colours[n]}
        for n, value in enumerate(series)
        if value is not None
    ]
    weeks = alt.X("week:O", axis=None, scale=alt.Scale(domain=[*range(len(series))]))
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    chart: alt.Chart = bars.encode(x=weeks, color=alt.Color("colour:N", scale=None))
    return chart


FEW_TICKS = 4


class Size(Struct, frozen=True):
    """The plot's size; `label` is a Vega expression for the name of a day.

    The page stretches the picture to its column, and the text in it with it.
    """

    width: int
    height: int
    label: str
    font_size: int


WIDE = Size(width=480, height=210, label="datum.label", font_size=11)
# A mail has but one, which a phone shrinks and a desktop stretches.
IN_A_MAIL = Size(width=370, height=190, label="split(datum.label, ' ')", font_size=13)
NARROW = Size(width=272, height=180, label="split(datum.label, ' ')", font_size=11)


def days_chart(week: PerDay, size: Size, look: Look) -> alt.LayerChart:
    """A bar for each day of the week, also for one without incidents or that was not read.

    The mark of cases stands above the figure, because beside it there is no room on a phone.
    """
    figures = [each.figure for each in week.days]
    above: dict[str, Any] = {"baseline": "bottom", "fontSize": size.font_size}
    layers = [
        _bars(week, look),
        _texts(week, figures).mark_text(**above, dy=-4, color=look.ink, fontWeight="bold"),
        _texts(
            week, [f"{REACHED} {each.reached:,}" * (each.reached > 0) for each in week.days]
        ).mark_text(**above, dy=-6 - size.font_size, color=look.bad),
    ]
    days = alt.X(
        "day:N",
        scale=alt.Scale(domain=[each.name for each in week.days], paddingInner=0.4),
        axis=alt.Axis(labelAngle=0, labelExpr=size.label, labelPadding=6, domainColor=look.line),
    )
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=days)
        .properties(width=size.width, height=size.height, background=look.paper)
        .configure(font=FONT, padding=4, view=alt.ViewConfig(stroke=None))
        .configure_axis(
            title=None, labelFontSize=size.font_size, labelColor=look.muted, ticks=False
        )
    )
    return chart


def _bars(week: PerDay, look: Look) -> alt.Chart:
    """On an axis of whole numbers alone: Vega would write a half as 1."""
    rows = [
        {"day": each.name, "series": f"{n}", "incidents": count}
        for each in week.days
        for n, count in enumerate(each.incidents)
        if count
    ]
    names = [f"{n}" for n in range(len(week.series))]
    colours = alt.Scale(domain=names, range=list(look.series[: len(names)]))
    most = max(each.total for each in week.days)
    whole = list(range(most + 1)) if most < FEW_TICKS else alt.Undefined
    counts = alt.Axis(
        format=",d", values=whole, tickCount=FEW_TICKS, gridColor=look.line, domain=False
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(stroke=look.paper, strokeWidth=1)
        .encode(
            y=alt.Y("incidents:Q", stack="zero", axis=counts),
            color=alt.Color("series:N", scale=colours, legend=None),
            order=alt.Order("series:N"),
        )
    )
    return chart


def _texts(week: PerDay, texts: Sequence[str]) -> alt.Chart:
    rows = [
        {"day": each.name, "incidents": each.total, "text": text}
        for each, text in zip(week.days, texts, strict=True)
    ]
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).encode(y="incidents:Q", text="text:N")
    return chart


# `lanes.css` has the colours of `calm`, `waits`, `good` and `bad`.
TONES = dict.fromkeys(("verified", "watching", "closed"), "good") | dict.fromkeys(
    ("ineffective", "escalated", "overridden", "rolled_back"), "bad"
)
LANE_HEIGHT, LANE_WIDTH = 34, 340
MOST_LABEL, MOST_OF_A_LINE = 32, 53


class Bar(Struct, frozen=True):
    """From when to when; what lasts no time is a mark."""

    begins: float
    ends: float
    tone: str = "calm"


class Lane(Struct, frozen=True):
    """Bars, and above them what they are, and at the end of that line a figure."""

    label: str
    bars: tuple[Bar, ...]
    figure: str = ""


class Lanes(Struct, frozen=True):
    """A picture; `edge` is a moment that goes through all lanes, `note` stands below."""

    title: str
    lanes: tuple[Lane, ...]
    note: str = ""
    edge: float | None = None

    @property
    def height(self) -> int:
        return LANE_HEIGHT * len(self.lanes) + 20 * bool(self.note)

    def x(self, moment: float) -> float:
        longest = max(bar.ends for each in self.lanes for bar in each.bars)
        return round(LANE_WIDTH * moment / longest, 1) if longest else 0


def pictures_of(case: Pictured) -> Iterator[Lanes]:
    """A case's time line, where it has more than two points, and its visibility timeout."""
    if len(case.timeline) > 2:
        yield _time_line(case.timeline)
    if case.visibility:
        yield _visibility(case.visibility)


def _time_line(points: tuple[Moment, ...]) -> Lanes:
    """Seconds and days are both to be seen: each length is the logarithm of its time."""
    begins = points[0].at
    after = [max(0.0, (each.at - begins).total_seconds()) for each in points]
    figures = [f"{short_day(begins)} {clock(begins)}", *(f"+{duration(it)}" for it in after[1:])]
    ends = [log1p(each) for each in after]
    says = (f"{it.state.replace('_', ' ')}: {it.says}".removesuffix(": ") for it in points)
    lanes = (
        Lane(
            visible(said, MOST_OF_A_LINE - len(figure)),
            (Bar(min(since, until), until, TONES.get(each.state, "calm")),),
            figure,
        )
        for each, said, figure, (since, until) in zip(
            points, says, figures, pairwise([0.0, *ends]), strict=True
        )
    )
    return Lanes("What happened when", tuple(lanes), "Not to scale: longer times are shortened.")


def _visibility(spans: tuple[Span, ...]) -> Lanes:
    tones = {"timeout before": "bad", "timeout after": "good"}
    lanes = (
        Lane(
            visible(each.what, MOST_LABEL),
            (Bar(0, each.seconds, tones.get(each.what, "calm")),),
            duration(each.seconds),
        )
        for each in spans
    )
    before = next((each.seconds for each in spans if each.what == "timeout before"), None)
    return Lanes("Time that consumers need, and have", tuple(lanes), edge=before)
