"""`mendq report`: the weekly report, into a file here, and its verdict on the terminal."""

from __future__ import annotations

import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import asking
from cli.asking import Yes, confirm
from cli.commands.export import replace_if_changed
from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from cli.output import minute
from cli.reports import Reports, iso_week, next_report, page_key

if TYPE_CHECKING:
    from functions.report import Summary

MOST_WEEKS_NAMED = 8
_BEING_MADE = "{} is summed up and its page is not there yet: that takes a minute, come again"


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
        weeks = reports.weeks()
        chosen = _chosen(call, reports, asked, weeks)
        page = reports.page(chosen)
        if page is None:
            others = [each for each in weeks if each != chosen]
            raise _is_being_made(reports, chosen) or _none_of(chosen, others)
        summary = _summary(reports.summary(chosen))
    path = Path(f"mendq-report-{chosen}.html")
    if summary is not None and not call.as_json:
        _show(call, summary)
    written = _written(path, page.decode("utf-8", "replace"), yes=yes)
    opened = in_browser and _opened(call, path)
    call.out.document(
        {
            "week": chosen,
            "file": str(path.resolve()),
            "written": written,
            "opened": opened,
            "place": f"s3://{reports.bucket}/{page_key(chosen)}",
            "verdict": None if summary is None else _verdict(summary),
            "weeks": weeks,
        }
    )
    if asked is None and (newer := _newer(reports, chosen)):
        call.out.say(f"\n{_BEING_MADE.format(newer)}", "yellow")
    call.out.say(f"\nThe page: {path}{'' if written else ', as it was there before'}")
    if in_browser and not opened:
        call.out.say("no browser could be started here: open the file in one", "yellow")


def _chosen(call: Invocation, reports: Reports, asked: str | None, weeks: list[str]) -> str:
    if asked is None and weeks:
        return weeks[-1]
    if asked is not None:
        if asked in weeks:
            return asked
        if being_made := _is_being_made(reports, asked):
            raise being_made
    elif summed_up := reports.weeks_summed_up():
        raise _being_made(summed_up[-1])
    if asked is not None and weeks:
        raise _none_of(asked, weeks)
    following = next_report(call.account, datetime.now(UTC))
    when = "the first comes when a week has ended"
    if following is not None:
        begun = minute(following.at)
        when = f"the first, of {following.week}, comes some minutes after {begun}"
    raise Stopped(f"there is no report yet: {when}", Exit.NOT_FOUND)


def _is_being_made(reports: Reports, week: str) -> Stopped | None:
    """Where the week is summed up and has no page yet."""
    return None if reports.summary(week) is None else _being_made(week)


def _newer(reports: Reports, week: str) -> str | None:
    """The latest week that is summed up, where it is later than `week`."""
    latest = max(reports.weeks_summed_up(), default=week)
    return latest if latest > week else None


def _being_made(week: str) -> Stopped:
    line = _BEING_MADE.format(week)
    lost = "if it stays away, the log of deliver_report says why"
    return Stopped(f"{line}; {lost}", Exit.NOT_FOUND)


def _none_of(week: str, weeks: list[str]) -> Stopped:
    named = ", ".join(weeks[-MOST_WEEKS_NAMED:])
    more = len(weeks) - MOST_WEEKS_NAMED
    earlier = f", and {more} earlier" if more > 0 else ""
    there = f"there are {named}{earlier}" if weeks else "there is no other"
    return Stopped(f"there is no report of {week}: {there}", Exit.NOT_FOUND)


def _written(path: Path, page: str, *, yes: bool) -> bool:
    """Whether it was; what somebody has there is not overwritten unasked."""
    if _differs(path, page.encode()):
        if not yes and not asking.somebody_is_there():
            line = f"{path} is there already and differs, and there is no terminal to ask at"
            raise Stopped(f"{line}: --yes overwrites it; or move it away", Exit.USAGE)
        confirm(f"{path} is there already and differs. Overwrite it?", yes=yes)
    return replace_if_changed(path, page)


def _differs(path: Path, content: bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() != content
    except OSError as error:
        raise Stopped(f"{path} is there already and cannot be read: {error.strerror}") from error


def _opened(call: Invocation, path: Path) -> bool:
    with call.out.alone_on_stdout():
        return webbrowser.open(path.resolve().as_uri())


def _summary(document: bytes | None) -> Summary | None:
    """None where this version cannot read it: the page is there all the same."""
    from functions.report import SummaryUnreadable, read  # noqa: PLC0415 - charts take a second

    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def _show(call: Invocation, summary: Summary) -> None:
    from cli.report_view import show  # noqa: PLC0415 - charts take a second

    show(call.out, summary)


def _verdict(summary: Summary) -> str:
    from functions.report import verdict_text  # noqa: PLC0415 - charts take a second

    return verdict_text(summary)
