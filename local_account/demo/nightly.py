"""How a story ends: the deployed schedules, fired for its night and its week, and the report."""

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
# The account writes its trail files each two seconds.
FLUSHED_SECONDS = 4.0
REPORT, MAIL = "report.html", "report.eml"
# Whom the demo's account mails its report: SES here sends to nobody.
SETTINGS = {"report": {"sender": "mendq@example.com", "recipients": ["reader@example.com"]}}


@dataclass(frozen=True)
class Ending:
    """What the nightly job made of the story: its incidents, and the week's message."""

    incidents: list[dict[str, Any]]
    verdict: Any


@dataclass
class NightlyRuns:
    """Runs the jobs of an account by their schedules, and says what it waits for."""

    stage: Stage
    folder: Path
    status: Status

    def __post_init__(self) -> None:
        services = ("s3", "emr-serverless", "scheduler")
        self.s3, self.emr, self.scheduler = map(self.stage.account.client, services)
        self.outputs: Mapping[str, str] = self.stage.account.outputs
        self.application = self.outputs["NightlyApplication"]

    def end(self) -> Ending:
        """Run the nightly job and the week of the story, copy page and mail; raise
        ScriptFailed.
        """
        queues = self.stage.watch.queues.values()
        failed_at = [at for each in queues for at in each.failures_at] or [datetime.now(UTC)]
        first, last = min(failed_at), max(failed_at)
        time.sleep(FLUSHED_SECONDS)
        # A nightly run is its own day and the day before: a story that went on over a midnight is
        # in it.
        next_night, monday = at_hour(last, 1, 2), at_hour(first, 7 - first.weekday(), 6)
        for job, at in (("nightly", next_night), ("week", monday)):
            self.stage.console.print(picture.job_ended(*self._run(job, at)))
        verdict = self._until(self._verdict, "the report, which the summary's arrival starts")
        pages = [each for each in self._keys("report/") if each.endswith("/report.html")]
        mails = self._until(lambda: self.stage.account.mails, "the report's mail")
        if (len(pages), len(mails)) != (1, 1):
            raise ScriptFailed(f"{len(pages)} pages and {len(mails)} mails, expected one of each")
        (self.folder / REPORT).write_bytes(self._read(pages[0]))
        (self.folder / MAIL).write_bytes(mails[0]["raw"].encode())
        files = [io.BytesIO(self._read(key)) for key in self._keys("incidents/")]
        return Ending([row for file in files for row in pq.read_table(file).to_pylist()], verdict)

    def _run(self, job: str, at: datetime) -> tuple[str, float, list[str]]:
        """Fire the schedule that starts `job`, and return its run's name, seconds and words.

        At its own hour the schedule fires by itself: that run ends first, or ours were refused.
        """
        began = time.monotonic()
        self._until(lambda: not self._runs(ACTIVE), "the end of a run that was there before")
        known = self._runs()
        names = [each["Name"] for each in self.scheduler.list_schedules()["Schedules"]]
        inputs = {name: self.scheduler.get_schedule(Name=name)["Target"]["Input"] for name in names}
        (schedule,) = (name for name, each in inputs.items() if json.loads(each).get("job") == job)
        self.stage.account.fire(schedule, at)
        (run_id,) = self._until(lambda: self._runs() - known, f"the run of the {job} to start")
        self._until(lambda: run_id in self._runs(ENDED), f"the {job} on Spark")
        run = self.emr.get_job_run(applicationId=self.application, jobRunId=run_id)["jobRun"]
        if run["state"] != "SUCCESS":
            raise ScriptFailed(f"{run['name']} ended {run['state']}: {run['stateDetails']}")
        log = f"logs/applications/{self.application}/jobs/{run_id}/SPARK_DRIVER/stdout.gz"
        said = gzip.decompress(self._read(log)).decode("utf-8", "replace").splitlines()
        return run["name"], time.monotonic() - began, said

    def _runs(self, states: tuple[str, ...] = ()) -> set[str]:
        """The ids of the runs in `states`, or of all."""
        listed = self.emr.list_job_runs(applicationId=self.application, states=list(states))
        return {each["id"] for each in listed["jobRuns"]}

    def _verdict(self) -> Any:
        new = self.stage.mailbox.look()
        week = (each for each in new if each.severity is Severity.INFO and each.case_id is None)
        return next(week, None)

    def _keys(self, prefix: str) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=self.outputs["ReportBucket"], Prefix=prefix)
        return [each["Key"] for each in listed.get("Contents", [])]

    def _read(self, key: str) -> bytes:
        bucket = self.outputs["ReportBucket"]
        return bytes(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _until(self, happened: Callable[[], Any], what: str) -> Any:
        """Say what it waits for, and wait."""
        self.status.update(Text(f"waiting for {what}", style="dim"))
        return until(happened, what, PATIENCE_SECONDS)


def end(stage: Stage, folder: Path) -> Ending:
    """Run the nightly and the weekly job of a story and show them; raise ScriptFailed."""
    console = stage.console
    console.print("the nightly job, over the account's own trail files and cases", style="bold")
    with console.status("the trail's files") as status:
        ending = NightlyRuns(stage, folder, status).end()
    console.print(picture.incident_table(ending.incidents))
    picture.show(console, *picture.week(ending.verdict.text))
    return ending


def at_hour(moment: datetime, days: int, hour: int) -> datetime:
    """That hour, so many days after the day of `moment`."""
    return datetime.combine(moment, datetime.min.time(), UTC) + timedelta(days=days, hours=hour)
