"""The night's command: `python -m analytics.job nightly|backfill|weekly`; EMR's entry point.

The only module that opens roots, knows the time and prints.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from analytics.arguments import BadArguments, NightArguments, WeeklyArguments, parse
from analytics.days import Days
from analytics.night import Night, Written
from analytics.readings import Reader
from analytics.session import session
from analytics.storage import RootUnusable, Storage, open_root
from analytics.sweep_files import root_beside
from analytics.tables import Tables
from analytics.trail import LOGS, began
from analytics.weekly import Weekly
from functions.healing.nightly import too_much_unreadable

DONE, BAD_ARGUMENTS, UNREADABLE, NOTHING_READ = 0, 2, 3, 4


def main(arguments: Sequence[str]) -> int:
    """The exit code; people read the progress on standard output, mistakes on standard error."""
    try:
        parsed = parse(arguments)
        return run(parsed, session())
    except (BadArguments, RootUnusable) as mistake:
        print(f"analytics.job: {mistake}", file=sys.stderr)
        return BAD_ARGUMENTS


def run(
    arguments: NightArguments | WeeklyArguments,
    spark: SparkSession,
    reader: Reader | None = None,
    tables: Tables | None = None,
) -> int:
    """By default with what this Spark can run; raise RootUnusable where a root cannot be used."""
    tables = tables or Tables()
    if isinstance(arguments, WeeklyArguments):
        cases = open_root(arguments.cases, spark) if arguments.cases is not None else None
        week = Weekly(cases, open_root(arguments.out, spark), _say, tables)
        nights = week.write(arguments.week, datetime.now(UTC), arguments.scheduled_at)
        return DONE if nights else NOTHING_READ
    trail = open_root(arguments.trail, spark)
    if not trail.folders(LOGS):
        raise RootUnusable(f"--trail: there is no {LOGS}/ in {arguments.trail}: name its parent")
    cases, out = open_root(arguments.cases, spark), open_root(arguments.out, spark)
    beside = root_beside(arguments.cases)
    findings = open_root(beside, spark) if beside is not None else None
    now = datetime.now(UTC)
    night = Night(spark, trail, cases, out, now, _say, reader, tables, findings=findings)
    return _code(night.write(arguments.days), trail, arguments.days)


def _code(written: Written, trail: Storage, days: Days) -> int:
    if not written.days and not written.kept:
        since = began(trail)
        if since is not None and days.last < since:
            _say(f"the trail begins on {since}, after {days.last}")
            return DONE
        _say("nothing was read though the trail is active: look at the trail and --trail")
        return NOTHING_READ
    if too_much_unreadable(written.bytes_unreadable, written.bytes_listed):
        _say(
            f"{written.bytes_unreadable} of {written.bytes_listed} bytes were unreadable: "
            "the quality table names the files"
        )
        return UNREADABLE
    return DONE


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
