"""Incidents per day as stacked bars, with a mark for each case that reached a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from functions.report.drawing import FONT, Look
from functions.report.per_day import Day, PerDay

NOT_READ = "?"
REACHED = "\N{BLACK DIAMOND}"
MOST_MARKS = 3
FEW_TICKS = 4


@dataclass(frozen=True)
class Size:
    """The plot's size; `label` is a Vega expression for the name of a day.

    The page stretches the picture to its column, and the text in it with it.
    """

    width: int
    height: int
    label: str
    font_size: int


WIDE = Size(width=480, height=210, label="datum.label", font_size=11)
# A mail has but one, which a phone shrinks and a desk stretches.
IN_A_MAIL = Size(width=370, height=190, label="split(datum.label, ' ')", font_size=13)
NARROW = Size(width=272, height=180, label="split(datum.label, ' ')", font_size=11)


def days_chart(week: PerDay, size: Size, look: Look) -> alt.LayerChart:
    """A bar for each day of the week, also for one without incidents or that was not read."""
    layers = [_bars(week, size, look), _totals(week, size, look), _reached(week, size, look)]
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=_days_axis(week, size, look))
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
        {"day": each.name, "incidents": each.total, "text": _figure(each)} for each in week.days
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(
            baseline="bottom", dy=-4, fontSize=size.font_size, color=look.ink, fontWeight="bold"
        )
        .encode(y="incidents:Q", text="text:N")
    )
    return chart


def _figure(each: Day) -> str:
    return f"{each.total:,}" if each.total or each.is_read else NOT_READ


def _reached(week: PerDay, size: Size, look: Look) -> alt.Chart:
    """Above the figure, because beside it there is no room on a phone."""
    rows = [
        {"day": each.name, "incidents": each.total, "text": _marks(each.reached)}
        for each in week.days
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(
            baseline="bottom", dy=-6 - size.font_size, fontSize=size.font_size, color=look.bad
        )
        .encode(y="incidents:Q", text="text:N")
    )
    return chart


def _marks(reached: int) -> str:
    return REACHED * reached if reached <= MOST_MARKS else f"{REACHED} {reached:,}"


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
