"""Incidents per day as stacked bars: Altair says what, vl-convert draws it as SVG.

Only numbers and days go in. Labels are somebody else's text and stay in the page's legend.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from functions.report.per_day import PerDay

NOT_READ = "?"
FEW_TICKS = 4
# What vl-convert carries to measure with: Lambda has no font. The reader's own draws it.
FONT = "Liberation Sans, Arial, sans-serif"


@dataclass(frozen=True)
class Look:
    """Colours that keep apart on one background; `series` in the order of the page's legend."""

    ink: str
    muted: str
    line: str
    paper: str
    series: tuple[str, ...]


@dataclass(frozen=True)
class Size:
    """The plot's size; `label` is a Vega expression for the name of a day.

    The page stretches the picture to its column, and the text in it with it.
    """

    width: int
    height: int
    label: str
    font_size: int


LIGHT = Look(
    ink="#16202c",
    muted="#566472",
    line="#e3e8ed",
    paper="#ffffff",
    series=("#0b67c2", "#c8324a", "#d99000", "#4f7d94", "#7b5ea7"),
)
DARK = Look(
    ink="#e8eef4",
    muted="#9fb0c0",
    line="#2b3743",
    paper="#18212b",
    series=("#4f9df0", "#f07084", "#f0b94a", "#86b3c9", "#b39ae0"),
)
WIDE = Size(width=780, height=180, label="datum.label", font_size=11)
NARROW = Size(width=252, height=190, label="split(datum.label, ' ')", font_size=12)


@dataclass(frozen=True)
class Picture:
    """An image's address, which holds the image, and its size in CSS pixels."""

    address: str
    width: int
    height: int


def picture(week: PerDay, size: Size, look: Look) -> Picture:
    """The bars as an image within its own address: as an image, SVG runs and fetches nothing."""
    svg = vl_convert.vegalite_to_svg(_chart(week, size, look).to_dict(), allowed_base_urls=[])
    width, height = (float(_attribute(svg, name)) for name in ("width", "height"))
    address = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode('ascii')}"
    return Picture(address, round(width), round(height))


def _attribute(svg: str, name: str) -> str:
    return svg.partition(f' {name}="')[2].partition('"')[0]


def _chart(week: PerDay, size: Size, look: Look) -> alt.LayerChart:
    layers = alt.layer(_bars(week, size, look), _totals(week, size, look))
    chart: alt.LayerChart = (
        layers.encode(x=_days_axis(week, size, look))
        .properties(width=size.width, height=size.height, background=look.paper)
        .configure(font=FONT, padding=4, view=alt.ViewConfig(stroke=None))
    )
    return chart


def _bars(week: PerDay, size: Size, look: Look) -> alt.Chart:
    rows = [
        {"day": each.name, "series": f"{n}", "incidents": count}
        for each in week.days
        for n, count in enumerate(each.incidents)
        if count
    ]
    names = [f"{n}" for n in range(len(week.series))]
    colours = alt.Scale(domain=names, range=list(look.series[: len(names)]))
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(stroke=look.paper, strokeWidth=1)
        .encode(
            y=alt.Y("incidents:Q", stack="zero", axis=_count_axis(week, size, look)),
            color=alt.Color("series:N", scale=colours, legend=None),
            order=alt.Order("series:N"),
        )
    )
    return chart


def _totals(week: PerDay, size: Size, look: Look) -> alt.Chart:
    rows: list[dict[str, Any]] = [
        {
            "day": each.name,
            "incidents": each.total,
            "text": f"{each.total:,}" if each.total or each.is_read else NOT_READ,
        }
        for each in week.days
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(
            baseline="bottom", dy=-4, fontSize=size.font_size, color=look.ink, fontWeight="bold"
        )
        .encode(y="incidents:Q", text="text:N")
    )
    return chart


def _days_axis(week: PerDay, size: Size, look: Look) -> alt.X:
    return alt.X(
        "day:N",
        scale=alt.Scale(domain=[each.name for each in week.days], paddingInner=0.4),
        axis=alt.Axis(
            title=None,
            labelAngle=0,
            labelExpr=size.label,
            labelFontSize=size.font_size,
            labelColor=look.muted,
            labelPadding=6,
            ticks=False,
            domainColor=look.line,
        ),
    )


def _count_axis(week: PerDay, size: Size, look: Look) -> alt.Axis:
    """Whole numbers alone: Vega would write a half as 1."""
    most = max(each.total for each in week.days)
    return alt.Axis(
        title=None,
        format=",d",
        values=list(range(most + 1)) if most < FEW_TICKS else alt.Undefined,
        tickCount=FEW_TICKS,
        labelFontSize=size.font_size,
        labelColor=look.muted,
        gridColor=look.line,
        ticks=False,
        domain=False,
    )
