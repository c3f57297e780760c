"""The week as a mail: subject, text, HTML and one picture; the page says the rest.

Mail programs know tables and inline styles alone, Gmail cuts HTML off at 102 KB, and many make a
link of whatever looks like one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from functions.report.days_chart import IN_A_MAIL, NOT_READ, REACHED, days_chart
from functions.report.drawing import LIGHT, as_png
from functions.report.names import parts, plain
from functions.report.not_seen import not_seen_in_short
from functions.report.per_day import caption, in_words, per_day
from functions.report.standout import standout
from functions.report.summary import Summary
from functions.report.tiles import tiles
from functions.report.to_do import ToDo, left_out, to_do
from functions.report.verdict import headline, others, verdict_text
from functions.report.visible import unlinked
from functions.report.words import counted, days_of, together, week_name

PICTURE_ID = "incidents-per-day"
_MOST_ALT = 1_500
# In the template a little more: the room that the card leaves.
_CARD_WIDTH = 492


def _in_a_mail(value: Any) -> Any:
    """Without marks, no link in it, no number apart from its unit; but for what is our own."""
    ours = isinstance(value, Markup) or not isinstance(value, str)
    return value if ours else together(unlinked(plain(value)))


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "template"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_in_a_mail,
)
_TEMPLATES.filters["parts"] = parts


@dataclass(frozen=True)
class Mail:
    """What a mail program shows; `picture` is a PNG, None for a week without incidents."""

    subject: str
    text: str
    html: str
    picture: bytes | None


def subject(summary: Summary) -> str:
    """Numbers and our own words alone: nobody's text comes into a header."""
    name = f"Mendq {summary.week}"
    if summary.nothing_was_read:
        return f"{name}: nothing was read"
    totals = summary.totals
    if not totals.incidents:
        return f"{name}: no incidents"
    incidents = counted(totals.incidents, "incident")
    return f"{name}: {incidents}, {summary.mended:,} healed, {totals.paged:,} paged"


def text(summary: Summary, place: str, command: str) -> str:
    """The verdict, where the page lies, and the `mendq` command that opens it."""
    return f"{verdict_text(summary)}\n\nThe page: {place}\nTo read it: {command}\n"


def _to_do_text(number: int, each: ToDo) -> str:
    """Lines to be copied stand alone."""
    says = unlinked(plain(" ".join(part for part in (each.what, each.why, each.effect) if part)))
    owner = f"   owner: {unlinked(each.owner)}" if each.owner else ""
    copied = (f"   {line}" for line in _to_copy(each))
    return "\n".join((f"{number}. {says}", *([owner] if owner else []), *copied))


def _to_copy(each: ToDo) -> list[str]:
    """A line in which a link would have to be broken stands on the page alone."""
    return [line for line in (each.template_line, each.command) if line and unlinked(line) == line]


def _whole_text(summary: Summary, place: str, command: str) -> str:
    deeds = [_to_do_text(n, each) for n, each in enumerate(to_do(summary), 1)]
    more = left_out(summary)
    listed = "\n".join(("\nDo this week", *deeds, *([more] if more else []))) + "\n"
    return text(summary, place, command) + (listed if deeds else "")


def _page_holds(summary: Summary) -> str:
    """Which of the week's incidents stand on the page, one by one."""
    if summary.cases_left_out:
        worst = counted(len(summary.cases), "worst incident")
        return f"The page, with the {worst} of {summary.totals.incidents:,}:"
    return "The page, with every incident:" if summary.cases else "The page:"


def mail(summary: Summary, place: str, command: str) -> Mail:
    """The same summary gives the same mail."""
    week = per_day(summary)
    picture = as_png(days_chart(week, IN_A_MAIL, LIGHT)) if week.has_incidents else None
    html = _TEMPLATES.get_template("mail.html.j2").render(
        week=week_name(summary.week),
        days=days_of(summary.first_day, summary.last_day),
        headline=headline(summary),
        others=others(summary),
        standout=standout(summary),
        tiles=tiles(summary),
        to_do=[(each, [escape(line) for line in _to_copy(each)]) for each in to_do(summary)],
        to_do_left_out=left_out(summary),
        picture_id=PICTURE_ID if picture else "",
        alt=in_words(week)[:_MOST_ALT],
        width=_CARD_WIDTH,
        caption=caption(week),
        series=tuple(zip(LIGHT.series, week.series, strict=False)),
        reached=week.reached,
        reached_mark=REACHED,
        not_read=NOT_READ if week.has_unknown else "",
        look=LIGHT,
        read=not_seen_in_short(summary),
        place=Markup(place),  # noqa: S704 - a bucket's name and our own key
        command=escape(command),
        page_holds=_page_holds(summary),
    )
    return Mail(subject(summary), _whole_text(summary, place, command), html, picture)
