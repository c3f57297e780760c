"""A week's verdict on the terminal; apart from its command: charts take a second to start."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mendq.cli.output import Output
from mendq.report.not_seen import not_seen_in_short
from mendq.report.read_summary import SummaryUnreadable, read
from mendq.report.summary import Summary
from mendq.report.tiles import Tile, tiles
from mendq.report.to_do import ToDo, left_out, to_do
from mendq.report.verdict import headline, others, standout, verdict_text
from mendq.report.words import days_of, parts, week_name

__all__ = ["show", "summary_of", "verdict_text"]
_TONES = {"good": "green", "bad": "red"}


def summary_of(document: bytes | None) -> Summary | None:
    """None where this version cannot read it: the page is there all the same."""
    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def show(out: Output, summary: Summary) -> None:
    """Everybody else's words in it were made visible where they were read."""
    days = days_of(summary.first_day, summary.last_day)
    out.show(Text(f"{week_name(summary.week)}, {days} (UTC)", style="dim"))
    out.show(_said(headline(summary), "bold"))
    if rest := others(summary):
        out.show(_said(rest))
    if found := standout(summary):
        out.show(Text.assemble((found.queue, "bold red"), " ", _said(found.says, "bold")))
        out.show(_said(found.because, "dim"))
    if figures := tiles(summary):
        out.show(Padding(_figures(figures), (1, 0, 0, 0), expand=False))
    if recommendations := to_do(summary):
        out.heading("Do this week")
        for number, each in enumerate(recommendations, 1):
            _recommendation(out, number, each)
        if more := left_out(summary):
            out.show(Text(more, style="dim"))
    out.heading("What was read")
    out.show(_said(not_seen_in_short(summary), "dim"))


def _figures(figures: tuple[Tile, ...]) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True, style="dim")
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for each in figures:
        figure = Text.assemble((each.figure, "bold"), f" {each.of}" if each.of else "")
        shown.add_row(each.title, figure, Text(each.note, style=_TONES.get(each.tone, "")))
    return shown


def _recommendation(out: Output, number: int, recommendation: ToDo) -> None:
    says = Text.assemble(f"{number}. ", _said(recommendation.what, "bold"))
    for each in filter(None, (recommendation.why, recommendation.effect)):
        says.append(" ").append_text(_said(each))
    out.show(says)
    if recommendation.owner:
        out.show(Text(f"   owner: {recommendation.owner}", style="dim"))
    for line in filter(None, (recommendation.template_line, recommendation.command)):
        out.command(f" {line}")


def _said(sentence: str, style: str = "") -> Text:
    """With the names in it set apart."""
    said = Text(style=style)
    for kind, part in parts(sentence):
        said.append(part, style="cyan" if kind == "name" else "")
    return said
