"""The week as one HTML file that needs nothing else: no script, no address, no font."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from mendq.report.days import (
    NARROW,
    NOT_READ,
    WIDE,
    PerDay,
    Size,
    caption,
    days_chart,
    in_words,
    per_day,
)
from mendq.report.drawing import DARK, LIGHT, Picture, in_both
from mendq.report.not_seen import made_from, not_seen
from mendq.report.summary import Summary
from mendq.report.tables import heat, incident_rows, people, people_caption, scanned
from mendq.report.tiles import tiles
from mendq.report.times import times
from mendq.report.to_do import left_out, to_do
from mendq.report.verdict import headline, others, standout
from mendq.report.words import (
    MOST_SENTENCE,
    counted,
    days_of,
    moment,
    parts,
    together,
    visible,
    week_name,
)


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
    return environment.get_template(name)


_PAGE = template("page.html.j2")
# Of each list; the page folds the others away, and paper has them all.
MOST_ROWS = 12


def page(summary: Summary) -> str:
    """The whole HTML document; the same summary gives the same text."""
    return _PAGE.render(opening(summary) | _sections(summary) | _pictures(summary)).lstrip()


def opening(summary: Summary) -> dict[str, Any]:
    """What page and mail begin with."""
    return {
        "week": week_name(summary.week),
        "days": days_of(summary.first_day, summary.last_day),
        "headline": headline(summary),
        "standout": standout(summary),
        "others": others(summary),
        "tiles": tiles(summary),
        "to_do": to_do(summary),
        "to_do_left_out": left_out(summary),
    }


def _sections(summary: Summary) -> dict[str, Any]:
    every = incident_rows(summary)
    healed = [each for each in every if each["is_fixed"]]
    return {
        "queues": counted(queues, "queue") if (queues := summary.totals.queues) else "",
        "scanned": scanned(summary),
        "nothing_was_read": summary.nothing_was_read,
        "made": moment(summary.made_at),
        "made_from": made_from(summary),
        "most_rows": MOST_ROWS,
        "heat": heat(summary),
        "people": people(summary),
        "people_caption": people_caption(summary),
        "not_healed": [each for each in every if not each["is_fixed"]],
        "healed": healed,
        "healed_count": counted(len(healed), "healed incident"),
        "not_seen": not_seen(summary),
        "unreadable": [
            (visible(each.file, MOST_SENTENCE), visible(each.reason, MOST_SENTENCE))
            for each in summary.not_seen.unreadable_files
        ],
    }


def _pictures(summary: Summary) -> dict[str, Any]:
    week = per_day(summary)
    return {
        "palettes": (LIGHT, DARK),
        "per_day": week,
        "caption": caption(week),
        "in_words": in_words(week),
        "not_read": NOT_READ,
        "pictures": _days(week) if week.has_incidents else None,
        "times": times(summary, week),
    }


def _days(week: PerDay) -> dict[str, dict[str, Picture]]:
    def drawn(size: Size) -> dict[str, Picture]:
        return in_both(lambda look: days_chart(week, size, look))

    return {"wide": drawn(WIDE), "narrow": drawn(NARROW)}
