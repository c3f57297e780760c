"""A week's verdict on the terminal; apart from its command: charts take a second to start."""

from __future__ import annotations

from mendq.cli.invocation import Invocation
from mendq.report.read_summary import SummaryUnreadable, read
from mendq.report.summary import Summary
from mendq.report.to_do import Here, left_out, to_do
from mendq.report.verdict import verdict_text
from mendq.report.words import plain

__all__ = ["show", "summary_of", "verdict_text"]


def summary_of(document: bytes | None) -> Summary | None:
    """None where this version cannot read it: the page is there all the same."""
    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def show(call: Invocation, summary: Summary) -> None:
    """Everybody else's words in it were made visible where they were read."""
    out, here = call.out, Here(call.account.region, call.account.account_id)
    for line in verdict_text(summary).splitlines():
        out.say(line)
    recommendations = to_do(summary, here)
    if recommendations:
        out.heading("Do this week")
    for number, each in enumerate(recommendations, 1):
        out.say(plain(f"{number}. {each.what} {each.why} {each.effect}"))
        if each.owner:
            out.under(f"owner: {each.owner}", "dim")
        if each.command:
            out.command(f" {each.command}")
    if more := left_out(summary):
        out.say(more, "dim")
