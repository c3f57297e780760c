"""Pictures, each a file of its own in the colours of whoever looks: light or dark.

Those that explain a symptom are drawn as the report draws a case's; their numbers are made up.
The curves of docs/scale.md are computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import vl_convert
from msgspec.structs import astuple

from mendq.model.limits import Bounds
from mendq.report import html_page
from mendq.report.drawing import DARK, LIGHT, Bar, Lane, Lanes
from tests.prove.scale import Curve

_NOTE = "The numbers are made up."
PICTURES = Path(__file__).parent / "pictures"
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


def curves_in_one(curves: Iterable[Curve]) -> str:
    """The SVG document that has one curve below the other: scale.json says how each looks."""
    chart = json.loads((PICTURES / "scale.json").read_text())
    chart["vconcat"] = [_panel(each, deepcopy(chart["vconcat"])) for each in curves]
    svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    looks = ((*astuple(each)[:5], each.series[0]) for each in (LIGHT, DARK))
    dark = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}'
        for light, dark in zip(*looks, strict=True)
    )
    style = f"<style>@media screen and (prefers-color-scheme: dark){{{dark}}}</style>"
    return f"{svg.replace('>', f'>{style}', 1).strip()}\n"


def _panel(curve: Curve, panel: dict[str, Any]) -> dict[str, Any]:
    """A line, a dot for each row of the table, and a rule where each mark is, named above."""
    marks = dict(zip(("red", "dashed"), curve.marks.items(), strict=False))
    points = [("line", each) for each in curve.points()] + [("dot", each) for each in curve.xs]
    rows = [{"kind": kind, "x": x, "y": curve.dollars_at(x)} for kind, x in points]
    rows += [{"kind": kind, "x": x} for kind, (_, x) in marks.items()]
    named = [f"{kind}: {x:,.0f}, {words}" for kind, (words, x) in marks.items()]
    panel["encoding"]["x"]["title"] = f"{curve.of} (log scale)"
    return panel | {"data": {"values": rows}, "title": {"text": curve.title, "subtitle": named}}
