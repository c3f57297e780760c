"""Outcomes of nightly and weekly runs: metrics for the alarms, and a sentence for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from mendq.model.names import OwnMetric
from mendq.nightly.verdict import (
    DOUBTFUL,
    FALLBACK,
    NightlyJudgement,
    NightlyRead,
    Verdict,
    day_named,
    judge,
)

SOURCE = "aws.emr-serverless"
DETAIL_TYPE = "EMR Serverless Job Run State Change"
# The states of a run that has ended.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
_RUN_ID = re.compile(r"[0-9a-z]{1,64}")
_WEEK = re.compile(r"week-([0-9]{4}-W[0-9]{2})")
# A report is missing if none was made for this long. It is a week, and one more day because reports
# take different times and nightly runs may be late.
REPORT_WITHIN = timedelta(days=8)


class NightlyMetric(StrEnum):
    """The metrics of a nightly run. Each run sends one value of each, at the time of its end.

    They have no dimension. EventBridge may deliver the same end twice, so alarms must use the
    maximum and never the sum.
    """

    FAILED = "NightlyRunsFailed"
    WRITTEN = "NightlyRunsWritten"
    DOUBTFUL = "NightlyRunsDoubtful"
    RECORDS_READ = "NightlyRecordsRead"
    REPORT_MISSING = "ReportsMissing"


class NightlyJobRun(Struct, frozen=True):
    """A job run as EMR Serverless describes it. `details` is EMR's text about the state."""

    id: str
    name: str
    state: str
    details: str
    created_at: datetime
    updated_at: datetime

    @property
    def day(self) -> date | None:
        """The day of a nightly run; None for any other run."""
        kind, _, day = self.name.partition("-")
        return day_named(day) if kind == "nightly" else None

    @property
    def week(self) -> str | None:
        """The week of a weekly run, such as 2026-W46; None for any other run."""
        match = _WEEK.fullmatch(self.name)
        return match[1] if match else None

    @property
    def ended_well(self) -> bool:
        """True if EMR Serverless says that the run succeeded."""
        return self.state == "SUCCESS"

    def wrote(self, nightly: NightlyRead) -> bool:
        """Return True if this run has written these counts, and not an earlier run."""
        return nightly.made_at >= self.created_at


