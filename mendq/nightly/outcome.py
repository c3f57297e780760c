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
    DOUBTFUL_VERDICTS,
    FALLBACK_READER,
    NightlyCounts,
    NightlyJudgement,
    Verdict,
    judge_nightly_run,
    parse_day,
)

EMR_EVENT_SOURCE = "aws.emr-serverless"
EMR_DETAIL_TYPE = "EMR Serverless Job Run State Change"
# The states of a run that has ended.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
STATES_OF_ENDED_RUNS = ("SUCCESS", "FAILED", "CANCELLED")
_RUN_ID_PATTERN = re.compile(r"[0-9a-z]{1,64}")
_WEEKLY_RUN_NAME_PATTERN = re.compile(r"week-([0-9]{4}-W[0-9]{2})")
# A report is missing if no report was made for this long. The day besides the week allows for late
# nightly runs and for reports that take longer.
LONGEST_TIME_BETWEEN_REPORTS = timedelta(days=8)


class NightlyMetric(StrEnum):
    """The metrics of a nightly run, which have no dimension.

    Each run sends one value of each metric, at the time of its end. EventBridge may report the end
    of a run twice, so alarms must use the maximum and never the sum.
    """

    FAILED_RUNS = "NightlyRunsFailed"
    WRITTEN_RUNS = "NightlyRunsWritten"
    DOUBTFUL_RUNS = "NightlyRunsDoubtful"
    RECORDS_READ = "NightlyRecordsRead"
    MISSING_REPORTS = "ReportsMissing"


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
        kind, _, day_text = self.name.partition("-")
        return parse_day(day_text) if kind == "nightly" else None

    @property
    def week(self) -> str | None:
        """The week of a weekly run, such as 2026-W46; None for any other run."""
        name_match = _WEEKLY_RUN_NAME_PATTERN.fullmatch(self.name)
        return name_match[1] if name_match else None

    @property
    def has_succeeded(self) -> bool:
        """True if EMR Serverless says that the run succeeded."""
        return self.state == "SUCCESS"

    def has_written(self, nightly_counts: NightlyCounts) -> bool:
        """Return True if these counts were written after this run was created, so by this run."""
        return nightly_counts.made_at >= self.created_at


