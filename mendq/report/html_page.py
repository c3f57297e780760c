"""The weekly report as one HTML file that loads no other file: no script, image or font."""

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
from mendq.report.days import IncidentsPerDay, make_incidents_per_day
from mendq.report.drawing import (
    DARK_PALETTE,
    LIGHT_PALETTE,
    NARROW_CHART_SIZE,
    WIDE_CHART_SIZE,
    Picture,
    draw_for_both_palettes,
    make_days_chart,
    make_sparkline_chart,
)
from mendq.report.links import ReportedAccount
from mendq.report.summary import Summary
from mendq.report.times import make_time_strips
from mendq.report.words import keep_units_together, split_at_marks


def _keep_units_together_if_text(template_value: Any) -> Any:
    """Put no-break spaces between numbers and units if `template_value` is a text.

    Other values are returned unchanged. Markup is also unchanged: it may be a command to copy.
    """
    if isinstance(template_value, Markup) or not isinstance(template_value, str):
        return template_value
    return keep_units_together(template_value)


def load_template(
    template_name: str, finalize: Callable[[Any], Any] = _keep_units_together_if_text
) -> Template:
    """Load a template of this package. It escapes HTML in all values except Markup.

    The template calls `finalize` for each value before it escapes the value.
    """
    jinja_environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    jinja_environment.filters["parts"] = split_at_marks
    # The templates call functions of these modules by the module's name.
    template_modules = (
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
    for template_module in template_modules:
        jinja_environment.globals[template_module.__name__.rpartition(".")[2]] = template_module
    return jinja_environment.get_template(template_name)


_PAGE_TEMPLATE = load_template("page.html.j2")
# Number of rows that the page shows of each list. If more rows than this need a person, it shows
# all of these. The other rows are folded; a print has all rows.
USUAL_UNFOLDED_ROW_COUNT = 12


def make_page(summary: Summary, reported_account: ReportedAccount | None = None) -> str:
    """Return the report of one week as an HTML document.

    The same arguments always give the same document. If `reported_account` is None, the page has no
    commands and no links to runbooks.
    """
    incidents_per_day = make_incidents_per_day(summary)
    tiles_and_sparklines = []
    for tile in tiles.make_tiles(summary):
        sparkline = _draw_sparkline(tile) if tile.weekly_figures else None
        tiles_and_sparklines.append((tile, sparkline))
    return _PAGE_TEMPLATE.render(
        summary=summary,
        reported_account=reported_account,
        per_day=incidents_per_day,
        times=make_time_strips(summary, incidents_per_day),
        pictures=_draw_days_charts(incidents_per_day) if incidents_per_day.total else None,
        tiles_and_sparklines=tiles_and_sparklines,
        case_anchors=links.list_case_anchors(summary),
        palettes=(LIGHT_PALETTE, DARK_PALETTE),
        most_rows=USUAL_UNFOLDED_ROW_COUNT,
    ).lstrip()


def _draw_sparkline(tile: tiles.Tile) -> dict[str, Picture]:
    return draw_for_both_palettes(
        partial(make_sparkline_chart, tile.weekly_figures, tile.weekly_part)
    )


def _draw_days_charts(incidents_per_day: IncidentsPerDay) -> dict[str, dict[str, Picture]]:
    """Draw the chart of the incidents per day for a desktop and a phone, in light and in dark.

    The keys are `wide` and `narrow`, and below each of them `light` and `dark`.
    """
    return {
        "wide": draw_for_both_palettes(
            partial(make_days_chart, incidents_per_day, WIDE_CHART_SIZE)
        ),
        "narrow": draw_for_both_palettes(
            partial(make_days_chart, incidents_per_day, NARROW_CHART_SIZE)
        ),
    }
