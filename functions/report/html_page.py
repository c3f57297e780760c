"""The week as one HTML file that needs nothing else: no script, no address, no font."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from functions.report.days_chart import NARROW, NOT_READ, WIDE, days_chart
from functions.report.drawing import DARK, LIGHT, Look, as_picture
from functions.report.not_seen import not_seen
from functions.report.per_day import PerDay, caption, in_words, per_day
from functions.report.rows import rows
from functions.report.standout import standout
from functions.report.summary import Summary
from functions.report.tiles import tiles
from functions.report.verdict import headline
from functions.report.visible import MOST_SENTENCE, visible
from functions.report.words import byte_size, counted, days_of, listed, moment, week_name

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
MOST_ACCOUNTS = 3


def page(summary: Summary) -> str:
    """The whole HTML document; the same summary gives the same text."""
    return _TEMPLATES.get_template("page.html.j2").render(_model(summary))


def _model(summary: Summary) -> dict[str, Any]:
    week = per_day(summary)
    return {
        "week": week_name(summary.week),
        "days": days_of(summary.first_day, summary.last_day),
        "queues": counted(queues, "queue") if (queues := summary.totals.queues) else "",
        "headline": headline(summary),
        "standout": standout(summary),
        "tiles": tiles(summary),
        "nothing_was_read": summary.nothing_was_read,
        "caption": caption(week),
        "per_day": week,
        "not_read": NOT_READ,
        "pictures": _pictures(week),
        "in_words": in_words(week),
        "looks": (LIGHT, DARK),
        "rows": rows(summary),
        "not_seen": not_seen(summary),
        "unreadable": [
            (visible(each.file, MOST_SENTENCE), visible(each.reason, MOST_SENTENCE))
            for each in summary.not_seen.unreadable_files
        ],
        "made": moment(summary.made_at),
        "made_from": _made_from(summary),
    }


def _pictures(week: PerDay) -> dict[str, Any] | None:
    """None for a week without incidents: bars of nothing say nothing."""
    if not week.has_incidents:
        return None
    looks: dict[str, Look] = {"light": LIGHT, "dark": DARK}
    sizes = {"wide": WIDE, "narrow": NARROW}
    return {
        f"{size_name}_{look_name}": as_picture(days_chart(week, size, look))
        for size_name, size in sizes.items()
        for look_name, look in looks.items()
    }


def _made_from(summary: Summary) -> str:
    seen = summary.not_seen
    read = (
        f"{counted(seen.files_read, 'trail file')} ({byte_size(seen.bytes_read)}) "
        f"with {counted(seen.records_read, 'record')}"
    )
    regions = listed([visible(each) for each in summary.regions] or ["no region"])
    return f"{read}, of {_accounts(summary.accounts)} in {regions}"


def _accounts(accounts: tuple[str, ...]) -> str:
    if not accounts:
        return "no account"
    if len(accounts) > MOST_ACCOUNTS:
        return f"{len(accounts)} accounts"
    word = "account" if len(accounts) == 1 else "accounts"
    return f"{word} {listed([visible(each) for each in accounts])}"
