"""Watch a run of the nightly job that has ended: read its state from EMR and its counts from S3."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import code_of
from mendq.model.plan import Ignore, Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.deliver import account_alias
from mendq.nightly.outcome import (
    ENDED,
    NightlyJobRun,
    NightlyRunOutcome,
    WeekEnded,
    describe_run,
    read_run_id,
)
from mendq.nightly.verdict import (
    ABOUT,
    LOOKED_BACK_DAYS,
    SHARED_TABLES,
    NightlyRead,
    member_key,
    nightly_key,
    read_nightly,
    shared_folder,
    week_named,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CopySourceTypeDef


# The S3 key of a week's summary.
SUMMARY = "summary/week={week}/summary.json"
# The week of a report is the one before the day on which the weekly job that makes it began. Jobs
# that began at most this many days ago are looked for.
_BEGUN_WITHIN = 8
_A_WEEK = 7
# The most bytes of a `nightly.json` that are read. It has about 300.
_MOST_BYTES = 10_000


class NightlyBucket(Struct, frozen=True):
    """The bucket of the tables and summaries. Methods raise botocore's errors."""

    client: S3Client
    name: str

    def read_until(self, day: date) -> dict[date, NightlyRead]:
        """Return the stored counts of `day` and of the 14 days before it, the oldest day first.

        A day without counts, or with an object that Mendq did not write, is left out. Each day has
        a request of its own, so other objects below `nightly/` cannot fill a listing.
        """
        nightly_runs: dict[date, NightlyRead] = {}
        for days_back in range(LOOKED_BACK_DAYS, -1, -1):
            earlier_day = day - timedelta(days=days_back)
            key = nightly_key(earlier_day)
            if self._written_at(key) is None:
                continue
            body = self.client.get_object(Bucket=self.name, Key=key)["Body"]
            nightly = read_nightly(body.read(_MOST_BYTES))
            if nightly and nightly.day == earlier_day:
                nightly_runs[earlier_day] = nightly
        return nightly_runs

    def summed_up_at(self, *weeks: str) -> datetime | None:
        """Return when the newest summary of these weeks was written, or None if there is none."""
        times = [self._written_at(SUMMARY.format(week=week)) for week in weeks]
        return max((time for time in times if time is not None), default=None)

    def _written_at(self, key: str) -> datetime | None:
        """Return when an object was written, or None if there is no such object.

        The key is listed first, because reading an object that does not exist would be an error.
        """
        answer = self.client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
        for listed in answer.get("Contents", []):
            if listed["Key"] == key:
                return listed["LastModified"]
        return None


def weeks_due(on: date) -> tuple[str, ...]:
    """Return the weeks whose weekly job may have begun in the _BEGUN_WITHIN days before `on`."""
    weeks: dict[str, None] = {}
    for days_back in range(_BEGUN_WITHIN + 1):
        began = on - timedelta(days=days_back)
        weeks[week_named(began - timedelta(days=_A_WEEK))] = None
    return tuple(weeks)


def watch(
    clients: Clients, settings: WatchNightlySettings, event: object
) -> NightlyRunOutcome | WeekEnded | Refusal:
    """Return the outcome of the run that an event is about, or a refusal if it is not watched.

    Raises AWS's errors.
    """
    run_id = read_run_id(event, settings.application_id)
    if run_id is None:
        return Ignore("not_ours", "the event names no run of our application")
    run = _read_run(clients, settings.application_id, run_id)
    if run is None:
        return Ignore("no_run", f"EMR Serverless knows no run {run_id} of our application")
    if run.state not in ENDED:
        return Ignore("goes_on", f"{run_id} is still {run.state}")
    bucket = NightlyBucket(clients.s3, settings.report_bucket)
    if run.week is not None:
        return WeekEnded(run, run.week, bucket.summed_up_at(run.week))
    if run.day is None:
        return Ignore("no_nightly", f"{run_id} is no nightly run; it ended {run.state}")
    summed_up_at = bucket.summed_up_at(*weeks_due(run.updated_at.date()))
    return describe_run(run, run.day, bucket.read_until(run.day), summed_up_at)


def share_tables(clients: Clients, settings: WatchNightlySettings, days: Iterable[date]) -> int:
    """Copy the tables of these days to the stack's own prefix in the organization's bucket.

    S3 copies them itself, also between regions, so the size of a table does not matter here.

    Returns:
        The number of copied tables.

    Raises:
        ClientError, BotoCoreError: AWS refused, or did not answer.
    """
    mine = (settings.account, clients.region)
    central = settings.organization_bucket or ""
    shared = 0
    for day, table in product(days, SHARED_TABLES):
        key = f"{shared_folder(*mine, table, week_named(day))}/{day}.parquet"
        source: CopySourceTypeDef = {
            "Bucket": settings.report_bucket,
            "Key": f"{table}/dt={day}/{table}.parquet",
        }
        clients.s3_copying.copy_object(Bucket=central, Key=key, CopySource=source)
        shared += 1
    if shared:
        about = json.dumps({"schema": 1, "alias": account_alias(clients)}).encode()
        clients.s3_copying.put_object(
            Bucket=central, Key=f"{member_key(*mine)}/{ABOUT}", Body=about
        )
    return shared


def _read_run(clients: Clients, application_id: str, run_id: str) -> NightlyJobRun | None:
    """Return a job run of the application, or None if EMR Serverless does not know it."""
    try:
        run = clients.emr.get_job_run(applicationId=application_id, jobRunId=run_id)["jobRun"]
    except ClientError as error:
        if code_of(error) == "ResourceNotFoundException":
            return None
        raise
    return NightlyJobRun(
        id=run_id,
        name=run.get("name", ""),
        state=run["state"],
        details=run["stateDetails"],
        created_at=run["createdAt"],
        updated_at=run["updatedAt"],
    )
