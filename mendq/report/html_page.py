"""The weekly report as one HTML file that loads nothing: no script, no image, no font."""

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
from mendq.report.days import PerDay, make_per_day
from mendq.report.drawing import (
    DARK,
    LIGHT,
    NARROW,
    WIDE,
    Picture,
    days_chart,
    draw_both,
    sparkline_chart,
)
from mendq.report.links import ReportedAccount
from mendq.report.summary import Summary
from mendq.report.times import make_time_strips
from mendq.report.words import keep_units_together, split_at_marks


def _keep_units(value: Any) -> Any:
    """Return a text with no-break spaces between numbers and units; other values unchanged.

    Text that people copy, such as a command, is escaped Markup already and stays unchanged too.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return keep_units_together(value)


def load_template(name: str, finalize: Callable[[Any], Any] = _keep_units) -> Template:
    """Return a template of this package that escapes HTML.

    `finalize` is applied to each value before it is escaped and printed.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters["parts"] = split_at_marks
    # The templates call functions of these modules by the module's name.
    modules = (days, drawing, links, not_seen, open_now, tables, tiles, to_do, verdict, words)
    for module in modules:
        environment.globals[module.__name__.rpartition(".")[2]] = module
    return environment.get_template(name)


_PAGE = load_template("page.html.j2")
# Number of rows of each list that the page shows. It folds the others; a print has them all.
MOST_ROWS = 12


def page(summary: Summary, here: ReportedAccount | None = None) -> str:
    """Return the page of a week as an HTML document. The same summary gives the same text.

    Without `here` the page has no links into the AWS console and no commands.
    """
    week = make_per_day(summary)
    tile_row = []
    for tile in tiles.make_tiles(summary):
        sparkline = _draw_sparkline(tile) if tile.weeks else None
        tile_row.append((tile, sparkline))
    return _PAGE.render(
        summary=summary,
        here=here,
        per_day=week,
        times=make_time_strips(summary, week),
        pictures=_draw_days(week) if week.total else None,
        tile_row=tile_row,
        placed=links.list_anchors(summary),
        palettes=(LIGHT, DARK),
        most_rows=MOST_ROWS,
    ).lstrip()


def _draw_sparkline(tile: tiles.Tile) -> dict[str, Picture]:
    return draw_both(partial(sparkline_chart, tile.weeks, tile.part))


def _draw_days(week: PerDay) -> dict[str, dict[str, Picture]]:
    """Return the chart of the days as `wide` and as `narrow`, each for a light and a dark page."""
    return {
        "wide": draw_both(partial(days_chart, week, WIDE)),
        "narrow": draw_both(partial(days_chart, week, NARROW)),
    }