class NightlyRunOutcome(Struct, frozen=True):
    """The outcome of a nightly run that has ended.

    Args:
        run: The run.
        day: The day that the run had to read.
        nightly: The counts that the run wrote about that day. None if it wrote none.
        bytes_unreadable: The bytes that the run could not read, of all days that it wrote.
        judged: The verdict about the day.
        report_missing: True if no week was summed up for longer than REPORT_WITHIN.
        written: The days whose tables the run wrote.
    """

    run: NightlyJobRun
    day: date
    nightly: NightlyRead | None
    bytes_unreadable: int
    judged: NightlyJudgement
    report_missing: bool = False
    written: tuple[date, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict about the day."""
        return self.judged.verdict

    @property
    def records(self) -> int:
        """The number of records that the run read of the day."""
        return self.nightly.records if self.nightly else 0

    def metrics(self) -> dict[NightlyMetric, int]:
        """Return the value of every metric. So a missing value means that a run was not watched."""
        return {
            NightlyMetric.FAILED: int(self.verdict is Verdict.FAILED),
            NightlyMetric.WRITTEN: int(self.nightly is not None),
            NightlyMetric.DOUBTFUL: int(self.verdict in DOUBTFUL),
            NightlyMetric.RECORDS_READ: self.records,
            NightlyMetric.REPORT_MISSING: int(self.report_missing),
        }

    @property
    def is_fine(self) -> bool:
        """True if people need not look at the run."""
        return self.verdict is Verdict.READ and self.run.ended_well and not self.report_missing

    @property
    def why(self) -> str:
        """A sentence that explains the metrics, for the people that an alarm wakes."""
        nightly = self.nightly
        run = self.run
        parts = [self._describe_verdict()]
        if self.bytes_unreadable:
            parts.append(f"{self.bytes_unreadable} bytes were unreadable: quality names the files")
        if nightly and nightly.reader == FALLBACK:
            parts.append(f"read by the slower reader: {nightly.why_fallback}")
        if nightly and not run.ended_well:
            parts.append(f"the run ended {run.state} after it had written: {run.details}")
        if self.report_missing:
            parts.append(f"no week was summed up for {REPORT_WITHIN.days} days")
        return "; ".join(parts)

    def _describe_verdict(self) -> str:
        """Return the part of the sentence that is about the verdict."""
        read = f"{self.records} records were read of {self.day}"
        match self.verdict:
            case Verdict.FAILED:
                return f"the run ended {self.run.state} and wrote nothing of {self.day}"
            case Verdict.MISSING:
                return (
                    f"the run ended well and wrote nothing of {self.day}: the trail "
                    "began later, or there was nothing new to say"
                )
            case Verdict.PARTIAL:
                return f"{read}, which was not over yet"
            case Verdict.NOTHING_READ:
                return f"nothing was read of {self.day} though the trail is active"
            case Verdict.FAR_FEWER:
                return f"{read} where {self.judged.usual_records} are usual"
        return read


def describe_run(
    run: NightlyJobRun,
    day: date,
    nightly_runs: Mapping[date, NightlyRead],
    summed_up_at: datetime | None = None,
) -> NightlyRunOutcome:
    """Return the outcome of a run for a day.

    Args:
        run: The run.
        day: The day that the run had to read.
        nightly_runs: The stored counts of that day and of the days before it.
        summed_up_at: When the newest week was summed up. None if no week was.
    """
    own: dict[date, NightlyRead] = {}
    tables: list[date] = []
    for written_day, nightly in nightly_runs.items():
        if run.wrote(nightly):
            own[written_day] = nightly
            if nightly.files or nightly.failed_calls:
                tables.append(written_day)
    oldest = min((nightly.made_at for nightly in nightly_runs.values()), default=run.updated_at)
    return NightlyRunOutcome(
        run=run,
        day=day,
        nightly=own.get(day),
        bytes_unreadable=sum(nightly.bytes_unreadable for nightly in own.values()),
        judged=judge(own.get(day), nightly_runs.values(), run_failed=not run.ended_well),
        report_missing=run.updated_at - (summed_up_at or oldest) > REPORT_WITHIN,
        written=tuple(tables),
    )


class WeekEnded(Struct, frozen=True):
    """The outcome of a weekly run that has ended.

    `summed_up_at` is when the week's newest summary was written, None if there is none.
    """

    run: NightlyJobRun
    week: str
    summed_up_at: datetime | None

    @property
    def has_failed(self) -> bool:
        """True if the run has not summed up the week.

        A run that ends with exit code 3 has written its summary, although EMR calls it failed.
        """
        wrote = self.summed_up_at is not None and self.summed_up_at >= self.run.created_at
        return not self.run.ended_well and not wrote

    def metrics(self) -> dict[OwnMetric, int]:
        """Return the metric of a weekly run. It has no dimension."""
        return {OwnMetric.WEEKS_FAILED: int(self.has_failed)}

    @property
    def why(self) -> str:
        """A sentence that explains the metric, for the people that an alarm wakes."""
        result = f"{self.week} is summed up"
        if self.has_failed:
            result = f"did not sum up {self.week}"
        return f"the run ended {self.run.state} and {result}"


def read_run_id(event: Any, application_id: str) -> str | None:
    """Return the id of the job run that an event is about.

    Return None if the event is not about a run of this application. Never raises.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    try:
        detail = event["detail"]
        origin = (event["source"], event["detail-type"], detail["applicationId"])
        run_id = _RUN_ID.fullmatch(detail["jobRunId"])
    except (TypeError, LookupError):
        return None
    if run_id is None or origin != (SOURCE, DETAIL_TYPE, application_id):
        return None
    return run_id[0]
