"""The nightly job's command: `python -m analytics.job nightly|backfill|backtest|weekly`.

EMR starts it too. A *root* is the folder or `s3://` URI of the trail, of the cases, or of the
tables. Only this module opens roots, reads the clock and prints. A mistake in the command line, or
a root that cannot be used, gives one clear line and exit code 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import SparkSession

from analytics.cases import CaseFiles
from analytics.days import Days, days_of
from analytics.nightly import NightlyRun, NightlyRunResult, findings_root
from analytics.session import session
from analytics.storage import AccountsStorage, RootUnusable, Storage, open_root
from analytics.tables import Tables
from analytics.trail import LOGS, Reader, find_first_publish_day, list_branches
from analytics.weekly import (
    OrganizationTables,
    load_week_cases,
    write_backtest_incidents,
    write_week,
)
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import is_too_much_unreadable, parse_day

# A placeholder in --cases. It is replaced by the id of each account that has files in the trail.
ACCOUNT_PLACEHOLDER = "{account}"
# Exit codes.
DONE = 0
BAD_ARGUMENTS = 2
UNREADABLE = 3
NOTHING_READ = 4


class BadArguments(Exception):
    """The command line is wrong. The text names the argument and says what to write."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises BadArguments instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise BadArguments(f"{message} (see --help)")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Returns:
        `command`, and the roots `trail`, `cases` and `out` as texts. `weekly` also has `week`,
        `scheduled_at` (None if a person starts it), `time_zone`, `organization` and `expected`;
        its `cases` may be None. The other commands also have `days` and `place`; `nightly` has one
        day. `place` is None if records of all accounts and regions are read.

    Raises:
        BadArguments: if the command line is wrong.
        SystemExit: with code 0 after --help.
    """
    parsed = _make_parser().parse_args(arguments)
    if parsed.command != "weekly":
        parsed.days = Days(parsed.first, getattr(parsed, "last", parsed.first))
        if (parsed.account is None) != (parsed.region is None):
            raise BadArguments("--account and --region go together: say both, or neither")
        parsed.place = None
        if parsed.account:
            parsed.place = AccountAndRegion(parsed.account, parsed.region)
        if parsed.days.last < parsed.days.first:
            raise BadArguments(f"--to {parsed.last} is before --from {parsed.first}: exchange them")
    return parsed


# The options for days of each command, with the attribute that each one sets.
_ONE_DAY = {"--date": "first"}
_SEVERAL_DAYS = {"--from": "first", "--to": "last"}


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="analytics.job",
        description="Make tables of incidents and the weekly summary from trail files and cases. "
        "ROOT is a folder or an s3:// URI.",
        epilog="Exit: 0 done, 2 bad arguments, 3 written but more than 1 % of the bytes were "
        "unreadable, 4 nothing read though the trail is active.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_command(commands, "nightly", "one UTC day", _ONE_DAY)
    _add_command(commands, "backfill", "several days at once", _SEVERAL_DAYS)
    _add_command(commands, "backtest", "the same, for `mendq backtest`", _SEVERAL_DAYS)
    weekly = commands.add_parser("weekly", help="a week's summary.json", allow_abbrev=False)
    _add_roots(weekly, is_required=False)
    _add_week_options(weekly)
    return parser


def _add_command(commands: Any, name: str, about: str, day_options: Mapping[str, str]) -> None:
    """Add a command that reads the trail. `day_options` are its options for days."""
    command = commands.add_parser(name, help=about, allow_abbrev=False)
    for option, attribute in day_options.items():
        command.add_argument(
            option,
            required=True,
            dest=attribute,
            type=partial(_parse_day, option),
            metavar="YYYY-MM-DD",
        )
    _add_roots(command, is_required=True)
    for option in ("--account", "--region"):
        command.add_argument(option, help="read only its records; default: records of all")


def _add_roots(command: argparse.ArgumentParser, *, is_required: bool) -> None:
    """Add the options for roots. `--out` is always required, the others if `is_required`."""
    command.add_argument(
        "--trail", required=is_required, metavar="ROOT", help="the folder that contains AWSLogs"
    )
    command.add_argument(
        "--cases",
        required=is_required,
        metavar="ROOT",
        help="the folder that contains dt=...; {account} in it stands for each account",
    )
    command.add_argument("--out", required=True, metavar="ROOT", help="the folder of the tables")


def _add_week_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--organization",
        metavar="ROOT",
        help="the folder with the tables of the organization's accounts; with one trail for all "
        "accounts, the same as --out",
    )
    command.add_argument(
        "--expected",
        default="",
        metavar="ACCOUNT,..",
        help="accounts that are reported as silent if they have no tables",
    )
    command.add_argument("--week", required=True, metavar="YYYY-Www", type=_parse_week)
    command.add_argument(
        "--scheduled-at",
        metavar="TIME",
        type=_parse_time,
        help="the report is sent if the week was over at this time; default: now",
    )
    command.add_argument(
        "--time-zone",
        metavar="NAME",
        type=_parse_zone,
        default=UTC,
        help="the time zone in which nights and weekends are counted as out of hours",
    )


def _parse_day(option: str, text: str) -> date:
    day = parse_day(text)
    if day:
        return day
    raise BadArguments(f"{option} {text!r} is not a day of a trail: write it as 2026-11-16")


def _parse_time(text: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    raise BadArguments(
        f"--scheduled-at {text!r} is not a time with a zone: write it as 2026-11-16T06:00:00Z"
    )


def _parse_zone(text: str) -> ZoneInfo:
    with suppress(ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo(text)
    raise BadArguments(f"--time-zone {text!r} is not a time zone: write it as Europe/Berlin")


def _parse_week(text: str) -> str:
    with suppress(ValueError):
        days_of(text)
        return text
    raise BadArguments(f"--week {text!r} is not a week: write it as 2026-W46")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code.

    Progress goes to standard output. A mistake in the arguments, or a root that cannot be used,
    goes to standard error, and the exit code is BAD_ARGUMENTS.
    """
    try:
        parsed = parse(arguments)
        return run(parsed, session())
    except (BadArguments, RootUnusable) as mistake:
        print(f"analytics.job: {mistake}", file=sys.stderr)
        return BAD_ARGUMENTS


