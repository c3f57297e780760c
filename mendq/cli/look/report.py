"""`mendq report`: save the page of a weekly report to a file, and print its verdict."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from mendq.cli.account import Account
from mendq.cli.commands import STACK_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, YesOption
from mendq.cli.private_file import report_open_files, write_private_file
from mendq.notifications.notification import NIGHTLY_JOB_OFF_REASON
from mendq.report.links import ReportedAccount
from mendq.report.summary import Summary, SummaryUnreadable, read_summary
from mendq.report.to_do import describe_left_out, list_to_do
from mendq.report.verdict import make_verdict_text
from mendq.report.words import remove_marks

MAXIMUM_WEEKS_NAMED = 8
# S3 keys of a week's page, which deliver_report writes, and of the summary that it is made of.
PAGE_KEY_PATTERN = "report/week={}/report.html"
SUMMARY_KEY_PATTERN = "summary/week={}/summary.json"
_PAGE_PENDING_TEXT = (
    "{} is summed up and its page is not there yet: that takes a minute, come again"
)
_NO_REPORT_TEXT = "there is no report yet: the first comes when a week has ended, at report.weekday"


@command(5, CommandKind.LOOKING, STACK_ACTIONS | {"s3:GetObject", "s3:ListBucket"})
def report(
    call: Invocation,
    week: Annotated[
        str | None,
        typer.Option(help="The week, such as 2026-W46. Default: the latest.", show_default=False),
    ] = None,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the report in the browser.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Save the weekly report to a file, and print its verdict.

    Examples:
      mendq report --open
      mendq report --week 2026-W46
    """
    requested_week = None if week is None else require_week(week)
    call.account.require_whole_stack("report on")
    stored_reports = StoredReports(call.account)
    with call.out.show_waiting("looking into the report bucket"):
        weeks = stored_reports.list_weeks(PAGE_KEY_PATTERN)
        shown_week = requested_week or max(weeks, default="")
        page_content = (
            stored_reports.read(PAGE_KEY_PATTERN, shown_week) if shown_week in weeks else None
        )
        if page_content is None:
            other_weeks = [other_week for other_week in weeks if other_week != shown_week]
            raise _make_missing_report_error(stored_reports, shown_week, other_weeks)
        summary = _parse_summary(stored_reports.read(SUMMARY_KEY_PATTERN, shown_week))
    page_path = Path(f"mendq-report-{shown_week}.html")
    if summary is not None and not call.as_json:
        _print_verdict(call, summary)
    page_text = page_content.decode("utf-8", "replace")
    written_page = write_private_file(page_path, page_text, yes=yes)
    call.out.print_json(
        {
            "week": shown_week,
            "file": str(page_path.resolve()),
            "written": written_page.is_content_new,
            "place": f"s3://{stored_reports.bucket}/{PAGE_KEY_PATTERN.format(shown_week)}",
            "verdict": None if summary is None else make_verdict_text(summary),
            "weeks": weeks,
        }
    )
    if requested_week is None:
        _print_pending_week(call.out, stored_reports, shown_week)
    unchanged_text = "" if written_page.is_content_new else ", as it was there before"
    call.out.say(f"\nThe page: {page_path}{unchanged_text}")
    report_open_files(call.out, [written_page])
    if call.account.has_no_nightly_job:
        call.out.say(f"Since then nothing new: {NIGHTLY_JOB_OFF_REASON}", "yellow")
    # With --json no browser is started, because it may print to standard output.
    if in_browser and not call.as_json:
        _open_in_browser(call.out, page_path)


def _print_pending_week(out: Output, stored_reports: StoredReports, shown_week: str) -> None:
    """Print a line if a later week than the shown one has a summary, but no page yet."""
    newest_week = max(stored_reports.list_weeks(SUMMARY_KEY_PATTERN), default="")
    if newest_week > shown_week:
        out.say(f"\n{_PAGE_PENDING_TEXT.format(newest_week)}", "yellow")


def _open_in_browser(out: Output, page_path: Path) -> None:
    """Open the page in the browser. Print a line if no browser can be started."""
    if not webbrowser.open(page_path.resolve().as_uri()):
        out.say("no browser could be started here: open the file in one", "yellow")


def require_week(week_text: str) -> str:
    """Return the text of --week. Raises CommandError if it is not a week such as 2026-W46."""
    if not _is_week_text(week_text):
        problem = (
            f"--week {week_text} is not a week: write one such as 2026-W46, of a year's 52 or 53"
        )
        raise CommandError(problem, Exit.USAGE)
    return week_text


