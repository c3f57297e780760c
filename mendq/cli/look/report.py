"""The weekly reports of an account: fetched into a file, with the verdict on the terminal."""

from __future__ import annotations

import re
import webbrowser
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import ClientError
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mendq.aws.errors import code_of
from mendq.cli import output
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.look.export import replace_if_changed
from mendq.cli.output import Output, Yes, confirm
from mendq.report.not_seen import not_seen_in_short
from mendq.report.summary import Summary
from mendq.report.tiles import Tile, tiles
from mendq.report.to_do import ToDo, left_out, to_do
from mendq.report.verdict import headline, others, standout
from mendq.report.words import days_of, parts, week_name

MOST_WEEKS_NAMED = 8
# Where deliver_report puts a week's page, and the weekly job what the page is made of.
PAGE, SUMMARY = "report/week={}/report.html", "summary/week={}/summary.json"
_WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
_BEING_MADE = "{} is summed up and its page is not there yet: that takes a minute, come again"
_NONE_YET = (
    "there is no report yet: the first comes when a week has ended, at `report.weekday` and "
    "`report.hour` of the settings"
)
_TONES = {"good": "green", "bad": "red"}


@with_invocation
def report(
    call: Invocation,
    week: Annotated[
        str | None, typer.Option(help="Such as 2026-W46; else the latest.", show_default=False)
    ] = None,
    in_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    yes: Yes = False,
) -> None:
    """Fetch the weekly report and say its verdict."""
    asked = None if week is None else iso_week(week)
    reports = Reports(call.account)
    with call.out.waiting("looking into the report bucket"):
        weeks = reports.weeks(PAGE)
        chosen = asked or max(weeks, default="")
        page = reports.read(PAGE, chosen) if chosen in weeks else None
        if page is None:
            raise _missing(reports, chosen, [each for each in weeks if each != chosen])
        summary = _summary(reports.read(SUMMARY, chosen))
    path = Path(f"mendq-report-{chosen}.html")
    if summary is not None and not call.as_json:
        show(call.out, summary)
    written = _written(path, page.decode("utf-8", "replace"), yes=yes)
    opened = in_browser and _opened(call, path)
    call.out.document(
        {
            "week": chosen,
            "file": str(path.resolve()),
            "written": written,
            "opened": opened,
            "place": f"s3://{reports.bucket}/{PAGE.format(chosen)}",
            "verdict": None if summary is None else _verdict(summary),
            "weeks": weeks,
        }
    )
    newest = max(reports.weeks(SUMMARY), default="") if asked is None else ""
    if newest > chosen:
        call.out.say(f"\n{_BEING_MADE.format(newest)}", "yellow")
    call.out.say(f"\nThe page: {path}{'' if written else ', as it was there before'}")
    if in_browser and not opened:
        call.out.say("no browser could be started here: open the file in one", "yellow")


def iso_week(text: str) -> str:
    """`text`, given as --week, where it is a week such as 2026-W46; Stopped where it is none."""
    found = _WEEK.fullmatch(text)
    year = int(found[1]) if found else 0
    remedy = "say one such as 2026-W46"
    if found and year:
        # The year's last ISO week is the one that 28 December lies in.
        last = date(year, 12, 28).isocalendar().week
        if 1 <= int(found[2]) <= last:
            return text
        remedy = f"{found[1]} has {last}, so say one from {found[1]}-W01 to {found[1]}-W{last}"
    raise Stopped(f"--week {text} is no week: {remedy}", Exit.USAGE)


@dataclass(frozen=True)
class Reports:
    """What lies in the report bucket of the stack."""

    account: Account

    @property
    def bucket(self) -> str:
        return self.account.output("ReportBucket")

    def weeks(self, key: str) -> list[str]:
        """Those whose object is there, oldest first; other things lie beside it."""
        before, _, after = key.partition("{}")
        listed = self.account.clients.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=before
        )
        keys = (each["Key"] for page in listed for each in page.get("Contents", []))
        names = (each.removeprefix(before).removesuffix(after) for each in keys)
        return sorted({each for each in names if _WEEK.fullmatch(each)})

    def read(self, key: str, week: str) -> bytes | None:
        """None where there is none."""
        try:
            answer = self.account.clients.s3.get_object(Bucket=self.bucket, Key=key.format(week))
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise
        return answer["Body"].read()


def _missing(reports: Reports, week: str, weeks: list[str]) -> Stopped:
    """Why there is no page of the week, or of any where none was asked for."""
    summed_up = [each for each in reports.weeks(SUMMARY) if not week or each == week]
    if summed_up:
        lost = "if it stays away, the log of deliver_report says why"
        return Stopped(f"{_BEING_MADE.format(summed_up[-1])}; {lost}", Exit.NOT_FOUND)
    if not weeks:
        return Stopped(_NONE_YET, Exit.NOT_FOUND)
    more = len(weeks) - MOST_WEEKS_NAMED
    earlier = f", and {more} earlier" if more > 0 else ""
    there = f"there are {', '.join(weeks[-MOST_WEEKS_NAMED:])}{earlier}"
    return Stopped(f"there is no report of {week}: {there}", Exit.NOT_FOUND)


def _written(path: Path, page: str, *, yes: bool) -> bool:
    """Whether it was; what somebody has there is not overwritten unasked."""
    try:
        differs = path.is_file() and path.read_bytes() != page.encode()
    except OSError as error:
        raise Stopped(f"{path} is there already and cannot be read: {error.strerror}") from error
    if differs:
        if not yes and not output.somebody_is_there():
            line = f"{path} is there already and differs, and there is no terminal to ask at"
            raise Stopped(f"{line}: --yes overwrites it; or move it away", Exit.USAGE)
        confirm(f"{path} is there already and differs. Overwrite it?", yes=yes)
    return replace_if_changed(path, page)


def _opened(call: Invocation, path: Path) -> bool:
    with call.out.alone_on_stdout():
        return webbrowser.open(path.resolve().as_uri())


def _summary(document: bytes | None) -> Summary | None:
    """None where this version cannot read it: the page is there all the same."""
    from mendq.report.read_summary import SummaryUnreadable, read  # noqa: PLC0415 - msgspec

    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def _verdict(summary: Summary) -> str:
    from mendq.report.verdict import verdict_text  # noqa: PLC0415 - charts take a second

    return verdict_text(summary)


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
