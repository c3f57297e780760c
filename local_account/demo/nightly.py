"""Run a story's nightly and weekly job through their schedules, and get the report."""

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
from local_account.demo.stage import ScriptFailed, Stage, wait_until
from mendq.model.case import Severity
from mendq.nightly.jobs import STATES_OF_ACTIVE_RUNS
from mendq.nightly.outcome import STATES_OF_ENDED_RUNS

MAXIMUM_WAIT_SECONDS = 420.0
# The account writes its log files every two seconds.
LOG_FILE_WAIT_SECONDS = 4.0
REPORT_FILE_NAME = "report.html"
MAIL_FILE_NAME = "report.eml"
# The report's mail is accepted and not sent: SES on the local account sends nothing.
ACCOUNT_SETTINGS = {"report": {"sender": "mendq@example.com", "recipients": ["reader@example.com"]}}


@dataclass(frozen=True)
class StoryEnding:
    """The incidents that the nightly job wrote, and the notification about the week's report."""

    incidents: list[dict[str, Any]]
    report_notification: Any


@dataclass
class NightlyRuns:
    """Runs the nightly and weekly job of an account. `status` shows the event that it waits for."""

    stage: Stage
    folder: Path
    status: Status

    def __post_init__(self) -> None:
        account = self.stage.account
        self.s3 = account.client("s3")
        self.emr = account.client("emr-serverless")
        self.scheduler = account.client("scheduler")
        self.outputs: Mapping[str, str] = self.stage.account.outputs
        self.application_id = self.outputs["NightlyApplication"]

    def run_both_jobs(self) -> StoryEnding:
        """Run the nightly and the weekly job, and copy the report's page and mail to the folder.

        Raises ScriptFailed if a job fails, if an expected event does not come in time, or if there
        is not exactly one page and one mail.
        """
        failure_times: list[datetime] = []
        for queue in self.stage.watcher.queues.values():
            failure_times += queue.failure_times
        if not failure_times:
            failure_times = [datetime.now(UTC)]
        time.sleep(LOG_FILE_WAIT_SECONDS)
        # A nightly run covers two days, so it also covers a story that began before midnight.
        next_night = find_hour(max(failure_times), 1, 2)
        first_failure_at = min(failure_times)
        next_monday = find_hour(first_failure_at, 7 - first_failure_at.weekday(), 6)
        for job, scheduled_at in (("nightly", next_night), ("week", next_monday)):
            self.stage.console.print(picture.draw_job(*self._run_job(job, scheduled_at)))
        report_notification = self._wait_until(
            self._find_report_notification, "the report, which the summary's arrival starts"
        )
        report_page_keys = [
            key for key in self._list_keys("report/") if key.endswith("/report.html")
        ]
        mails = self._wait_until(lambda: self.stage.account.mails, "the report's mail")
        if (len(report_page_keys), len(mails)) != (1, 1):
            raise ScriptFailed(
                f"{len(report_page_keys)} pages and {len(mails)} mails, expected one of each"
            )
        (self.folder / REPORT_FILE_NAME).write_bytes(self._read_object(report_page_keys[0]))
        (self.folder / MAIL_FILE_NAME).write_bytes(mails[0]["raw"].encode())
        incidents: list[dict[str, Any]] = []
        for key in self._list_keys("incidents/"):
            incidents += pq.read_table(io.BytesIO(self._read_object(key))).to_pylist()
        return StoryEnding(incidents, report_notification)

    def _run_job(self, job_name: str, scheduled_at: datetime) -> tuple[str, float, list[str]]:
        """Fire the schedule of a job and wait for its run.

        Return the run's name, the seconds until its end, and the lines that it printed. If another
        run is active, because its schedule was due, wait for its end first: a second run would be
        refused. The seconds contain this wait. Raises ScriptFailed if the run fails or does not end
        in time.
        """
        started_at = time.monotonic()
        self._wait_until(
            lambda: not self._list_run_ids(STATES_OF_ACTIVE_RUNS),
            "the end of a run that was there before",
        )
        run_ids_before = self._list_run_ids()
        self.stage.account.fire(self._find_schedule(job_name), scheduled_at)
        awaited_event = f"the run of the {job_name} to start"
        (run_id,) = self._wait_until(lambda: self._list_run_ids() - run_ids_before, awaited_event)
        self._wait_until(
            lambda: run_id in self._list_run_ids(STATES_OF_ENDED_RUNS), f"the {job_name} on Spark"
        )
        job_run = self.emr.get_job_run(applicationId=self.application_id, jobRunId=run_id)["jobRun"]
        if job_run["state"] != "SUCCESS":
            raise ScriptFailed(
                f"{job_run['name']} ended {job_run['state']}: {job_run['stateDetails']}"
            )
        log_key = f"logs/applications/{self.application_id}/jobs/{run_id}/SPARK_DRIVER/stdout.gz"
        printed_lines = (
            gzip.decompress(self._read_object(log_key)).decode("utf-8", "replace").splitlines()
        )
        return job_run["name"], time.monotonic() - started_at, printed_lines

    def _find_schedule(self, job_name: str) -> str:
        """Return the name of the schedule that starts a job."""
        schedule_names = [
            schedule["Name"] for schedule in self.scheduler.list_schedules()["Schedules"]
        ]
        matching_names: list[str] = []
        for name in schedule_names:
            target = self.scheduler.get_schedule(Name=name)["Target"]
            if json.loads(target["Input"]).get("job") == job_name:
                matching_names.append(name)
        (schedule_name,) = matching_names
        return schedule_name

    def _list_run_ids(self, run_states: tuple[str, ...] = ()) -> set[str]:
        """Return the ids of the runs in these states, or of all runs if `run_states` is empty."""
        response = self.emr.list_job_runs(
            applicationId=self.application_id, states=list(run_states)
        )
        return {run["id"] for run in response["jobRuns"]}

    def _find_report_notification(self) -> Any:
        """Return the notification about the week's report; None if it has not arrived.

        It is the first new notification of severity INFO that is not about a case.
        """
        for message in self.stage.mailbox.receive_new():
            if message.severity is Severity.INFO and message.case_id is None:
                return message
        return None

    def _list_keys(self, prefix: str) -> list[str]:
        response = self.s3.list_objects_v2(Bucket=self.outputs["ReportBucket"], Prefix=prefix)
        return [listed_object["Key"] for listed_object in response.get("Contents", [])]

    def _read_object(self, key: str) -> bytes:
        bucket = self.outputs["ReportBucket"]
        return bytes(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _wait_until(self, has_happened: Callable[[], Any], awaited_event: str) -> Any:
        """Wait until `has_happened` returns a true value, and return that value.

        Raises ScriptFailed if this takes longer than MAXIMUM_WAIT_SECONDS.
        """
        self.status.update(Text(f"waiting for {awaited_event}", style="dim"))
        return wait_until(has_happened, awaited_event, MAXIMUM_WAIT_SECONDS)


def run_jobs(stage: Stage, folder: Path) -> StoryEnding:
    """Run the nightly and the weekly job of a story, and show their results.

    Raises ScriptFailed as `NightlyRuns.run_both_jobs` does.
    """
    console = stage.console
    console.print("the nightly job, over the account's own trail files and cases", style="bold")
    with console.status("the trail's files") as status:
        ending = NightlyRuns(stage, folder, status).run_both_jobs()
    console.print(picture.make_incident_table(ending.incidents))
    picture.print_all(console, *picture.draw_week_notification(ending.report_notification.text))
    return ending


def find_hour(start_time: datetime, days: int, hour: int) -> datetime:
    """Return `hour`:00 UTC on the day that is `days` days after the date of `start_time`."""
    return datetime.combine(start_time, datetime.min.time(), UTC) + timedelta(days=days, hours=hour)
