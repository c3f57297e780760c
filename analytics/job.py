"""The job's command: `python -m analytics.job nightly|backfill|backtest|weekly`; EMR's entry point.

The only module that opens roots, knows the time and prints. A mistake in the command line is one
clear line and exit code 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import SparkSession

from analytics.days import Days, days_of
from analytics.nightly import Nightly, NightlyResult, findings_root
from analytics.session import session
from analytics.storage import OfAccounts, RootUnusable, Storage, open_root
from analytics.tables import Tables
from analytics.trail import LOGS, Reader, branches, find_first_publish_day
from analytics.week_parts import ByDay
from analytics.weekly import (
    case_bucket,
    members,
    members_of_one_trail,
    organization,
    write_incidents,
    write_week,
)
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import day_named, too_much_unreadable

# In the root of the cases: every account that has files in the trail.
EACH = "{account}"
DONE, BAD_ARGUMENTS, UNREADABLE, NOTHING_READ = 0, 2, 3, 4


class BadArguments(Exception):
    """The text names the argument and the remedy."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadArguments(f"{message} (see --help)")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The roots, `week` and `scheduled_at`, or `days` and `home`: `nightly` is a backfill of a day.

    Without `cases` nothing is said about them; `scheduled_at` is None where a person asks.
    Raise BadArguments; SystemExit(0) after --help.
    """
    given = _parser().parse_args(arguments)
    if given.command != "weekly":
        given.days = Days(given.first, getattr(given, "last", given.first))
        if (given.account is None) != (given.region is None):
            raise BadArguments("--account and --region go together: say both, or neither")
        given.home = AccountAndRegion(given.account, given.region) if given.account else None
        if given.days.last < given.days.first:
            raise BadArguments(f"--to {given.last} is before --from {given.first}: exchange them")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="analytics.job",
        description="Trail files and cases in, incidents out. ROOT is a folder or an s3:// URI.",
        epilog="Exit: 0 done, 2 bad arguments, 3 written but more than 1 % of the bytes were "
        "unreadable, 4 nothing read though the trail is active.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name, about, days in (
        ("nightly", "one UTC day", {"--date": "first"}),
        ("backfill", "several days at once", {"--from": "first", "--to": "last"}),
        ("backtest", "the same, for `mendq backtest`", {"--from": "first", "--to": "last"}),
        ("weekly", "a week's summary.json", {}),
    ):
        command = commands.add_parser(name, help=about, allow_abbrev=False)
        for option, end in days.items():
            command.add_argument(
                option, required=True, dest=end, type=partial(_day, option), metavar="YYYY-MM-DD"
            )
        for root, what in (
            ("trail", "the parent of AWSLogs"),
            ("cases", "the parent of dt=..., {account} in it for each"),
        ):
            command.add_argument(f"--{root}", required=bool(days), metavar="ROOT", help=what)
        command.add_argument("--out", required=True, metavar="ROOT", help="the tables' root")
        for option in ("--account", "--region") if days else ():
            command.add_argument(option, help="whose records are read; default: those of all")
    _add_of_a_week(command)
    return parser


def _add_of_a_week(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--organization", metavar="ROOT", help="where its stacks share; the tables', of one trail"
    )
    command.add_argument(
        "--expected", default="", metavar="ACCOUNT,..", help="who is missed that tells nothing"
    )
    command.add_argument("--week", required=True, metavar="YYYY-Www", type=_week)
    command.add_argument(
        "--scheduled-at",
        metavar="TIME",
        type=_moment,
        help="whether the week is over then, instead of now, decides whether its report is sent",
    )
    command.add_argument(
        "--time-zone", metavar="NAME", type=_zone, default=UTC, help="where out of hours is read"
    )


def _day(name: str, text: str) -> date:
    if day := day_named(text):
        return day
    raise BadArguments(f"{name} {text!r} is no day that a trail has: write it as 2026-11-16")


def _moment(text: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    raise BadArguments(f"--scheduled-at {text!r} is no time: write it as 2026-11-16T06:00:00Z")


def _zone(text: str) -> ZoneInfo:
    with suppress(ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo(text)
    raise BadArguments(f"--time-zone {text!r} is none: write it as Europe/Berlin")


def _week(text: str) -> str:
    with suppress(ValueError):
        days_of(text)
        return text
    raise BadArguments(f"--week {text!r} is not a week: write it as 2026-W46")


def main(arguments: Sequence[str]) -> int:
    """The exit code; people read the progress on standard output, mistakes on standard error."""
    try:
        parsed = parse(arguments)
        return run(parsed, session())
    except (BadArguments, RootUnusable) as mistake:
        print(f"analytics.job: {mistake}", file=sys.stderr)
        return BAD_ARGUMENTS


def run(arguments: argparse.Namespace, spark: SparkSession, reader: Reader | None = None) -> int:
    """By default with what this machine can run; raise RootUnusable where a root is no use."""
    tables, now = Tables(spark, open_root(arguments.out, spark), _say), datetime.now(UTC)
    if arguments.command == "weekly":
        there = arguments.cases is not None
        seen = case_bucket(*_roots(arguments, spark), arguments.week) if there else None
        when, zone = (now, arguments.scheduled_at), arguments.time_zone
        about = _about(arguments, spark) if arguments.organization else None
        nightly_runs = write_week(seen, tables, arguments.week, *when, zone=zone, about=about)
        return DONE if nightly_runs else NOTHING_READ
    trail = open_root(arguments.trail, spark)
    if not trail.folders(LOGS):
        raise RootUnusable(f"--trail: there is no {LOGS}/ in {arguments.trail}: name its parent")
    cases, findings = _roots(arguments, spark)
    nightly = Nightly(
        tables,
        trail,
        cases=cases,
        findings=findings,
        made_at=now,
        reader=reader or Reader.of_this_process(),
        home=arguments.home,
    )
    is_backtest = arguments.command == "backtest"
    written = nightly.write(arguments.days, with_evidence=is_backtest)
    if is_backtest:
        write_incidents(tables, arguments.days, written, now)
    return _code(written, trail, arguments.days, arguments.home)


def _about(
    arguments: argparse.Namespace, spark: SparkSession
) -> Callable[[Days, ByDay], dict[str, Any]]:
    """What sums up the organization: of what its stacks shared, or of one trail's own tables."""
    root, of_one_trail = open_root(arguments.organization, spark), arguments.out
    expected = filter(None, arguments.expected.split(","))

    def about(days: Days, quality: ByDay) -> dict[str, Any]:
        is_one = arguments.organization == of_one_trail
        week = arguments.week
        found = members_of_one_trail(week, quality) if is_one else members(root, week)
        return organization(days, root, spark, found, expected)

    return about


