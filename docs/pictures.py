"""Draw the pictures of the docs as SVG files, which follow the reader's light or dark theme.

The pictures that explain symptoms and a redrive have made-up numbers and use the report's drawing
code. The numbers of the curves in docs/scale.md are computed.
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
from mendq.report.drawing import DARK_PALETTE, LIGHT_PALETTE, Bar, Lane, LanePicture, Palette
from tests.prove.scale import Curve

_MADE_UP_NOTE = "The numbers are made up."
PICTURES_FOLDER = Path(__file__).parent / "pictures"
_TEMPLATES_FOLDER = Path(html_page.__file__).parent / "template"


def draw_pictures() -> dict[str, str]:
    """Return the pictures that explain symptoms and a redrive, as SVG documents by file name."""
    colour_definitions = (_TEMPLATES_FOLDER / "page.css").read_text().partition("\n*")[0]
    style_sheet = f"{colour_definitions}\n{(_TEMPLATES_FOLDER / 'lanes.css').read_text()}".rstrip()
    draw_lanes = html_page.load_template("lanes.svg.j2").module.svg  # type: ignore[attr-defined]
    lanes_by_file_name = {
        "visibility.svg": _make_visibility_picture(),
        "message-group.svg": _make_message_group_picture(),
        "redrive.svg": _make_redrive_picture(),
    }
    svg_by_file_name: dict[str, str] = {}
    for file_name, lanes in lanes_by_file_name.items():
        svg_by_file_name[file_name] = f"{str(draw_lanes(lanes, style_sheet)).strip()}\n"
    return svg_by_file_name


def _make_visibility_picture() -> LanePicture:
    """Return the data of the picture about a message that is handled twice, in seconds."""
    lanes = (
        Lane("Visibility timeout: hidden from others", (Bar(0, 30, "waits"),), "30 s"),
        Lane("Consumer A works past it", (Bar(0, 30), Bar(30, 45, "bad")), "45 s"),
        Lane("Consumer B receives the same message", (Bar(30, 50, "bad"),), "at 30 s"),
        Lane("Standard queue: A's late delete answers 200", (Bar(45, 45, "bad"),), "at 45 s"),
        Lane("FIFO queue: A's late delete fails", (Bar(45, 45, "bad"),), "at 45 s"),
        Lane("B's delete is in time: handled twice", (Bar(50, 50, "good"),), "at 50 s"),
    )
    return LanePicture("A message is handled twice", lanes, _MADE_UP_NOTE, line_position=30)


def _make_message_group_picture() -> LanePicture:
    """Return the data of the picture about a message group that a failing message blocks.

    Times are in seconds.
    """
    failure_bars = tuple(
        Bar(start_seconds + 1, start_seconds + 30, "bad") for start_seconds in (0, 30, 60)
    )
    success_bars = tuple(
        Bar(start_seconds, start_seconds + 9, "good") for start_seconds in range(0, 120, 10)
    )
    lanes = (
        Lane("Group A, message 1: received, fails", failure_bars, "3 times 30 s"),
        Lane("It moves to the DLQ", (Bar(90, 90, "bad"),), "at 90 s"),
        Lane("Group A, messages 2 to 4: wait", (Bar(0, 90, "waits"), *success_bars[9:]), "90 s"),
        Lane("Group B: nothing holds it up", success_bars),
    )
    return LanePicture("A message holds up its group", lanes, _MADE_UP_NOTE)


def _make_redrive_picture() -> LanePicture:
    """Return the data of the picture about a redrive, in seconds."""
    return LanePicture("A redrive sends more and more", tuple(_list_redrive_lanes()), _MADE_UP_NOTE)


def _list_redrive_lanes() -> Iterator[Lane]:
    """Yield the stages of a redrive with the default limits, one lane each.

    The source queue has a visibility timeout of 30 s and a maxReceiveCount of 3. Mendq sends four
    messages per second.
    """
    redrive_bounds = Bounds()
    batch_begin_seconds = 0.0
    batch_labels = ("Canary batch", "Nothing came back", "Nothing came back")
    for position, batch_label in enumerate(batch_labels):
        message_count = redrive_bounds.canary * redrive_bounds.growth**position
        batch_end_seconds = batch_begin_seconds + message_count / 4
        soak_end_seconds = batch_end_seconds + redrive_bounds.soak_factor * 3 * 30
        yield Lane(
            f"{batch_label}: {message_count} messages",
            (Bar(batch_begin_seconds, batch_end_seconds),),
        )
        yield Lane(
            "Soak: do any come back?",
            (Bar(batch_end_seconds, soak_end_seconds, "waits"),),
            f"{soak_end_seconds - batch_end_seconds:.0f} s",
        )
        batch_begin_seconds = soak_end_seconds
    yield Lane("Verified", (Bar(batch_begin_seconds, batch_begin_seconds, "good"),))


def draw_curves(curves: Iterable[Curve]) -> str:
    """Return an SVG document with the curves, one below the other.

    pictures/scale.json has the Vega-Lite chart, with the appearance of one panel.
    """
    chart = json.loads((PICTURES_FOLDER / "scale.json").read_text())
    chart["vconcat"] = [_make_curve_panel(curve, deepcopy(chart["vconcat"])) for curve in curves]
    svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    dark_mode_rules: list[str] = []
    for light_colour, dark_colour in zip(
        _list_colours(LIGHT_PALETTE), _list_colours(DARK_PALETTE), strict=True
    ):
        dark_mode_rules.append(
            f'[fill="{light_colour}"]{{fill:{dark_colour}}}[stroke="{light_colour}"]{{stroke:{dark_colour}}}'
        )
    dark_mode_css = "".join(dark_mode_rules)
    style_element = (
        f"<style>@media screen and (prefers-color-scheme: dark){{{dark_mode_css}}}</style>"
    )
    return f"{svg.replace('>', f'>{style_element}', 1).strip()}\n"


def _list_colours(palette: Palette) -> list[str]:
    """Return the colours of a palette of the report that the curves use, in a fixed order."""
    return [*astuple(palette)[:5], palette.series_colours[0]]


def _make_curve_panel(curve: Curve, panel_template: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a Vega-Lite panel that shows a curve.

    The panel has a line, a dot for each row of the curve's table, and vertical rules at the first
    two marks of the curve. The subtitle explains the rules. The axis title in `panel_template`
    changes too.
    """
    chart_rows = [
        {"kind": "line", "x": x_value, "y": curve.dollars_at(x_value)} for x_value in curve.points()
    ]
    chart_rows.extend(
        {"kind": "dot", "x": x_value, "y": curve.dollars_at(x_value)} for x_value in curve.xs
    )
    subtitle: list[str] = []
    for rule_style, (mark_text, x_value) in zip(
        ("red", "dashed"), curve.marks.items(), strict=False
    ):
        chart_rows.append({"kind": rule_style, "x": x_value})
        subtitle.append(f"{rule_style}: {x_value:,.0f}, {mark_text}")
    panel_template["encoding"]["x"]["title"] = f"{curve.of} (log scale)"
    return panel_template | {
        "data": {"values": chart_rows},
        "title": {"text": curve.title, "subtitle": subtitle},
    }
