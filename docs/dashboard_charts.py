"""One graph of the dashboard's picture, drawn by Altair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import altair as alt
import vl_convert

from tests.infra.alarms.simulated import DAY, USUAL_AT_MOST, at

Points = list[tuple[datetime, float]]
RED, GREY = "#d13212", "#d5dbdb"
MOST_TICKS = 5


@dataclass(frozen=True)
class Line:
    """One metric as the graph shows it."""

    label: str
    points: Points


def chart_svg(
    lines: Sequence[Line], properties: Mapping[str, Any], days: int, size: tuple[int, int]
) -> str:
    """Its lines, its band and its thresholds, for the last `days` of the simulated time."""
    layers = [*_band(properties), _drawn(lines, properties, days), *_thresholds(properties)]
    width, height = size
    chart = alt.layer(*layers).properties(
        width=width, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )
    plain = chart.configure_view(stroke=None).to_dict()
    svg: str = vl_convert.vegalite_to_svg(plain, allowed_base_urls=[])
    return svg


def _drawn(lines: Sequence[Line], properties: Mapping[str, Any], days: int) -> alt.Chart:
    rows = [
        {"at": moment.isoformat(), "value": value, "of": line.label}
        for line in lines
        for moment, value in line.points
    ]
    seen = (row["value"] for row in rows)
    top = max(*seen, *(each["value"] for each in _limits(properties)), 1)
    begins = at(DAY - days * DAY)
    shown = alt.Scale(type="utc", domain=[begins.isoformat(), at(DAY).isoformat()])
    clock = alt.Axis(format="%a" if days > 1 else "%H:%M", title=None, grid=False, tickCount=7)
    counts = alt.Axis(tickCount=max(1, min(MOST_TICKS, round(top))), format="~s")
    heights = alt.Scale(domain=[0, top], nice=True)
    stacked = properties.get("stacked", False)
    labels = [line.label for line in lines if line.points]
    return _marked(alt.Chart(alt.Data(values=rows)), lines, stacked).encode(
        x=alt.X("at:T", axis=clock, scale=shown),
        y=alt.Y(
            "value:Q", title=None, stack="zero" if stacked else None, axis=counts, scale=heights
        ),
        color=alt.Color(
            "of:N",
            legend=alt.Legend(orient="bottom", title=None, columns=3, symbolLimit=6),
            scale=alt.Scale(scheme="tableau10", domain=labels),
        ),
    )


def _marked(chart: alt.Chart, lines: Sequence[Line], stacked: bool) -> alt.Chart:
    """What comes seldom is seen as points: a line between them would say what nobody sent."""
    if max(len(line.points) for line in lines) < DAY // 60:
        return chart.mark_point(filled=True, size=50, opacity=1)
    return chart.mark_area() if stacked else chart.mark_line(interpolate="step-after")


def _band(properties: Mapping[str, Any]) -> Iterator[alt.Chart]:
    if any("ANOMALY" in each[-1].get("expression", "") for each in properties["metrics"]):
        edges = alt.Chart(alt.Data(values=[{"low": 0, "high": USUAL_AT_MOST}]))
        yield edges.mark_rect(color=GREY).encode(y="low:Q", y2="high:Q")


def _thresholds(properties: Mapping[str, Any]) -> Iterator[alt.Chart]:
    for each in _limits(properties):
        line = alt.Chart(alt.Data(values=[{"y": each["value"], "text": each["label"]}]))
        line = line.encode(y="y:Q")
        yield line.mark_rule(color=RED, strokeDash=[4, 3])
        yield line.mark_text(align="left", x=4, dy=8, color=RED).encode(text="text:N")


def _limits(properties: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    limits: Sequence[Mapping[str, Any]] = properties.get("annotations", {}).get("horizontal", ())
    return limits