def _roots(arguments: argparse.Namespace, spark: SparkSession) -> tuple[Storage, Storage | None]:
    """Of the cases, and of the findings beside them; of all accounts of the trail where asked."""
    roots = (arguments.cases, findings_root(arguments.cases))
    if EACH not in arguments.cases:
        cases, findings = (open_root(each, spark) if each else None for each in roots)
    else:
        accounts = sorted(
            {branch.account for branch in branches(open_root(arguments.trail, spark), None)}
        )
        cases, findings = (
            OfAccounts({of: open_root(each.replace(EACH, of), spark) for of in accounts}, _say)
            for each in roots
            if each
        )
    assert cases is not None  # noqa: S101 - a root that is named is opened
    return cases, findings


def _code(
    written: NightlyResult, trail: Storage, days: Days, home: AccountAndRegion | None = None
) -> int:
    if not written.nightly_runs and not written.retained:
        since = find_first_publish_day(trail, home)
        if since is not None and days.last < since:
            _say(f"the trail begins on {since}, after {days.last}")
            return DONE
        _say("nothing was read though the trail is active: look at the trail and the arguments")
        return NOTHING_READ
    unreadable = sum(each.bytes_unreadable for each in written.nightly_runs)
    listed = sum(each.bytes for each in written.nightly_runs)
    if too_much_unreadable(unreadable, listed):
        _say(f"{unreadable} of {listed} bytes were unreadable: the quality table names the files")
        return UNREADABLE
    return DONE


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
