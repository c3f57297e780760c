"""Draws docs/dashboard.png: the template's dashboard, filled with the metrics of a made-up day.

It is no screenshot. Size, place, titles, metrics, statistics and periods are the template's own;
the numbers are those of the tests' simulated days, and the band of what is usual is assumed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

import vl_convert

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dashboard_charts import Line, Points, chart_svg  # noqa: E402

from tests.infra.alarms.evaluator import Data, Evaluator, Series  # noqa: E402
from tests.infra.alarms.simulated import DAY, USUAL_AT_MOST, an_eventful_day, at  # noqa: E402
from tests.infra.synthesized import Template, template_of  # noqa: E402

PICTURE = ROOT / "docs" / "dashboard.png"
COLUMN, ROW, GAP, TOP, TILE = 56, 44, 8, 40, 264
COLOURS = {"OK": "#1d8102", "ALARM": "#d13212"}
SAID = (
    "Drawn from the dashboard's own definition with the metrics of a made-up day; "
    "not a screenshot of CloudWatch."
)
_STATISTICS = {"Sum": sum, "Maximum": max, "SampleCount": len, "p50": median}
_FILLED = re.compile(r"FILL\((\w+), 0\)")


class Drawn:
    """The template's dashboard at the end of a simulated day."""

    def __init__(self, template: Template, data: Data, states: Mapping[str, str]) -> None:
        body = template.only("AWS::CloudWatch::Dashboard")["DashboardBody"]
        self.widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
        self._data = data
        self._states = states

    def svg(self) -> str:
        width = max(each["x"] + each["width"] for each in self.widgets) * COLUMN
        height = max(each["y"] + each["height"] for each in self.widgets) * ROW + TOP
        parts = [self._widget(n, each) for n, each in enumerate(self.widgets)]
        said = f'<text x="{GAP}" y="24" font-size="13" fill="#545b64">{escape(SAID)}</text>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="#f2f3f3"/>'
            f"{said}{''.join(parts)}</svg>"
        )

    def _widget(self, n: int, widget: Mapping[str, Any]) -> str:
        x, y = widget["x"] * COLUMN + GAP / 2, widget["y"] * ROW + TOP + GAP / 2
        wide, high = widget["width"] * COLUMN - GAP, widget["height"] * ROW - GAP
        properties = widget["properties"]
        if widget["type"] == "text":
            within = _heading(properties["markdown"])
        else:
            text = 'x="12" y="22" font-size="14" font-weight="bold"'
            title = f"<text {text}>{escape(properties['title'])}</text>"
            box = f'<rect width="{wide}" height="{high}" rx="4" fill="white" stroke="#d5dbdb"/>'
            within = box + title + self._inside(n, widget, wide, high)
        return f'<g transform="translate({x} {y})">{within}</g>'

    def _inside(self, n: int, widget: Mapping[str, Any], wide: int, high: int) -> str:
        properties = widget["properties"]
        if widget["type"] == "alarm":
            return self._alarms(properties["alarms"], wide)
        if properties["view"] == "singleValue":
            return self._values(properties, wide, high)
        return self._graph(n, properties, wide, high)

    def _alarms(self, arns: Sequence[str], wide: int) -> str:
        """Side by side; those that ring first, as CloudWatch does."""
        told = [self._states[each.removeprefix("arn:")].split() for each in arns]
        in_order = sorted(told, key=lambda each: (each[1] != "ALARM", each[0]))
        a_row = max(1, (wide - 12) // TILE)
        return "".join(
            _tile(name, state, (12 + n % a_row * TILE, 36 + n // a_row * 42))
            for n, (name, state) in enumerate(in_order)
        )

    def _values(self, properties: Mapping[str, Any], wide: int, high: int) -> str:
        whole = bool(properties.get("setPeriodToTimeRange"))
        shown = list(self._series(properties["metrics"], DAY if whole else None))
        step = (wide - 24) / len(shown)
        return "".join(
            f'<text x="{12 + n * step}" y="{high / 2 + 12}" font-size="30">{_last(points)}</text>'
            f'<text x="{12 + n * step}" y="{high / 2 + 34}" font-size="12" fill="#545b64">'
            f"{escape(label)}</text>"
            for n, (label, points) in enumerate(shown)
        )

    def _graph(self, n: int, properties: Mapping[str, Any], wide: int, high: int) -> str:
        days = 7 if properties.get("start") == "-P7D" else 1
        lines = [
            Line(label, points) for label, points in self._series(properties["metrics"], None, days)
        ]
        if not any(line.points for line in lines):
            text = f'x="{wide / 2}" y="{high / 2}" text-anchor="middle" font-size="13"'
            return f'<text {text} fill="#545b64">No data available.</text>'
        drawn = chart_svg(lines, properties, days, (wide - 24, high - 40))
        # Each chart numbers its parts from 0.
        own = re.sub(r'(id="|url\(#)', rf"\g<1>w{n}-", drawn)
        return own.replace("<svg ", '<svg x="12" y="32" ', 1)

    def _series(
        self, metrics: Sequence[Any], period: int | None, days: int = 1
    ) -> Iterator[tuple[str, Points]]:
        """Each line's label and points; `period` in minutes, where it is not the metric's own."""
        known = {each[-1]["id"]: each for each in metrics if "id" in each[-1]}
        for each in metrics:
            said = each[-1]
            minutes = period or said.get("period", 300) // 60
            if "expression" not in said:
                if said.get("visible", True):
                    yield said["label"], self._points(_named(each), said["stat"], minutes, days)
            elif "SEARCH" in said["expression"]:
                yield from self._found(said["expression"], minutes)
            elif filled := _FILLED.fullmatch(said["expression"]):
                of = known[filled[1]]
                yield said["label"], self._filled(_named(of), of[-1]["stat"], minutes)
            elif "/" in said["expression"]:
                name, _, by = said["expression"].partition(" / ")
                of = known[name]
                points = self._points(_named(of), of[-1]["stat"], minutes, days)
                yield (
                    said["label"],
                    [(moment, round(value / int(by), 1)) for moment, value in points],
                )

    def _found(self, expression: str, minutes: int) -> Iterator[tuple[str, Points]]:
        (name,) = re.findall(r'MetricName="(\w+)"', expression)
        for series in self._data.all_of(name):
            for _, symptom in series[2]:
                yield symptom, self._filled(series, "Sum", minutes)

    def _filled(self, series: Series, statistic: str, minutes: int) -> Points:
        """With a zero where nothing was sent."""
        seen = dict(self._points(series, statistic, minutes, 1))
        moments = [at(minute) for minute in range(0, DAY, minutes)]
        return [(moment, seen.get(moment, 0.0)) for moment in moments]

    def _points(self, series: Series, statistic: str, minutes: int, days: int) -> Points:
        points = []
        for until in range(DAY - days * DAY + minutes, DAY + 1, minutes):
            values = self._data.within(series, until - minutes - 1, until - 1)
            if values:
                points.append((at(until - minutes), float(_STATISTICS[statistic](values))))
        return points


def _tile(name: str, state: str, place: tuple[int, int]) -> str:
    x, y = place
    return (
        f'<rect x="{x}" y="{y}" width="6" height="34" fill="{COLOURS[state]}"/>'
        f'<text x="{x + 14}" y="{y + 14}" font-size="12">{name}</text>'
        f'<text x="{x + 14}" y="{y + 30}" font-size="11" fill="{COLOURS[state]}">{state}</text>'
    )


def _named(metric: Sequence[Any]) -> Series:
    namespace, name, *dimensions = metric[:-1]
    return namespace, name, frozenset(zip(dimensions[::2], dimensions[1::2], strict=True))


def _last(points: Points) -> str:
    """As CloudWatch shows what nobody sent."""
    return f"{points[-1][1]:g}" if points else "--"


def _heading(markdown: str) -> str:
    question, words = markdown.removeprefix("## ").split("\n")
    plain = escape(words.replace("`", ""))
    return (
        f'<text x="6" y="34" font-size="22" font-weight="bold">{escape(question)}</text>'
        f'<text x="6" y="58" font-size="13" fill="#545b64">{plain}</text>'
    )


def drawn() -> Drawn:
    """The dashboard at the end of the simulated day."""
    template, day = template_of("named"), an_eventful_day()
    evaluator = Evaluator.of(template)
    data = day.data(1)
    evaluator.run(data, range(DAY), lambda _minute: USUAL_AT_MOST)
    every = {**evaluator.metric_alarms, **evaluator.composites}
    states = {
        name: f"mendq-{evaluator.names[name]} {each.told}"
        for name, each in every.items()
        if each.topics
    }
    return Drawn(template, data, states)


if __name__ == "__main__":
    PICTURE.write_bytes(vl_convert.svg_to_png(drawn().svg(), scale=1))
    print(f"wrote {PICTURE.relative_to(ROOT)}")
