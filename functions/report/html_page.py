"""The week as one HTML file that needs nothing else: no script, no address, no font."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from functions.report.days import (
    NARROW,
    NOT_READ,
    WIDE,
    PerDay,
    caption,
    days_chart,
    in_words,
    per_day,
)
from functions.report.drawing import DARK, LIGHT, as_picture
from functions.report.not_seen import made_from, not_seen
from functions.report.summary import Summary
from functions.report.tables import healed_count, heat, people, people_caption, rows, swept
from functions.report.tiles import tiles
from functions.report.times import strips, times
from functions.report.to_do import left_out, to_do
from functions.report.verdict import headline, others, standout
from functions.report.words import (
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


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "template"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_together,
)
_TEMPLATES.filters["parts"] = parts
_LOOKS = {"light": LIGHT, "dark": DARK}
# Of each list; the page folds the others away, and paper has them all.
MOST_ROWS = 12
_SIZES = {"wide": WIDE, "narrow": NARROW}


def page(summary: Summary) -> str:
    """The whole HTML document; the same summary gives the same text."""
    template = _TEMPLATES.get_template("page.html.j2")
    return template.render(_verdict(summary) | _sections(summary) | _pictures(summary)).lstrip()


def _verdict(summary: Summary) -> dict[str, Any]:
    return {
        "week": week_name(summary.week),
        "days": days_of(summary.first_day, summary.last_day),
        "queues": counted(queues, "queue") if (queues := summary.totals.queues) else "",
        "headline": headline(summary),
        "standout": standout(summary),
        "others": others(summary),
        "tiles": tiles(summary),
        "swept": swept(summary),
        "nothing_was_read": summary.nothing_was_read,
        "made": moment(summary.made_at),
        "made_from": made_from(summary),
    }


def _sections(summary: Summary) -> dict[str, Any]:
    every = rows(summary)
    return {
        "most_rows": MOST_ROWS,
        "to_do": to_do(summary),
        "to_do_left_out": left_out(summary),
        "heat": heat(summary),
        "people": people(summary),
        "people_caption": people_caption(summary),
        "not_healed": [each for each in every if not each.is_mended],
        "healed": [each for each in every if each.is_mended],
        "healed_count": healed_count(every),
        "not_seen": not_seen(summary),
        "unreadable": [
            (visible(each.file, MOST_SENTENCE), visible(each.reason, MOST_SENTENCE))
            for each in summary.not_seen.unreadable_files
        ],
    }


def _pictures(summary: Summary) -> dict[str, Any]:
    week = per_day(summary)
    found = times(summary, week)
    return {
        "looks": (LIGHT, DARK),
        "per_day": week,
        "caption": caption(week),
        "in_words": in_words(week),
        "not_read": NOT_READ,
        "pictures": _days(week),
        "times": found,
        "strips": {name: strips(found, look) for name, look in _LOOKS.items()} if found else {},
    }


def _days(week: PerDay) -> dict[str, Any] | None:
    """None for a week without incidents: bars of nothing say nothing."""
    if not week.has_incidents:
        return None
    return {
        f"{size_name}_{look_name}": as_picture(days_chart(week, size, look))
        for size_name, size in _SIZES.items()
        for look_name, look in _LOOKS.items()
    }
