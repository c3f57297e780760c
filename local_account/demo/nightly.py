"""End a story: run the nightly and the weekly job through their schedules, and get the report."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.status import Status
from rich.text import Text

from local_account.demo import picture
from local_account.demo.stage import ScriptFailed, Stage, until
from mendq.model.case import Severity
from mendq.nightly.jobs import ACTIVE
from mendq.nightly.outcome import ENDED

PATIENCE_SECONDS = 420.0
# The account writes its log files every two seconds.
FLUSHED_SECONDS = 4.0
REPORT = "report.html"
MAIL = "report.eml"
# The report's mail is accepted and not sent: SES on the local account sends nothing.
SETTINGS = {"report": {"sender": "mendq@example.com", "recipients": ["reader@example.com"]}}


@dataclass(frozen=True)
class Ending:
    """The incidents that the nightly job wrote, and the notification about the week's report."""

    incidents: list[dict[str, Any]]
    verdict: Any


@dataclass
class NightlyRuns:
    """Runs the jobs of an account through their schedules. `status` shows what it waits for."""

    stage: Stage
    folder: Path
    status: Status

    def __post_init__(self) -> None:
        account = self.stage.account
        self.s3 = account.client("s3")
        self.emr = account.client("emr-serverless")
        self.scheduler = account.client("scheduler")
        self.outputs: Mapping[str, str] = self.stage.account.outputs
        self.application = self.outputs["NightlyApplication"]

    def end(self) -> Ending:
        """Run the nightly and the weekly job, and copy the report's page and mail to the folder.

        Raises ScriptFailed if a job fails or something does not come in time.
        """
        failures_at: list[datetime] = []
        for queue in self.stage.watch.queues.values():
            failures_at += queue.failures_at
        if not failures_at:
            failures_at = [datetime.now(UTC)]
        time.sleep(FLUSHED_SECONDS)
        # A nightly run covers its own day and the day before, so also a story that began before
        # midnight.
        next_night = at_hour(max(failures_at), 1, 2)
        first = min(failures_at)
        monday = at_hour(first, 7 - first.weekday(), 6)
        for job, scheduled_at in (("nightly", next_night), ("week", monday)):
            self.stage.console.print(picture.job_ended(*self._run(job, scheduled_at)))
        verdict = self._until(self._verdict, "the report, which the summary's arrival starts")
        pages = [key for key in self._keys("report/") if key.endswith("/report.html")]
        mails = self._until(lambda: self.stage.account.mails, "the report's mail")
        if (len(pages), len(mails)) != (1, 1):
            raise ScriptFailed(f"{len(pages)} pages and {len(mails)} mails, expected one of each")
        (self.folder / REPORT).write_bytes(self._read(pages[0]))
        (self.folder / MAIL).write_bytes(mails[0]["raw"].encode())
        incidents: list[dict[str, Any]] = []
        for key in self._keys("incidents/"):
            incidents += pq.read_table(io.BytesIO(self._read(key))).to_pylist()
        return Ending(incidents, verdict)

    def _run(self, job: str, scheduled_at: datetime) -> tuple[str, float, list[str]]:
        """Fire the schedule of a job and wait for its run.

        Return the run's name, its seconds and the lines that it printed. If the schedule has just
        fired at its own hour, that run is waited for first, because a second one would be refused.
        """
        began = time.monotonic()
        self._until(lambda: not self._runs(ACTIVE), "the end of a run that was there before")
        runs_before = self._runs()
        self.stage.account.fire(self._schedule_of(job), scheduled_at)
        what = f"the run of the {job} to start"
        (run_id,) = self._until(lambda: self._runs() - runs_before, what)
        self._until(lambda: run_id in self._runs(ENDED), f"the {job} on Spark")
        run = self.emr.get_job_run(applicationId=self.application, jobRunId=run_id)["jobRun"]
        if run["state"] != "SUCCESS":
            raise ScriptFailed(f"{run['name']} ended {run['state']}: {run['stateDetails']}")
        log = f"logs/applications/{self.application}/jobs/{run_id}/SPARK_DRIVER/stdout.gz"
        lines = gzip.decompress(self._read(log)).decode("utf-8", "replace").splitlines()
        return run["name"], time.monotonic() - began, lines

    def _schedule_of(self, job: str) -> str:
        """Return the name of the schedule that starts a job."""
        names = [schedule["Name"] for schedule in self.scheduler.list_schedules()["Schedules"]]
        schedules: list[str] = []
        for name in names:
            target = self.scheduler.get_schedule(Name=name)["Target"]
            if json.loads(target["Input"]).get("job") == job:
                schedules.append(name)
        (schedule,) = schedules
        return schedule

    def _runs(self, states: tuple[str, ...] = ()) -> set[str]:
        """Return the ids of the runs in these states, or of all runs."""
        answer = self.emr.list_job_runs(applicationId=self.application, states=list(states))
        return {run["id"] for run in answer["jobRuns"]}

    def _verdict(self) -> Any:
        """Return the new notification about the week's report, or None."""
        for message in self.stage.mailbox.look():
            if message.severity is Severity.INFO and message.case_id is None:
                return message
        return None

    def _keys(self, prefix: str) -> list[str]:
        answer = self.s3.list_objects_v2(Bucket=self.outputs["ReportBucket"], Prefix=prefix)
        return [content["Key"] for content in answer.get("Contents", [])]

    def _read(self, key: str) -> bytes:
        bucket = self.outputs["ReportBucket"]
        return bytes(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _until(self, happened: Callable[[], Any], what: str) -> Any:
        """Show what is waited for, and wait. Raises ScriptFailed if it does not come in time."""
        self.status.update(Text(f"waiting for {what}", style="dim"))
        return until(happened, what, PATIENCE_SECONDS)


def end(stage: Stage, folder: Path) -> Ending:
    """Run the nightly and the weekly job of a story, and show their results.

    Raises ScriptFailed if a job fails or something does not come in time.
    """
    console = stage.console
    console.print("the nightly job, over the account's own trail files and cases", style="bold")
    with console.status("the trail's files") as status:
        ending = NightlyRuns(stage, folder, status).end()
    console.print(picture.incident_table(ending.incidents))
    picture.show(console, *picture.week(ending.verdict.text))
    return ending


def at_hour(moment: datetime, days: int, hour: int) -> datetime:
    """Return that full hour (UTC) on the day that is `days` after the day of `moment`."""
    return datetime.combine(moment, datetime.min.time(), UTC) + timedelta(days=days, hours=hour)
