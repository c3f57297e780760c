"""Find the outcome of a nightly or weekly run that has ended, and share a nightly run's tables.

EMR gives the run's state; S3 gives the counts that it wrote and the time of its summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import error_code_of
from mendq.model.plan import Ignore, Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.deliver import read_account_alias
from mendq.nightly.outcome import (
    STATES_OF_ENDED_RUNS,
    NightlyJobRun,
    NightlyRunOutcome,
    WeeklyRunOutcome,
    describe_run,
    read_run_id,
)
from mendq.nightly.verdict import (
    ACCOUNT_OBJECT_NAME,
    COMPARED_DAYS,
    TABLES_SHARED_WITH_ORGANIZATION,
    NightlyCounts,
    make_member_prefix,
    make_nightly_counts_key,
    make_shared_table_prefix,
    name_of_week,
    read_nightly_counts,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CopySourceTypeDef


# The S3 key of a week's summary.
SUMMARY_KEY_TEMPLATE = "summary/week={week}/summary.json"
# Mendq looks for the summaries of weekly jobs that began at most this many days ago. Such a job
# sums up the week before the day on which it began.
_MAXIMUM_DAYS_SINCE_JOB_BEGAN = 8
_DAYS_PER_WEEK = 7
# The most bytes of a `nightly.json` that are read. It has about 300.
_MAXIMUM_NIGHTLY_COUNTS_BYTES = 10_000


class NightlyBucket(Struct, frozen=True):
    """The bucket of the tables and summaries. Methods raise botocore's errors."""

    client: S3Client
    name: str

    def read_nightly_counts_until(self, day: date) -> dict[date, NightlyCounts]:
        """Return the stored counts of `day` and of the 14 days before it, the oldest day first.

        A day without counts, or with an object that Mendq did not write, is left out. Each day is
        listed separately, so other objects below `nightly/` cannot fill a listing.
        """
        nightly_counts_by_day: dict[date, NightlyCounts] = {}
        for days_back in range(COMPARED_DAYS, -1, -1):
            earlier_day = day - timedelta(days=days_back)
            key = make_nightly_counts_key(earlier_day)
            if self._find_write_time(key) is None:
                continue
            response_body = self.client.get_object(Bucket=self.name, Key=key)["Body"]
            nightly_counts = read_nightly_counts(response_body.read(_MAXIMUM_NIGHTLY_COUNTS_BYTES))
            if nightly_counts and nightly_counts.day == earlier_day:
                nightly_counts_by_day[earlier_day] = nightly_counts
        return nightly_counts_by_day

    def find_summary_time(self, *weeks: str) -> datetime | None:
        """Return when a summary of these weeks was last written, or None if there is none."""
        summary_times = [
            self._find_write_time(SUMMARY_KEY_TEMPLATE.format(week=week)) for week in weeks
        ]
        return max(
            (summary_time for summary_time in summary_times if summary_time is not None),
            default=None,
        )

    def _find_write_time(self, key: str) -> datetime | None:
        """Return when an object was last written, or None if there is no such object.

        The time comes from a listing, because reading an object that does not exist is an error.
        """
        response = self.client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
        for listed_object in response.get("Contents", []):
            if listed_object["Key"] == key:
                return listed_object["LastModified"]
        return None


def list_weeks_of_recent_jobs(last_day: date) -> tuple[str, ...]:
    """Return the weeks that a recent weekly job may have summed up, the newest first.

    A recent job began on `last_day`, or at most _MAXIMUM_DAYS_SINCE_JOB_BEGAN days before it. A job
    sums up the week before the day on which it began.
    """
    weeks: dict[str, None] = {}
    for days_back in range(_MAXIMUM_DAYS_SINCE_JOB_BEGAN + 1):
        job_begin_day = last_day - timedelta(days=days_back)
        weeks[name_of_week(job_begin_day - timedelta(days=_DAYS_PER_WEEK))] = None
    return tuple(weeks)


def find_run_outcome(
    clients: Clients, settings: WatchNightlySettings, event: object
) -> NightlyRunOutcome | WeeklyRunOutcome | Refusal:
    """Return the outcome of the run that an event is about, or a refusal if Mendq ignores the run.

    Mendq ignores runs that have not ended, and runs that are not its own. Raise botocore's errors.
    """
    run_id = read_run_id(event, settings.application_id)
    if run_id is None:
        return Ignore("not_ours", "the event names no run of our application")
    run = _read_run(clients, settings.application_id, run_id)
    if run is None:
        return Ignore("no_run", f"EMR Serverless knows no run {run_id} of our application")
    if run.state not in STATES_OF_ENDED_RUNS:
        return Ignore("goes_on", f"{run_id} is still {run.state}")
    bucket = NightlyBucket(clients.s3, settings.report_bucket)
    if run.week is not None:
        return WeeklyRunOutcome(run, run.week, bucket.find_summary_time(run.week))
    if run.day is None:
        return Ignore("no_nightly", f"{run_id} is no nightly run; it ended {run.state}")
    summed_up_at = bucket.find_summary_time(*list_weeks_of_recent_jobs(run.updated_at.date()))
    return describe_run(run, run.day, bucket.read_nightly_counts_until(run.day), summed_up_at)


def share_tables(clients: Clients, settings: WatchNightlySettings, days: Iterable[date]) -> int:
    """Copy the tables of these days to the stack's own prefix in the organization's bucket.

    If there are any tables, also write an object with the account's alias. S3 copies the tables
    itself, also between regions, so this function does not load them.

    Returns:
        The number of copied tables.

    Raises:
        ClientError, BotoCoreError: AWS refused, or did not answer.
    """
    account_and_region = (settings.account, clients.region)
    organization_bucket = settings.organization_bucket or ""
    copied_table_count = 0
    for day, table in product(days, TABLES_SHARED_WITH_ORGANIZATION):
        table_prefix = make_shared_table_prefix(*account_and_region, table, name_of_week(day))
        table_key = f"{table_prefix}/{day}.parquet"
        copy_source: CopySourceTypeDef = {
            "Bucket": settings.report_bucket,
            "Key": f"{table}/dt={day}/{table}.parquet",
        }
        clients.s3_copying.copy_object(
            Bucket=organization_bucket, Key=table_key, CopySource=copy_source
        )
        copied_table_count += 1
    if copied_table_count:
        account_json = json.dumps({"schema": 1, "alias": read_account_alias(clients)}).encode()
        clients.s3_copying.put_object(
            Bucket=organization_bucket,
            Key=f"{make_member_prefix(*account_and_region)}/{ACCOUNT_OBJECT_NAME}",
            Body=account_json,
        )
    return copied_table_count


def _read_run(clients: Clients, application_id: str, run_id: str) -> NightlyJobRun | None:
    """Return a job run of the application, or None if EMR Serverless does not know it."""
    try:
        run = clients.emr.get_job_run(applicationId=application_id, jobRunId=run_id)["jobRun"]
    except ClientError as error:
        if error_code_of(error) == "ResourceNotFoundException":
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
