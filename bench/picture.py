"""The picture of docs/performance.md: how long 200,000 records take, by whom they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import vl_convert

OURS, OTHERS = "#2f7fd6", "#8c9aa8"
FONT = "Liberation Sans, Arial, sans-serif"
WIDTH, BAR = 560, 34
# Its own paper and its own ink: a page may be of either kind.
DARK = (
    "<style>@media (prefers-color-scheme: dark) {"
    "svg > rect { fill: #18212b } text { fill: #e8eef4 }"
    "}</style>"
)


class Bar(NamedTuple):
    """A way to read; `label` stands at its end."""

    name: str
    seconds: float
    label: str
    is_ours: bool


def picture(bars: Sequence[Bar], title: str) -> str:
    """An SVG that reads well on light and on dark pages."""
    svg: str = vl_convert.vegalite_to_svg(_chart(bars, title).to_dict(), allowed_base_urls=[])
    start = svg.index(">") + 1
    words = "; ".join(f"{each.name}: {each.label}" for each in bars)
    named = f"<title>{_escaped(title)}</title><desc>{_escaped(words)}</desc>"
    return f"{svg[:start]}{DARK}{named}{svg[start:]}\n"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _chart(bars: Sequence[Bar], title: str) -> alt.LayerChart:
    rows = [each._asdict() for each in bars]
    names = alt.Axis(
        title=None, labelLimit=300, labelFontSize=13, labelPadding=8, ticks=False, domain=False
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("name:N", sort=[each.name for each in bars], axis=names),
        x=alt.X("seconds:Q", axis=None, scale=alt.Scale(domainMin=0)),
    )
    colour = alt.condition("datum.is_ours", alt.value(OURS), alt.value(OTHERS))
    drawn = base.mark_bar(height=20, cornerRadiusEnd=3).encode(color=colour)
    ends = base.mark_text(align="left", dx=6, fontSize=13, color="#16202c").encode(text="label:N")
    heading = alt.TitleParams(title, anchor="start", fontSize=15, color="#16202c", offset=14)
    chart: alt.LayerChart = (
        alt.layer(drawn, ends)
        .properties(width=WIDTH, height=BAR * len(bars), background="#ffffff", title=heading)
        .configure(font=FONT, padding=16, view=alt.ViewConfig(stroke=None))
        .configure_axis(labelColor="#16202c")
    )
    return chart