class NightlyRunOutcome(Struct, frozen=True):
    """The outcome of a nightly run that has ended.

    Args:
        run: The run.
        day: The day that the run had to read.
        nightly: The counts that the run wrote about that day. None if it wrote none.
        bytes_unreadable: The number of bytes that the run could not read, summed over all days that
            it wrote.
        judgement: The verdict about the day, with the day's usual number of records.
        is_report_missing: True if the last weekly summary is older than
            LONGEST_TIME_BETWEEN_REPORTS.
        written_days: The days whose tables the run wrote.
    """

    run: NightlyJobRun
    day: date
    nightly: NightlyCounts | None
    bytes_unreadable: int
    judgement: NightlyJudgement
    is_report_missing: bool = False
    written_days: tuple[date, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict about the day."""
        return self.judgement.verdict

    @property
    def records(self) -> int:
        """The number of records of the day that the run read."""
        return self.nightly.records if self.nightly else 0

    def metrics(self) -> dict[NightlyMetric, int]:
        """Return the value of every metric, even if it is zero.

        So a missing value means that no run was watched.
        """
        return {
            NightlyMetric.FAILED_RUNS: int(self.verdict is Verdict.FAILED),
            NightlyMetric.WRITTEN_RUNS: int(self.nightly is not None),
            NightlyMetric.DOUBTFUL_RUNS: int(self.verdict in DOUBTFUL_VERDICTS),
            NightlyMetric.RECORDS_READ: self.records,
            NightlyMetric.MISSING_REPORTS: int(self.is_report_missing),
        }

    @property
    def is_without_problem(self) -> bool:
        """True if people need not look at the run."""
        return (
            self.verdict is Verdict.READ and self.run.has_succeeded and not self.is_report_missing
        )

    @property
    def explanation(self) -> str:
        """A sentence that explains the metrics to the people who get the alarm."""
        nightly_counts = self.nightly
        run = self.run
        sentence_parts = [self._describe_verdict()]
        if self.bytes_unreadable:
            sentence_parts.append(
                f"{self.bytes_unreadable} bytes were unreadable: quality names the files"
            )
        if nightly_counts and nightly_counts.reader == FALLBACK_READER:
            sentence_parts.append(f"read by the slower reader: {nightly_counts.why_fallback}")
        if nightly_counts and not run.has_succeeded:
            sentence_parts.append(f"the run ended {run.state} after it had written: {run.details}")
        if self.is_report_missing:
            sentence_parts.append(
                f"no week was summed up for {LONGEST_TIME_BETWEEN_REPORTS.days} days"
            )
        return "; ".join(sentence_parts)

    def _describe_verdict(self) -> str:
        """Return the part of the sentence that is about the verdict."""
        records_read_text = f"{self.records} records were read of {self.day}"
        match self.verdict:
            case Verdict.FAILED:
                return f"the run ended {self.run.state} and wrote nothing of {self.day}"
            case Verdict.MISSING:
                return (
                    f"the run ended well and wrote nothing of {self.day}: the trail "
                    "began later, or there was nothing new to say"
                )
            case Verdict.PARTIAL:
                return f"{records_read_text}, which was not over yet"
            case Verdict.NOTHING_READ:
                return f"nothing was read of {self.day} though the trail is active"
            case Verdict.FAR_FEWER:
                return f"{records_read_text} where {self.judgement.usual_records} are usual"
        return records_read_text


def describe_run(
    run: NightlyJobRun,
    day: date,
    nightly_counts_by_day: Mapping[date, NightlyCounts],
    summed_up_at: datetime | None = None,
) -> NightlyRunOutcome:
    """Return the outcome of a run for a day.

    Args:
        run: The run.
        day: The day that the run had to read.
        nightly_counts_by_day: The stored counts of that day and of the days before it.
        summed_up_at: The time of the newest weekly summary. If it is None (no summary), the time of
            the oldest stored counts is used to decide if the report is missing.
    """
    counts_of_run_by_day: dict[date, NightlyCounts] = {}
    days_written_by_run: list[date] = []
    for written_day, nightly_counts in nightly_counts_by_day.items():
        if run.has_written(nightly_counts):
            counts_of_run_by_day[written_day] = nightly_counts
            if nightly_counts.files or nightly_counts.failed_calls:
                days_written_by_run.append(written_day)
    oldest_made_at = min(
        (nightly_counts.made_at for nightly_counts in nightly_counts_by_day.values()),
        default=run.updated_at,
    )
    return NightlyRunOutcome(
        run=run,
        day=day,
        nightly=counts_of_run_by_day.get(day),
        bytes_unreadable=sum(
            nightly_counts.bytes_unreadable for nightly_counts in counts_of_run_by_day.values()
        ),
        judgement=judge_nightly_run(
            counts_of_run_by_day.get(day),
            nightly_counts_by_day.values(),
            has_run_failed=not run.has_succeeded,
        ),
        is_report_missing=run.updated_at - (summed_up_at or oldest_made_at)
        > LONGEST_TIME_BETWEEN_REPORTS,
        written_days=tuple(days_written_by_run),
    )


class WeeklyRunOutcome(Struct, frozen=True):
    """The outcome of a weekly run that has ended.

    `summed_up_at` is the time at which the week's summary was last written. It is None if there is
    no summary.
    """

    run: NightlyJobRun
    week: str
    summed_up_at: datetime | None

    @property
    def has_failed(self) -> bool:
        """True if the run failed or was cancelled, and it has not written the week's summary.

        If the week has no tables, the run writes its summary and ends with exit code 4. EMR reports
        such a run as failed; Mendq does not.
        """
        has_written_summary = (
            self.summed_up_at is not None and self.summed_up_at >= self.run.created_at
        )
        return not self.run.has_succeeded and not has_written_summary

    def metrics(self) -> dict[OwnMetric, int]:
        """Return the metric of a weekly run. It has no dimension."""
        return {OwnMetric.WEEKS_FAILED: int(self.has_failed)}

    @property
    def explanation(self) -> str:
        """A sentence that explains the metric to the people who get the alarm."""
        summary_text = f"{self.week} is summed up"
        if self.has_failed:
            summary_text = f"did not sum up {self.week}"
        return f"the run ended {self.run.state} and {summary_text}"


def read_run_id(event: Any, application_id: str) -> str | None:
    """Return the id of the job run that an event is about.

    Return None for any other event, and for a run of another application. Never raise an error.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    try:
        event_detail = event["detail"]
        event_origin = (event["source"], event["detail-type"], event_detail["applicationId"])
        run_id = _RUN_ID_PATTERN.fullmatch(event_detail["jobRunId"])
    except (TypeError, LookupError):
        return None
    if run_id is None or event_origin != (EMR_EVENT_SOURCE, EMR_DETAIL_TYPE, application_id):
        return None
    return run_id[0]
