"""What Altair describes, drawn by vl-convert; the colours that all pictures share.

Only numbers and days go into a picture. Symptoms are somebody else's text and stay in the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import altair as alt
import vl_convert
from msgspec import Struct

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
    svg = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
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
