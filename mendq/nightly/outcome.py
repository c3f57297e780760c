"""What a nightly or weekly run left behind: the figures that alarms watch, and why."""

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
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
_RUN_ID = re.compile(r"[0-9a-z]{1,64}")
_WEEK = re.compile(r"week-([0-9]{4}-W[0-9]{2})")
# A week, and as much more as reports differ in length and nightly runs in lateness.
REPORT_WITHIN = timedelta(days=8)


class NightlyMetric(StrEnum):
    """One datum each per nightly run that ended, at the time at which it did, without a dimension.

    EventBridge may tell of an end twice: watch the maximum, never the sum.
    """

    FAILED = "NightlyRunsFailed"
    WRITTEN = "NightlyRunsWritten"
    DOUBTFUL = "NightlyRunsDoubtful"
    RECORDS_READ = "NightlyRecordsRead"
    REPORT_MISSING = "ReportsMissing"


class Run(Struct, frozen=True):
    """A job run as EMR Serverless describes it; `details` is its own word, for people."""

    id: str
    name: str
    state: str
    details: str
    created_at: datetime
    updated_at: datetime

    @property
    def day(self) -> date | None:
        """The day of a nightly run; None for a week, and for what somebody else named."""
        kind, _, of = self.name.partition("-")
        return day_named(of) if kind == "nightly" else None

    @property
    def week(self) -> str | None:
        """The week that it sums up, such as 2026-W46; None for every other run."""
        found = _WEEK.fullmatch(self.name)
        return found[1] if found else None

    @property
    def ended_well(self) -> bool:
        return self.state == "SUCCESS"

    def wrote(self, nightly: NightlyRead) -> bool:
        """Whether this run wrote it, and no earlier one."""
        return nightly.made_at >= self.created_at


class NightlyRunOutcome(Struct, frozen=True):
    """`nightly` is what the run wrote of its day; the unreadable bytes are of all days it wrote.

    `report_missing`: no week was summed up for longer than REPORT_WITHIN. `written` are the days of
    which it wrote tables.
    """

    run: Run
    day: date
    nightly: NightlyRead | None
    bytes_unreadable: int
    judged: NightlyJudgement
    report_missing: bool = False
    written: tuple[date, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    @property
    def records(self) -> int:
        return self.nightly.records if self.nightly else 0

    def metrics(self) -> dict[NightlyMetric, int]:
        """Every one, so that what is missing was not watched."""
        return {
            NightlyMetric.FAILED: int(self.verdict is Verdict.FAILED),
            NightlyMetric.WRITTEN: int(self.nightly is not None),
            NightlyMetric.DOUBTFUL: int(self.verdict in DOUBTFUL),
            NightlyMetric.RECORDS_READ: self.records,
            NightlyMetric.REPORT_MISSING: int(self.report_missing),
        }

    @property
    def is_fine(self) -> bool:
        return self.verdict is Verdict.READ and self.run.ended_well and not self.report_missing

    @property
    def why(self) -> str:
        """A sentence for whoever is woken by the figures."""
        nightly, run = self.nightly, self.run
        read = f"{self.records} records were read of {self.day}"
        said = [
            {
                Verdict.FAILED: f"the run ended {run.state} and wrote nothing of {self.day}",
                Verdict.MISSING: f"the run ended well and wrote nothing of {self.day}: the trail "
                "began later, or there was nothing new to say",
                Verdict.PARTIAL: f"{read}, which was not over yet",
                Verdict.NOTHING_READ: f"nothing was read of {self.day} though the trail is active",
                Verdict.FAR_FEWER: f"{read} where {self.judged.usual_records} are usual",
            }.get(self.verdict, read)
        ]
        if self.bytes_unreadable:
            said.append(f"{self.bytes_unreadable} bytes were unreadable: quality names the files")
        if nightly and nightly.reader == FALLBACK:
            said.append(f"read by the slower reader: {nightly.why_fallback}")
        if nightly and not run.ended_well:
            said.append(f"the run ended {run.state} after it had written: {run.details}")
        if self.report_missing:
            said.append(f"no week was summed up for {REPORT_WITHIN.days} days")
        return "; ".join(said)


def describe_run(
    run: Run, day: date, there: Mapping[date, NightlyRead], summed_up_at: datetime | None = None
) -> NightlyRunOutcome:
    """What `run` did for `day`; `there` are that day's nightly run and those before it.

    `summed_up_at` is when the newest week was summed up; None where none was.
    """
    mine = {of_day: each for of_day, each in there.items() if run.wrote(each)}
    unreadable = sum(each.bytes_unreadable for each in mine.values())
    verdict = judge(mine.get(day), there.values(), run_failed=not run.ended_well)
    oldest = min((each.made_at for each in there.values()), default=run.updated_at)
    report_missing = run.updated_at - (summed_up_at or oldest) > REPORT_WITHIN
    tables = tuple(of_day for of_day, each in mine.items() if each.files or each.failed_calls)
    return NightlyRunOutcome(run, day, mine.get(day), unreadable, verdict, report_missing, tables)


class WeekEnded(Struct, frozen=True):
    """A run that was to sum up a week; `summed_up_at` is when that was last done, if ever."""

    run: Run
    week: str
    summed_up_at: datetime | None

    @property
    def failed(self) -> bool:
        """One that EMR calls failed may have written all the same: exit code 3."""
        wrote = self.summed_up_at is not None and self.summed_up_at >= self.run.created_at
        return not self.run.ended_well and not wrote

    def metrics(self) -> dict[OwnMetric, int]:
        """One datum a run, without a dimension."""
        return {OwnMetric.WEEKS_FAILED: int(self.failed)}

    @property
    def why(self) -> str:
        """A sentence for whoever is woken by the figure."""
        became = "did not sum up {}" if self.failed else "{} is summed up"
        return f"the run ended {self.run.state} and {became.format(self.week)}"


def read_run_id(event: Any, application_id: str) -> str | None:
    """The run that an event is about; None where it is none of this application's. Total.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    try:
        detail = event["detail"]
        ours = (event["source"], event["detail-type"], detail["applicationId"])
        run_id = _RUN_ID.fullmatch(detail["jobRunId"])
    except (TypeError, LookupError):
        return None
    return run_id[0] if run_id and ours == (SOURCE, DETAIL_TYPE, application_id) else None
