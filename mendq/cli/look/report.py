"""The weekly reports of an account: fetched into a file, with the verdict on the terminal."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from mendq.cli.account import Account
from mendq.cli.commands import STACK, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.export import replace_if_changed
from mendq.cli.output import Yes
from mendq.notifications.notification import NOTHING_COUNTED
from mendq.report.links import ReportedAccount
from mendq.report.summary import Summary, SummaryUnreadable, read
from mendq.report.to_do import describe_left_out, list_to_do
from mendq.report.verdict import verdict_text
from mendq.report.words import remove_marks

MOST_WEEKS_NAMED = 8
# Where deliver_report puts a week's page, and the weekly job what the page is made of.
PAGE, SUMMARY = "report/week={}/report.html", "summary/week={}/summary.json"
_BEING_MADE = "{} is summed up and its page is not there yet: that takes a minute, come again"
_NONE_YET = "there is no report yet: the first comes when a week has ended, at report.weekday"


@command(5, Kind.LOOKING, STACK | {"s3:GetObject", "s3:ListBucket"})
def report(
    call: Invocation,
    week: Annotated[
        str | None, typer.Option(help="Such as 2026-W46; else the latest.", show_default=False)
    ] = None,
    in_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    yes: Yes = False,
) -> None:
    """Fetch the weekly report and say its verdict.

    Examples:
      mendq report --open
      mendq report --week 2026-W46
    """
    asked = None if week is None else iso_week(week)
    reports = Reports(call.account)
    with call.out.show_waiting("looking into the report bucket"):
        weeks = reports.weeks(PAGE)
        chosen = asked or max(weeks, default="")
        page = reports.read(PAGE, chosen) if chosen in weeks else None
        if page is None:
            raise _missing(reports, chosen, [each for each in weeks if each != chosen])
        summary = _summary_of(reports.read(SUMMARY, chosen))
    path = Path(f"mendq-report-{chosen}.html")
    if summary is not None and not call.as_json:
        _show(call, summary)
    written = replace_if_changed(path, page.decode("utf-8", "replace"), yes=yes)
    call.out.print_json(
        {
            "week": chosen,
            "file": str(path.resolve()),
            "written": written,
            "place": f"s3://{reports.bucket}/{PAGE.format(chosen)}",
            "verdict": None if summary is None else verdict_text(summary),
            "weeks": weeks,
        }
    )
    newest = max(reports.weeks(SUMMARY), default="") if asked is None else ""
    if newest > chosen:
        call.out.say(f"\n{_BEING_MADE.format(newest)}", "yellow")
    call.out.say(f"\nThe page: {path}{'' if written else ', as it was there before'}")
    if call.account.has_no_nightly_job:
        call.out.say(f"Since then nothing new: {NOTHING_COUNTED}", "yellow")
    # What a browser prints is no part of a document.
    if in_browser and not (call.as_json or webbrowser.open(path.resolve().as_uri())):
        call.out.say("no browser could be started here: open the file in one", "yellow")


def iso_week(text: str) -> str:
    """`text`, given as --week, where it is a week such as 2026-W46.

    Raises CommandError where it is none.
    """
    if not _is_week(text):
        line = f"--week {text} is no week: say one such as 2026-W46, of a year's 52 or 53"
        raise CommandError(line, Exit.USAGE)
    return text


def _is_week(text: str) -> bool:
    with suppress(ValueError):
        return f"{date.fromisoformat(text):%G-W%V}" == text
    return False


class Reports(Struct, frozen=True):
    """What lies in the report bucket of the stack."""

    account: Account

    @property
    def bucket(self) -> str:
        return self.account.output("ReportBucket")

    def weeks(self, key: str) -> list[str]:
        """Those whose object is there, oldest first; other things lie beside it."""
        before, _, after = key.partition("{}")
        pages = self.account.clients.s3.get_paginator("list_objects_v2")
        listed = pages.paginate(Bucket=self.bucket, Prefix=before)
        keys = (each["Key"] for page in listed for each in page.get("Contents", []))
        names = (each.removeprefix(before).removesuffix(after) for each in keys)
        return sorted(set(filter(_is_week, names)))

    def read(self, key: str, week: str) -> bytes | None:
        """None where there is none."""
        s3 = self.account.clients.s3
        with suppress(s3.exceptions.NoSuchKey):
            return s3.get_object(Bucket=self.bucket, Key=key.format(week))["Body"].read()
        return None


def _missing(reports: Reports, week: str, weeks: list[str]) -> CommandError:
    """Why there is no page of the week, or of any where none was asked for."""
    summed_up = [each for each in reports.weeks(SUMMARY) if not week or each == week]
    if summed_up:
        lost = "if it stays away, the log of deliver_report says why"
        return CommandError(f"{_BEING_MADE.format(summed_up[-1])}; {lost}", Exit.NOT_FOUND)
    if reports.account.has_no_nightly_job:
        return CommandError(f"there is no report: {NOTHING_COUNTED}", Exit.NOT_FOUND)
    if not weeks:
        return CommandError(_NONE_YET, Exit.NOT_FOUND)
    more = len(weeks) - MOST_WEEKS_NAMED
    earlier = f", and {more} earlier" if more > 0 else ""
    there = f"there are {', '.join(weeks[-MOST_WEEKS_NAMED:])}{earlier}"
    return CommandError(f"there is no report of {week}: {there}", Exit.NOT_FOUND)


def _summary_of(document: bytes | None) -> Summary | None:
    """None where this version cannot read it: the page is there all the same."""
    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def _show(call: Invocation, summary: Summary) -> None:
    """Everybody else's words in it were made visible where they were read."""
    out, here = call.out, ReportedAccount(call.account.region, call.account.account_id)
    for line in verdict_text(summary).splitlines():
        out.say(line)
    recommendations = list_to_do(summary, here)
    if recommendations:
        out.say_heading("Do this week")
    for number, each in enumerate(recommendations, 1):
        out.say(remove_marks(f"{number}. {each.what} {each.why} {each.effect}"))
        if each.owner:
            out.say_indented(f"owner: {each.owner}", "dim")
        if each.command:
            out.say_command(f" {each.command}")
    if more := describe_left_out(summary):
        out.say(more, "dim")
