"""The weekly reports of an account: which there are, and when the next one comes."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mendq.aws.errors import code_of
from mendq.cli import output
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.look.export import replace_if_changed
from mendq.cli.output import Output, Yes, confirm, minute
from mendq.nightly.jobs import Roots
from mendq.nightly.jobs import week as week_job
from mendq.report.not_seen import not_seen_in_short
from mendq.report.summary import Summary
from mendq.report.tiles import Tile, tiles
from mendq.report.to_do import ToDo, left_out, to_do
from mendq.report.verdict import headline, others, standout
from mendq.report.words import days_of, parts, week_name

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient


_WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
# As infra/schedules.py writes it.
_WEEKLY = re.compile(r"cron\(0 (\d{1,2}) \? \* ([A-Z]{3}) \*\)", re.ASCII)
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_SCHEDULE = "SchedulesWeekly"


def iso_week(text: str) -> str:
    """`text`, given as --week, where it is a week such as 2026-W46; Stopped where it is none."""
    found = _WEEK.fullmatch(text)
    remedy = "say one such as 2026-W46"
    if found and (last := _last_week(int(found[1]))):
        if 1 <= int(found[2]) <= last:
            return text
        remedy = f"{found[1]} has {last}, so say one from {found[1]}-W01 to {found[1]}-W{last}"
    raise Stopped(f"--week {text} is no week: {remedy}", Exit.USAGE)


def _last_week(year: int) -> int:
    """The number of the year's last ISO week, which 28 December lies in; 0 of no year."""
    return date(year, 12, 28).isocalendar().week if year else 0


@dataclass(frozen=True)
class Reports:
    """What lies in the report bucket of the stack."""

    account: Account

    @property
    def bucket(self) -> str:
        return self.account.output("ReportBucket")

    def weeks(self) -> list[str]:
        """The weeks that have a page, oldest first."""
        return self._weeks_of(notification_key)

    def weeks_summed_up(self) -> list[str]:
        """The weeks that a page is, or is to be, made of, oldest first."""
        return self._weeks_of(summary_key)

    def _weeks_of(self, key_of: Callable[[str], str]) -> list[str]:
        """Those whose object is there; other things lie beside it."""
        before, _, after = key_of("*").partition("*")
        listed = self.account.clients.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=before
        )
        keys = (each["Key"] for page in listed for each in page.get("Contents", []))
        names = (each.removeprefix(before).removesuffix(after) for each in keys)
        weeks = {each for each in names if _WEEK.fullmatch(each)}
        return sorted(weeks)

    def page(self, week: str) -> bytes | None:
        """The page; None where there is none."""
        return self._object(notification_key(week))

    def summary(self, week: str) -> bytes | None:
        """What the page was made of; None where it is gone."""
        return self._object(summary_key(week))

    def _object(self, key: str) -> bytes | None:
        try:
            found = self.account.clients.s3.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise
        return found["Body"].read()


def notification_key(week: str) -> str:
    """Where deliver_report puts a week's page."""
    return f"report/week={week}/report.html"


def summary_key(week: str) -> str:
    """Where the weekly job puts what the page is made of."""
    return f"summary/week={week}/summary.json"


@dataclass(frozen=True)
class Next:
    """When the next report is begun, and the week it will be about."""

    at: datetime
    week: str


def next_report(account: Account, now: datetime) -> Next | None:
    """As the deployed schedule says; None where it cannot be read."""
    cloudformation: CloudFormationClient = account.session.client("cloudformation")
    scheduler: EventBridgeSchedulerClient = account.session.client("scheduler")
    try:
        pages = cloudformation.get_paginator("list_stack_resources").paginate(
            StackName=account.stack
        )
        names = (
            each.get("PhysicalResourceId", "").rpartition("/")[2]
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["LogicalResourceId"].startswith(_SCHEDULE)
        )
        found = scheduler.get_schedule(Name=next(names))
    except (ClientError, BotoCoreError, StopIteration):
        return None
    zone = found.get("ScheduleExpressionTimezone", "UTC")
    return next_of(found["ScheduleExpression"], zone, now)


def next_of(expression: str, zone: str, now: datetime) -> Next | None:
    """The first time after `now` that a weekly expression stands for; None where it is none."""
    found = _WEEKLY.fullmatch(expression)
    try:
        local = now.astimezone(ZoneInfo(zone))
        hour, weekday = int(found[1] if found else ""), _DAYS.index(found[2] if found else "")
        at = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    except (ValueError, ZoneInfoNotFoundError):
        return None
    at += timedelta(days=(weekday - at.weekday()) % 7)
    if at <= local:
        at += timedelta(days=7)
    in_utc = at.astimezone(UTC)
    return Next(in_utc, week_job(in_utc, Roots("", "", "")).of)


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
    for each in (recommendation.why, recommendation.effect):
        if each:
            says.append(" ").append_text(_said(each))
    out.show(says)
    if recommendation.owner:
        out.show(Text(f"   owner: {recommendation.owner}", style="dim"))
    for line in (recommendation.template_line, recommendation.command):
        if line:
            out.command(f" {line}")


def _said(sentence: str, style: str = "") -> Text:
    """With the names in it set apart."""
    said = Text(style=style)
    for kind, part in parts(sentence):
        said.append(part, style="cyan" if kind == "name" else "")
    return said


if TYPE_CHECKING:
    from mendq.report.summary import Summary


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
            "place": f"s3://{reports.bucket}/{notification_key(chosen)}",
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
        if not yes and not output.somebody_is_there():
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
    from mendq.report.read_summary import SummaryUnreadable, read  # noqa: PLC0415 - msgspec

    try:
        return None if document is None else read(document)
    except SummaryUnreadable:
        return None


def _show(call: Invocation, summary: Summary) -> None:
    show(call.out, summary)


def _verdict(summary: Summary) -> str:
    from mendq.report.verdict import verdict_text  # noqa: PLC0415 - charts take a second

    return verdict_text(summary)
