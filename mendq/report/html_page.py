"""The week as one HTML file that needs nothing else: no script, no address, no font."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from mendq.report import (
    days,
    drawing,
    links,
    not_seen,
    open_now,
    tables,
    tiles,
    to_do,
    verdict,
    words,
)
from mendq.report.days import PerDay, per_day
from mendq.report.drawing import (
    DARK,
    LIGHT,
    NARROW,
    WIDE,
    Picture,
    days_chart,
    in_both,
    spark_chart,
)
from mendq.report.links import Here
from mendq.report.summary import Summary
from mendq.report.times import times
from mendq.report.words import parts, together


def _together(value: Any) -> Any:
    """No line breaks between a number and its unit; what is to be copied comes escaped already."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else together(value)


def template(name: str, finalize: Callable[[Any], Any] = _together) -> Template:
    """A template that escapes; `finalize` is what becomes of each value before."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters["parts"] = parts
    sentences = (days, drawing, links, not_seen, open_now, tables, tiles, to_do, verdict, words)
    environment.globals.update({each.__name__.rpartition(".")[2]: each for each in sentences})
    return environment.get_template(name)


_PAGE = template("page.html.j2")
# Of each list; the page folds the others away, and paper has them all.
MOST_ROWS = 12


def page(summary: Summary, here: Here | None = None) -> str:
    """The whole HTML document; the same summary gives the same text."""
    week = per_day(summary)
    row = tiles.tiles(summary)
    return _PAGE.render(
        summary=summary,
        here=here,
        per_day=week,
        times=times(summary, week),
        pictures=_days(week) if week.total else None,
        tile_row=[(each, _spark(each) if each.weeks else None) for each in row],
        placed=links.places(summary),
        palettes=(LIGHT, DARK),
        most_rows=MOST_ROWS,
    ).lstrip()


def _spark(tile: tiles.Tile) -> dict[str, Picture]:
    return in_both(partial(spark_chart, tile.weeks, tile.part))


def _days(week: PerDay) -> dict[str, dict[str, Picture]]:
    sizes = {"wide": WIDE, "narrow": NARROW}
    return {name: in_both(partial(days_chart, week, size)) for name, size in sizes.items()}
