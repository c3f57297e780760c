"""The command line of the job; a mistake is one clear line and exit code 2."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NoReturn

from analytics.days import Days
from analytics.iso_week import days_of
from functions.healing.nightly import is_in_reach


class BadArguments(Exception):
    """The text names the argument and the cure."""


@dataclass(frozen=True)
class NightArguments:
    """`nightly` is a backfill of one day."""

    days: Days
    trail: str
    cases: str
    out: str


@dataclass(frozen=True)
class WeeklyArguments:
    """Without `cases` nothing is said about them; `scheduled_at` is None where a person asks."""

    week: str
    cases: str | None
    out: str
    scheduled_at: datetime | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadArguments(f"{message} (see --help)")


def parse(arguments: Sequence[str]) -> NightArguments | WeeklyArguments:
    """Raise BadArguments; SystemExit(0) after --help."""
    given = _parser().parse_args(arguments)
    if given.command == "weekly":
        scheduled_at = None if given.scheduled_at is None else _moment(given.scheduled_at)
        return WeeklyArguments(_week(given.week), given.cases, given.out, scheduled_at)
    if given.command == "nightly":
        day = _day("--date", given.date)
        days = Days(day, day)
    else:
        days = Days(_day("--from", given.first), _day("--to", given.last))
        if days.last < days.first:
            raise BadArguments(f"--to {days.last} is before --from {days.first}: exchange them")
    return NightArguments(days, given.trail, given.cases, given.out)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="analytics.job",
        description="Trail files and cases in, incidents out. ROOT is a folder or an s3:// URI.",
        epilog="Exit: 0 done, 2 bad arguments, 3 written but more than 1 % of the bytes were "
        "unreadable, 4 nothing read though the trail is active.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    nightly = commands.add_parser("nightly", help="one UTC day", allow_abbrev=False)
    nightly.add_argument("--date", required=True, metavar="YYYY-MM-DD")
    backfill = commands.add_parser("backfill", help="several days at once", allow_abbrev=False)
    backfill.add_argument("--from", required=True, dest="first", metavar="YYYY-MM-DD")
    backfill.add_argument("--to", required=True, dest="last", metavar="YYYY-MM-DD")
    weekly = commands.add_parser("weekly", help="a week's summary.json", allow_abbrev=False)
    weekly.add_argument("--week", required=True, metavar="YYYY-Www")
    weekly.add_argument(
        "--scheduled-at",
        metavar="TIME",
        help="whether the week is over then, instead of now, decides whether its report is sent",
    )
    for command, required in ((nightly, True), (backfill, True), (weekly, False)):
        command.add_argument(
            "--trail", required=required, metavar="ROOT", help="the parent of AWSLogs"
        )
        command.add_argument(
            "--cases", required=required, metavar="ROOT", help="the parent of dt=..."
        )
        command.add_argument("--out", required=True, metavar="ROOT", help="the tables' root")
    return parser


def _day(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or str(day) != text:
        raise BadArguments(f"{name} {text!r} is not a day: write it as 2026-11-16")
    if not is_in_reach(day.year):
        raise BadArguments(f"{name} {text!r} is out of reach: no trail is that old or that new")
    return day


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadArguments(f"--scheduled-at {text!r} is no time: write it as 2026-11-16T06:00:00Z")
    return moment


def _week(text: str) -> str:
    try:
        days_of(text)
    except ValueError:
        raise BadArguments(f"--week {text!r} is not a week: write it as 2026-W46") from None
    return text
