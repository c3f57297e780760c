"""The nightly job's command: `python -m analytics.job nightly|backfill|backtest|weekly`.

EMR starts it too. A *root* is the folder or `s3://` URI of the trail, of the cases, or of the
tables. In this package, only this module opens roots, reads the clock and prints. After a mistake
in the command line, or if a root cannot be used, it prints one line and ends with exit code 2.
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
from analytics.days import Days, parse_week_days
from analytics.nightly import NightlyRun, NightlyRunResult, derive_findings_root
from analytics.session import start_session
from analytics.storage import AccountsStorage, RootUnusable, Storage, open_root
from analytics.tables import Tables
from analytics.trail import LOGS_FOLDER, Reader, find_first_publish_day, list_branches
from analytics.weekly import (
    OrganizationTables,
    load_week_cases,
    write_backtest_incidents,
    write_week,
)
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import is_too_much_unreadable, parse_day

# A placeholder in --cases for the id of each account that has files in the trail.
ACCOUNT_PLACEHOLDER = "{account}"
# Exit codes.
EXIT_DONE = 0
EXIT_BAD_ARGUMENTS = 2
EXIT_TOO_MUCH_UNREADABLE = 3
EXIT_NOTHING_READ = 4


class BadArguments(Exception):
    """The command line is wrong. The error's text names the argument and says what to write."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises BadArguments instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise BadArguments(f"{message} (see --help)")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Returns:
        `command`, and the roots `trail`, `cases` and `out` as texts. `weekly` also has `week`,
        `scheduled_at` (None if a person starts it), `time_zone`, `organization` and `expected`;
        its `trail`, `cases` and `organization` may be None. Without `cases` the summary has no
        fields about cases. `trail` is needed only if `cases` has ACCOUNT_PLACEHOLDER. The other
        commands also have `days` and `account_and_region`; `nightly` has one day.
        `account_and_region` is None if records of all accounts and regions are read.

    Raises:
        BadArguments: The command line is wrong.
        SystemExit: With code 0, after --help.
    """
    parsed_arguments = _make_parser().parse_args(arguments)
    if parsed_arguments.command != "weekly":
        first_day = parsed_arguments.first
        last_day = first_day
        if parsed_arguments.command != "nightly":
            last_day = parsed_arguments.last
        parsed_arguments.days = Days(first_day, last_day)
        if (parsed_arguments.account is None) != (parsed_arguments.region is None):
            raise BadArguments("--account and --region go together: say both, or neither")
        parsed_arguments.account_and_region = None
        if parsed_arguments.account:
            parsed_arguments.account_and_region = AccountAndRegion(
                parsed_arguments.account, parsed_arguments.region
            )
        if last_day < first_day:
            raise BadArguments(f"--to {last_day} is before --from {first_day}: exchange them")
    has_placeholder = ACCOUNT_PLACEHOLDER in (parsed_arguments.cases or "")
    if has_placeholder and parsed_arguments.trail is None:
        raise BadArguments(
            f"--cases with {ACCOUNT_PLACEHOLDER} needs --trail, which says which accounts there "
            "are: add --trail with the folder that contains AWSLogs"
        )
    return parsed_arguments


# The options for days of each command, with the attribute that each option sets.
_ONE_DAY_OPTIONS = {"--date": "first"}
_SEVERAL_DAYS_OPTIONS = {"--from": "first", "--to": "last"}


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="analytics.job",
        description="Make tables of incidents and the weekly summary from trail files and cases. "
        "ROOT is a folder or an s3:// URI.",
        epilog="Exit: 0 done, 2 bad arguments, 3 written but more than 1 % of the bytes were "
        "unreadable, 4 nothing read though the trail is active.",
        allow_abbrev=False,
    )
    command_parsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_command(command_parsers, "nightly", "one UTC day", _ONE_DAY_OPTIONS)
    _add_command(command_parsers, "backfill", "several days at once", _SEVERAL_DAYS_OPTIONS)
    _add_command(
        command_parsers, "backtest", "the same, for `mendq backtest`", _SEVERAL_DAYS_OPTIONS
    )
    weekly_parser = command_parsers.add_parser(
        "weekly", help="a week's summary.json", allow_abbrev=False
    )
    _add_roots(weekly_parser, is_required=False)
    _add_week_options(weekly_parser)
    return parser


def _add_command(
    command_parsers: Any, name: str, help_text: str, day_options: Mapping[str, str]
) -> None:
    """Add a command that reads the trail.

    `day_options` has the attribute that each of its options for days sets, by option.
    """
    command_parser = command_parsers.add_parser(name, help=help_text, allow_abbrev=False)
    for option, parsed_attribute_name in day_options.items():
        command_parser.add_argument(
            option,
            required=True,
            dest=parsed_attribute_name,
            type=partial(_parse_day, option),
            metavar="YYYY-MM-DD",
        )
    _add_roots(command_parser, is_required=True)
    for option in ("--account", "--region"):
        command_parser.add_argument(option, help="read only its records; default: records of all")


def _add_roots(command_parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    """Add the options for roots. `--out` is required; the others only if `is_required` is True."""
    command_parser.add_argument(
        "--trail", required=is_required, metavar="ROOT", help="the folder that contains AWSLogs"
    )
    command_parser.add_argument(
        "--cases",
        required=is_required,
        metavar="ROOT",
        help="the folder that contains dt=...; {account} in it stands for each account",
    )
    command_parser.add_argument(
        "--out", required=True, metavar="ROOT", help="the folder of the tables"
    )


def _add_week_options(command_parser: argparse.ArgumentParser) -> None:
    command_parser.add_argument(
        "--organization",
        metavar="ROOT",
        help="the folder with the tables of the organization's accounts; with one trail for all "
        "accounts, the same as --out",
    )
    command_parser.add_argument(
        "--expected",
        default="",
        metavar="ACCOUNT,..",
        help="accounts that are reported as silent if they have no tables",
    )
    command_parser.add_argument("--week", required=True, metavar="YYYY-Www", type=_parse_week)
    command_parser.add_argument(
        "--scheduled-at",
        metavar="TIME",
        type=_parse_time,
        help="the report is sent if the week was over at this time; default: now",
    )
    command_parser.add_argument(
        "--time-zone",
        metavar="NAME",
        type=_parse_zone,
        default=UTC,
        help="the time zone in which nights and weekends are counted as out of hours",
    )


def _parse_day(option: str, day_text: str) -> date:
    day = parse_day(day_text)
    if day:
        return day
    raise BadArguments(f"{option} {day_text!r} is not a day of a trail: write it as 2026-11-16")


def _parse_time(time_text: str) -> datetime:
    with suppress(ValueError):
        parsed_time = datetime.fromisoformat(time_text)
        if parsed_time.tzinfo is not None:
            return parsed_time
    raise BadArguments(
        f"--scheduled-at {time_text!r} is not a time with a zone: write it as 2026-11-16T06:00:00Z"
    )


def _parse_zone(zone_name: str) -> ZoneInfo:
    with suppress(ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo(zone_name)
    raise BadArguments(f"--time-zone {zone_name!r} is not a time zone: write it as Europe/Berlin")


def _parse_week(week_text: str) -> str:
    with suppress(ValueError):
        parse_week_days(week_text)
        return week_text
    raise BadArguments(f"--week {week_text!r} is not a week: write it as 2026-W46")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code.

    Progress is printed to standard output. A mistake in the arguments, or a root that cannot be
    used, is printed to standard error, and the exit code is EXIT_BAD_ARGUMENTS.
    """
    try:
        parsed_arguments = parse_arguments(arguments)
        return run_command(parsed_arguments, start_session())
    except (BadArguments, RootUnusable) as error:
        print(f"analytics.job: {error}", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS


def run_command(
    arguments: argparse.Namespace, spark: SparkSession, reader: Reader | None = None
) -> int:
    """Run a parsed command and return its exit code.

    Args:
        arguments: The result of `parse_arguments`.
        spark: The session.
        reader: The reader of log files; None for the fastest one that this machine has.

    Raises:
        RootUnusable: A root cannot be read or written.
    """
    tables = Tables(spark, open_root(arguments.out, spark), _print_line)
    now = datetime.now(UTC)
    if arguments.command == "weekly":
        return _run_weekly(arguments, spark, tables, now)
    trail_storage = open_root(arguments.trail, spark)
    if not trail_storage.list_folders(LOGS_FOLDER):
        raise RootUnusable(
            f"--trail: there is no {LOGS_FOLDER}/ in {arguments.trail}: name its parent"
        )
    case_storage, scan_storage = _open_case_roots(arguments, spark)
    nightly_run = NightlyRun(
        tables,
        trail_storage,
        case_storage=case_storage,
        scan_storage=scan_storage,
        made_at=now,
        reader=reader or Reader.choose_for_this_process(),
        account_and_region=arguments.account_and_region,
    )
    is_backtest = arguments.command == "backtest"
    nightly_run_result = nightly_run.write(arguments.days, with_evidence=is_backtest)
    if is_backtest:
        write_backtest_incidents(tables, arguments.days, nightly_run_result, now)
    return _choose_exit_code(
        nightly_run_result, trail_storage, arguments.days, arguments.account_and_region
    )


def _run_weekly(
    arguments: argparse.Namespace, spark: SparkSession, tables: Tables, now: datetime
) -> int:
    case_files: CaseFiles | None = None
    if arguments.cases is not None:
        case_storage, scan_storage = _open_case_roots(arguments, spark)
        case_files = load_week_cases(case_storage, scan_storage, arguments.week)
    organization: OrganizationTables | None = None
    if arguments.organization:
        expected_accounts = [account for account in arguments.expected.split(",") if account]
        organization = OrganizationTables(
            root=open_root(arguments.organization, spark),
            expected_accounts=frozenset(expected_accounts),
            has_one_trail=arguments.organization == arguments.out,
        )
    nightly_run_count = write_week(
        case_files,
        tables,
        arguments.week,
        now,
        arguments.scheduled_at,
        zone=arguments.time_zone,
        organization=organization,
    )
    return EXIT_DONE if nightly_run_count else EXIT_NOTHING_READ


def _open_case_roots(
    arguments: argparse.Namespace, spark: SparkSession
) -> tuple[Storage, Storage | None]:
    """Open the root of the cases, and the root of the scans next to it (`derive_findings_root`).

    If the root of the cases has ACCOUNT_PLACEHOLDER, open the roots of all accounts in the trail.
    """
    findings_root = derive_findings_root(arguments.cases)
    if ACCOUNT_PLACEHOLDER not in arguments.cases:
        return (
            open_root(arguments.cases, spark),
            open_root(findings_root, spark) if findings_root else None,
        )
    trail_storage = open_root(arguments.trail, spark)
    accounts = sorted({branch.account for branch in list_branches(trail_storage, None)})
    return (
        _open_account_roots(accounts, arguments.cases, spark),
        _open_account_roots(accounts, findings_root, spark) if findings_root else None,
    )


def _open_account_roots(
    accounts: Iterable[str], root_pattern: str, spark: SparkSession
) -> AccountsStorage:
    """Open the root of each account, and return all roots as one storage.

    Each account's id replaces ACCOUNT_PLACEHOLDER in `root_pattern`.
    """
    storage_by_account: dict[str, Storage] = {}
    for account in accounts:
        storage_by_account[account] = open_root(
            root_pattern.replace(ACCOUNT_PLACEHOLDER, account), spark
        )
    return AccountsStorage(storage_by_account, _print_line)


def _choose_exit_code(
    nightly_run_result: NightlyRunResult,
    trail_storage: Storage,
    days: Days,
    account_and_region: AccountAndRegion | None = None,
) -> int:
    """Return the exit code of a run that has read the trail.

    Print the reason if nothing was read, or if too many bytes were unreadable.
    """
    if not nightly_run_result.counts_of_written_days and not nightly_run_result.unchanged_days:
        first_publish_day = find_first_publish_day(trail_storage, account_and_region)
        if first_publish_day is not None and days.last_day < first_publish_day:
            _print_line(f"the trail begins on {first_publish_day}, after {days.last_day}")
            return EXIT_DONE
        _print_line(
            "nothing was read though the trail is active: look at the trail and the arguments"
        )
        return EXIT_NOTHING_READ
    unreadable_bytes = sum(
        nightly_counts.bytes_unreadable
        for nightly_counts in nightly_run_result.counts_of_written_days
    )
    listed_bytes = sum(
        nightly_counts.bytes for nightly_counts in nightly_run_result.counts_of_written_days
    )
    if is_too_much_unreadable(unreadable_bytes, listed_bytes):
        unreadable_share_text = f"{unreadable_bytes} of {listed_bytes} bytes"
        _print_line(f"{unreadable_share_text} were unreadable: the quality table names the files")
        return EXIT_TOO_MUCH_UNREADABLE
    return EXIT_DONE


def _print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
