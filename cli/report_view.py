"""A week's report in a terminal: the same sentences as the page's, in the same order."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.output import Output
from functions.report.not_seen import not_seen_in_short
from functions.report.summary import Summary
from functions.report.tiles import Tile, tiles
from functions.report.to_do import ToDo, left_out, to_do
from functions.report.verdict import headline, others, standout
from functions.report.words import days_of, parts, week_name

_TONES = {"good": "green", "bad": "red"}


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
    if deeds := to_do(summary):
        out.heading("Do this week")
        for number, each in enumerate(deeds, 1):
            _deed(out, number, each)
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


def _deed(out: Output, number: int, deed: ToDo) -> None:
    says = Text.assemble(f"{number}. ", _said(deed.what, "bold"))
    for each in (deed.why, deed.effect):
        if each:
            says.append(" ").append_text(_said(each))
    out.show(says)
    if deed.owner:
        out.show(Text(f"   owner: {deed.owner}", style="dim"))
    for line in (deed.template_line, deed.command):
        if line:
            out.command(f" {line}")


def _said(sentence: str, style: str = "") -> Text:
    """With the names in it set apart."""
    said = Text(style=style)
    for kind, part in parts(sentence):
        said.append(part, style="cyan" if kind == "name" else "")
    return said