def run(arguments: argparse.Namespace, spark: SparkSession, reader: Reader | None = None) -> int:
    """Run a parsed command and return its exit code.

    Args:
        arguments: The result of `parse`.
        spark: The session.
        reader: The way to read log files. None: the fastest one that this machine has.

    Raises:
        RootUnusable: if a root cannot be read or written.
    """
    tables = Tables(spark, open_root(arguments.out, spark), _say)
    now = datetime.now(UTC)
    if arguments.command == "weekly":
        return _run_weekly(arguments, spark, tables, now)
    trail = open_root(arguments.trail, spark)
    if not trail.folders(LOGS):
        raise RootUnusable(f"--trail: there is no {LOGS}/ in {arguments.trail}: name its parent")
    cases, findings = _open_case_roots(arguments, spark)
    nightly = NightlyRun(
        tables,
        trail,
        cases=cases,
        findings=findings,
        made_at=now,
        reader=reader or Reader.for_this_process(),
        place=arguments.place,
    )
    is_backtest = arguments.command == "backtest"
    result = nightly.write(arguments.days, with_evidence=is_backtest)
    if is_backtest:
        write_backtest_incidents(tables, arguments.days, result, now)
    return _choose_exit_code(result, trail, arguments.days, arguments.place)


def _run_weekly(
    arguments: argparse.Namespace, spark: SparkSession, tables: Tables, now: datetime
) -> int:
    cases: CaseFiles | None = None
    if arguments.cases is not None:
        case_root, findings = _open_case_roots(arguments, spark)
        cases = load_week_cases(case_root, findings, arguments.week)
    organization: OrganizationTables | None = None
    if arguments.organization:
        expected = [account for account in arguments.expected.split(",") if account]
        organization = OrganizationTables(
            root=open_root(arguments.organization, spark),
            expected=frozenset(expected),
            has_one_trail=arguments.organization == arguments.out,
        )
    number_of_nights = write_week(
        cases,
        tables,
        arguments.week,
        now,
        arguments.scheduled_at,
        zone=arguments.time_zone,
        organization=organization,
    )
    return DONE if number_of_nights else NOTHING_READ


def _open_case_roots(
    arguments: argparse.Namespace, spark: SparkSession
) -> tuple[Storage, Storage | None]:
    """Open the roots of the cases and of the scans next to them (see `findings_root`).

    If the root of the cases has a placeholder, those of all accounts in the trail are opened.
    """
    findings = findings_root(arguments.cases)
    if ACCOUNT_PLACEHOLDER not in arguments.cases:
        return (
            open_root(arguments.cases, spark),
            open_root(findings, spark) if findings else None,
        )
    trail = open_root(arguments.trail, spark)
    accounts = sorted({branch.account for branch in list_branches(trail, None)})
    return (
        _open_root_of_each(accounts, arguments.cases, spark),
        _open_root_of_each(accounts, findings, spark) if findings else None,
    )


def _open_root_of_each(accounts: Iterable[str], root: str, spark: SparkSession) -> AccountsStorage:
    """Open the root of each account, and return all of them as one storage.

    `root` has ACCOUNT_PLACEHOLDER, which is replaced by each account's id.
    """
    roots: dict[str, Storage] = {}
    for account in accounts:
        roots[account] = open_root(root.replace(ACCOUNT_PLACEHOLDER, account), spark)
    return AccountsStorage(roots, _say)


def _choose_exit_code(
    result: NightlyRunResult, trail: Storage, days: Days, place: AccountAndRegion | None = None
) -> int:
    """Return the exit code of a nightly run, and print the reason if something is wrong."""
    if not result.nightly_runs and not result.retained:
        since = find_first_publish_day(trail, place)
        if since is not None and days.last < since:
            _say(f"the trail begins on {since}, after {days.last}")
            return DONE
        _say("nothing was read though the trail is active: look at the trail and the arguments")
        return NOTHING_READ
    unreadable = sum(nightly.bytes_unreadable for nightly in result.nightly_runs)
    listed = sum(nightly.bytes for nightly in result.nightly_runs)
    if is_too_much_unreadable(unreadable, listed):
        _say(f"{unreadable} of {listed} bytes were unreadable: the quality table names the files")
        return UNREADABLE
    return DONE


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
