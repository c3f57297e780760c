"""Pictures, each a file of its own in the colours of whoever looks: light or dark.

Those that explain a symptom are drawn as the report draws a case's; their numbers are made up.
The curves of docs/scale.md are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import vl_convert
from msgspec.structs import astuple

from mendq.model.limits import Bounds
from mendq.report import html_page
from mendq.report.drawing import DARK, FONT, LIGHT, Bar, Lane, Lanes
from tests.prove.scale import Curve

_NOTE = "The numbers are made up."
_TEMPLATES = Path(html_page.__file__).parent / "template"


def drawn() -> dict[str, str]:
    """The SVG documents by the names of their files."""
    colours = (_TEMPLATES / "page.css").read_text().partition("\n*")[0]
    style = f"{colours}\n{(_TEMPLATES / 'lanes.css').read_text()}".rstrip()
    svg = html_page.template("lanes.svg.j2").module.svg  # type: ignore[attr-defined]
    pictures = {
        "visibility": _visibility(),
        "message-group": _message_group(),
        "redrive": _redrive(),
    }
    return {f"{name}.svg": f"{str(svg(it, style)).strip()}\n" for name, it in pictures.items()}


def _visibility() -> Lanes:
    lanes = (
        Lane("Visibility timeout: hidden from others", (Bar(0, 30, "waits"),), "30 s"),
        Lane("Consumer A works past it", (Bar(0, 30), Bar(30, 45, "bad")), "45 s"),
        Lane("Consumer B receives the same message", (Bar(30, 50, "bad"),), "at 30 s"),
        Lane("Standard queue: A's late delete answers 200", (Bar(45, 45, "bad"),), "at 45 s"),
        Lane("FIFO queue: A's late delete fails", (Bar(45, 45, "bad"),), "at 45 s"),
        Lane("B's delete is in time: handled twice", (Bar(50, 50, "good"),), "at 50 s"),
    )
    return Lanes("A message is handled twice", lanes, _NOTE, edge=30)


def _message_group() -> Lanes:
    fails = tuple(Bar(since + 1, since + 30, "bad") for since in (0, 30, 60))
    goes_on = tuple(Bar(since, since + 9, "good") for since in range(0, 120, 10))
    lanes = (
        Lane("Group A, message 1: received, fails", fails, "3 times 30 s"),
        Lane("It moves to the DLQ", (Bar(90, 90, "bad"),), "at 90 s"),
        Lane("Group A, messages 2 to 4: wait", (Bar(0, 90, "waits"), *goes_on[9:]), "90 s"),
        Lane("Group B: nothing holds it up", goes_on),
    )
    return Lanes("A message holds up its group", lanes, _NOTE)


def _redrive() -> Lanes:
    return Lanes("A redrive sends more and more", tuple(_stages()), _NOTE)


def _stages() -> Iterator[Lane]:
    """Each stage as Mendq ships it, for a source of three receives of 30 s, at four a second."""
    bounds, begins = Bounds(), 0.0
    for n, name in enumerate(("Canary batch", "Nothing came back", "Nothing came back")):
        messages = bounds.canary * bounds.growth**n
        sent = begins + messages / 4
        soaked = sent + bounds.soak_factor * 3 * 30
        yield Lane(f"{name}: {messages} messages", (Bar(begins, sent),))
        yield Lane(
            "Soak: do any come back?", (Bar(sent, soaked, "waits"),), f"{soaked - sent:.0f} s"
        )
        begins = soaked
    yield Lane("Verified", (Bar(begins, begins, "good"),))


_STEPS, _WIDTH, _HEIGHT, _LINE_HEIGHT = 120, 280, 170, 17
# `10k`, `1M`, `1B`: SI's `G` is no number of dollars.
_SHORT = "replace(format(datum.{}, '{}'), 'G', 'B')"
_AXIS = {"labelColor": LIGHT.muted, "titleColor": LIGHT.muted, "domainColor": LIGHT.muted}
_AXIS |= {"gridColor": LIGHT.line, "tickColor": LIGHT.line, "titleFontWeight": "normal"}


def curves_in_one(curves: Sequence[Curve]) -> str:
    """The SVG document that has one curve below the other, each on two log scales."""
    chart = {
        "vconcat": [{"layer": [*_line(each), *_marks(each)], **_frame(each)} for each in curves],
        "spacing": 26,
        "background": LIGHT.paper,
        "padding": {"left": 8, "top": 8, "right": 24, "bottom": 8},
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {**_AXIS, "labelFontSize": 12, "titleFontSize": 12},
            "title": {"anchor": "start", "frame": "bounds", "fontSize": 14, "color": LIGHT.ink},
        },
    }
    svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    looks = ((*astuple(each)[:5], each.series[0]) for each in (LIGHT, DARK))
    dark = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}'
        for light, dark in zip(*looks, strict=True)
    )
    head, end, rest = svg.partition(">")
    style = f"<style>@media screen and (prefers-color-scheme: dark){{{dark}}}</style>"
    return f"{head}{end}{style}{rest.strip()}\n"


def _frame(curve: Curve) -> dict[str, Any]:
    """Size, title and axes, from a power of ten to another."""
    axes = {}
    ends = {"x": (curve.of, curve.xs), "y": ("dollars a month", [*map(curve.dollars_at, curve.xs)])}
    for name, (title, found) in ends.items():
        least, most = floor(log10(found[0])), ceil(log10(found[-1]))
        values = [10**each for each in range(least, most + 1)]
        axes[name] = {
            "field": name,
            "type": "quantitative",
            "title": f"{title} (log scale)",
            "scale": {"type": "log", "nice": False, "domain": [values[0], values[-1]]},
            "axis": {"values": values, "labelExpr": _SHORT.format("value", "~s")},
        }
    return {"width": _WIDTH, "height": _HEIGHT, "title": curve.title, "encoding": axes}


def _line(curve: Curve) -> Iterator[dict[str, Any]]:
    """A line, and a dot for each row of the table."""
    first, last = curve.xs[0], curve.xs[-1]
    between = [first * (last / first) ** (n / _STEPS) for n in range(_STEPS + 1)]
    dot = {"type": "circle", "size": 50, "opacity": 1}
    for mark, xs in (({"type": "line"}, between), (dot, curve.xs)):
        rows = [{"x": at, "y": curve.dollars_at(at)} for at in xs]
        yield {"data": {"values": rows}, "mark": {"color": LIGHT.series[0], **mark}}


def _marks(curve: Curve) -> Iterator[dict[str, Any]]:
    """A rule from top to bottom, and its words at the foot, on the side with more room."""
    for n, (words, at) in enumerate(curve.marks.items()):
        colour, dash = (LIGHT.muted, [4, 3]) if n else (LIGHT.bad, [])
        is_right, foot = at * at > curve.xs[0] * curve.xs[-1], _HEIGHT - _LINE_HEIGHT * n
        side = {"align": "right", "dx": -5} if is_right else {"align": "left", "dx": 5}
        rule = {"type": "rule", "color": colour, "strokeDash": dash, "strokeWidth": 1.5}
        text = {"type": "text", "color": colour, "fontSize": 12, **side}
        said = f"{_SHORT.format('x', '.3~s')} + ': {words}'"
        data = {"data": {"values": [{"x": at}]}, "transform": [{"calculate": said, "as": "text"}]}
        yield {**data, "mark": rule, "encoding": {"y": {"value": 0}, "y2": {"value": foot}}}
        named = {"text": {"field": "text"}, "y": {"value": foot - 10}}
        yield {**data, "mark": text, "encoding": named}