def _is_week_text(week_text: str) -> bool:
    """Return True if the text is a week that exists, in exactly the form 2026-W46."""
    with suppress(ValueError):
        return f"{date.fromisoformat(week_text):%G-W%V}" == week_text
    return False


class StoredReports(Struct, frozen=True):
    """The weekly reports in the stack's S3 bucket."""

    account: Account

    @property
    def bucket(self) -> str:
        """Name of the bucket."""
        return self.account.output("ReportBucket")

    def list_weeks(self, key_pattern: str) -> list[str]:
        """Return the weeks whose page or summary is stored, the oldest first.

        `key_pattern` is PAGE_KEY_PATTERN or SUMMARY_KEY_PATTERN. Other objects in the bucket are
        ignored.
        """
        key_prefix, _, key_suffix = key_pattern.partition("{}")
        paginator = self.account.clients.s3.get_paginator("list_objects_v2")
        weeks = set()
        for result_page in paginator.paginate(Bucket=self.bucket, Prefix=key_prefix):
            for stored_object in result_page.get("Contents", []):
                week = stored_object["Key"].removeprefix(key_prefix).removesuffix(key_suffix)
                if _is_week_text(week):
                    weeks.add(week)
        return sorted(weeks)

    def read(self, key_pattern: str, week: str) -> bytes | None:
        """Return a week's stored page or summary. None if it is not stored.

        `key_pattern` is PAGE_KEY_PATTERN or SUMMARY_KEY_PATTERN.
        """
        s3 = self.account.clients.s3
        with suppress(s3.exceptions.NoSuchKey):
            return s3.get_object(Bucket=self.bucket, Key=key_pattern.format(week))["Body"].read()
        return None


def _make_missing_report_error(
    stored_reports: StoredReports, week: str, other_weeks: list[str]
) -> CommandError:
    """Return the error that says why the week has no page.

    `week` is empty if the operator gave no week and no week has a page. `other_weeks` have a page.
    """
    summarized_weeks = stored_reports.list_weeks(SUMMARY_KEY_PATTERN)
    if week:
        summarized_weeks = [other_week for other_week in summarized_weeks if other_week == week]
    if summarized_weeks:
        remedy = "if it stays away, the log of deliver_report says why"
        return CommandError(
            f"{_PAGE_PENDING_TEXT.format(summarized_weeks[-1])}; {remedy}", Exit.NOT_FOUND
        )
    if stored_reports.account.has_no_nightly_job:
        return CommandError(f"there is no report: {NIGHTLY_JOB_OFF_REASON}", Exit.NOT_FOUND)
    if not other_weeks:
        return CommandError(_NO_REPORT_TEXT, Exit.NOT_FOUND)
    earlier_week_count = len(other_weeks) - MAXIMUM_WEEKS_NAMED
    earlier_weeks_text = f", and {earlier_week_count} earlier" if earlier_week_count > 0 else ""
    existing_weeks_text = (
        f"there are {', '.join(other_weeks[-MAXIMUM_WEEKS_NAMED:])}{earlier_weeks_text}"
    )
    return CommandError(f"there is no report of {week}: {existing_weeks_text}", Exit.NOT_FOUND)


def _parse_summary(summary_content: bytes | None) -> Summary | None:
    """Return the summary. None if `summary_content` is None, or if this version cannot read it.

    The command saves the page even without a summary.
    """
    try:
        return None if summary_content is None else read_summary(summary_content)
    except SummaryUnreadable:
        return None


def _print_verdict(call: Invocation, summary: Summary) -> None:
    """Print the verdict and the recommendations. The summary's texts are safe to print."""
    out = call.out
    reported_account = ReportedAccount(call.account.region, call.account.account_id)
    for summary_line in make_verdict_text(summary).splitlines():
        out.say(summary_line)
    recommendations = list_to_do(summary, reported_account)
    if recommendations:
        out.say_heading("Do this week")
    for recommendation_number, recommendation in enumerate(recommendations, 1):
        recommendation_text = (
            f"{recommendation.action} {recommendation.reason} {recommendation.effect}"
        )
        out.say(remove_marks(f"{recommendation_number}. {recommendation_text}"))
        if recommendation.owner:
            out.say_indented(f"owner: {recommendation.owner}", "dim")
        if recommendation.command:
            out.say_command(f" {recommendation.command}")
    left_out_text = describe_left_out(summary)
    if left_out_text:
        out.say(left_out_text, "dim")
