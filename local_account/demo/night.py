"""The night and the week after a story: the deployed schedules, fired for the days they mean."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from functions.healing.night import ACTIVE
from local_account.demo.trail import Trail
from local_account.process import LocalAccount

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless.literals import JobRunStateType

PATIENCE_SECONDS = 180.0
LOOK_EVERY_SECONDS = 0.2
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
Say = Callable[[str], None]


class NightFailed(Exception):
    """A job run that failed, or something that did not come in time."""


@dataclass(frozen=True)
class Run:
    """A job run that has ended well; `said` is what it printed."""

    name: str
    seconds: float
    said: tuple[str, ...]


@dataclass(frozen=True)
class Nights:
    """Runs jobs in an account by their schedules; `waits_for` hears what is being waited for."""

    account: LocalAccount
    outputs: Mapping[str, str]
    waits_for: Say

    def until_trail_holds(self, failed_calls: Mapping[str, int]) -> None:
        """Return when the trail's files hold that many failed calls of every queue."""
        self.waits_for("the trail's files")
        trail = Trail(self.account.client("s3"), self.outputs["TrailBucket"])
        _until(lambda: failed_calls.items() <= dict(trail.look()).items(), "the trail's files")

    def run(self, job: str, scheduled_at: datetime) -> Run:
        """Fire the schedule that starts `job` and wait for its run; raise NightFailed.

        At its own hour the schedule fires by itself: that run ends first, or ours were refused.
        """
        began = time.monotonic()
        _until(lambda: not self._runs(ACTIVE), "the end of a run that was there before")
        known = set(self._runs())
        self.account.fire(self._schedule_of(job), scheduled_at)
        self.waits_for(f"the run of the {job} to start")
        _until(lambda: set(self._runs()) - known, f"the run of the {job}")
        (run_id,) = set(self._runs()) - known
        while (run := self._run(run_id))["state"] not in ENDED:
            seconds = time.monotonic() - began
            self.waits_for(f"{run['name']} on Spark: {run['state'].lower()}, {seconds:.0f} s")
            if seconds > PATIENCE_SECONDS:
                raise NightFailed(f"{run['name']} still runs after {seconds:.0f} s")
            time.sleep(LOOK_EVERY_SECONDS)
        if run["state"] != "SUCCESS":
            raise NightFailed(f"{run['name']} ended {run['state']}: {run['stateDetails']}")
        return Run(run["name"], time.monotonic() - began, self._said(run_id))

    def incidents(self) -> list[dict[str, Any]]:
        """Every row of the incidents table."""
        s3, bucket = self.account.client("s3"), self.outputs["ReportBucket"]
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="incidents/").get("Contents", [])
        rows: list[dict[str, Any]] = []
        for each in listed:
            body = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
            rows += pq.read_table(io.BytesIO(body)).to_pylist()
        return rows

    def _schedule_of(self, job: str) -> str:
        """The schedule whose input names the job."""
        scheduler = self.account.client("scheduler")
        for each in scheduler.list_schedules()["Schedules"]:
            target = scheduler.get_schedule(Name=each["Name"])["Target"]
            if json.loads(target["Input"]).get("job") == job:
                return str(each["Name"])
        raise NightFailed(f"no schedule starts the {job}")

    def _runs(self, states: Sequence[JobRunStateType] = ()) -> list[str]:
        """The ids of the runs in `states`, or of all."""
        emr, application = self.account.client("emr-serverless"), self.outputs["NightApplication"]
        listed = emr.list_job_runs(applicationId=application, states=list(states))
        return [each["id"] for each in listed["jobRuns"]]

    def _run(self, run_id: str) -> dict[str, Any]:
        application = self.outputs["NightApplication"]
        emr = self.account.client("emr-serverless")
        run: dict[str, Any] = emr.get_job_run(applicationId=application, jobRunId=run_id)["jobRun"]
        return run

    def _said(self, run_id: str) -> tuple[str, ...]:
        application = self.outputs["NightApplication"]
        key = f"logs/applications/{application}/jobs/{run_id}/SPARK_DRIVER/stdout.gz"
        s3, bucket = self.account.client("s3"), self.outputs["ReportBucket"]
        log = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return tuple(gzip.decompress(log).decode("utf-8", "replace").splitlines())


def night_after(moment: datetime, hour_utc: int = 2) -> datetime:
    """When the schedule fires for the day of `moment`: its own day is in the night then."""
    return _midnight(moment) + timedelta(days=1, hours=hour_utc)


def monday_after(moment: datetime, hour: int = 6) -> datetime:
    """When the schedule fires for the week of `moment`."""
    midnight = _midnight(moment)
    return midnight + timedelta(days=7 - midnight.weekday(), hours=hour)


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC), datetime.min.time(), UTC)


def _until(happened: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise NightFailed(f"{what} did not come within {PATIENCE_SECONDS:.0f} s")
        time.sleep(LOOK_EVERY_SECONDS)
