"""Watch a run of the nightly job that ended: ask EMR and S3 what it did."""

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
    NightlyRunOutcome,
    Run,
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


# What a week is summed up as lies here, below a folder for each.
SUMMARY = "summary/week={week}/summary.json"
# In so many days before a day a report was begun; its week is the one before.
_BEGUN_WITHIN, _A_WEEK = 8, 7
# A nightly run is some 300 bytes.
_MOST_BYTES = 10_000


class NightlyBucket(Struct, frozen=True):
    """Raises botocore's errors as they come."""

    client: S3Client
    name: str

    def until(self, day: date) -> dict[date, NightlyRead]:
        """The nightly runs of `day` and the fourteen before it; what is none is left out.

        Day by day, a key each: whatever else lies below nightly/ crowds none of them out. Listed,
        because a miss of what is not there would be an error of its own.
        """
        found = {}
        for of_day in (day - timedelta(days=back) for back in range(LOOKED_BACK_DAYS, -1, -1)):
            key = nightly_key(of_day)
            if self._written_at(key):
                body = self.client.get_object(Bucket=self.name, Key=key)["Body"]
                nightly = read_nightly(body.read(_MOST_BYTES))
                if nightly and nightly.day == of_day:
                    found[of_day] = nightly
        return found

    def summed_up_at(self, *weeks: str) -> datetime | None:
        """When the newest summary of those weeks was written; None where none of them was."""
        written = (self._written_at(SUMMARY.format(week=week)) for week in weeks)
        return max(filter(None, written), default=None)

    def _written_at(self, key: str) -> datetime | None:
        listed = self.client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
        there = (each for each in listed.get("Contents", []) if each["Key"] == key)
        return next((each["LastModified"] for each in there), None)


def weeks_due(on: date) -> tuple[str, ...]:
    """The weeks that a report of the days up to `on` can be about."""
    begun = (on - timedelta(days=each) for each in range(_BEGUN_WITHIN + 1))
    return tuple(dict.fromkeys(week_named(each - timedelta(days=_A_WEEK)) for each in begun))


def watch(
    clients: Clients, settings: WatchNightlySettings, event: object
) -> NightlyRunOutcome | WeekEnded | Refusal:
    """What the run did, or why it is not looked at. Raises what AWS raises."""
    run_id = read_run_id(event, settings.application_id)
    if run_id is None:
        return Ignore("not_ours", "the event names no run of our application")
    run = _run(clients, settings.application_id, run_id)
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
    return describe_run(run, run.day, bucket.until(run.day), summed_up_at)


def share_tables(clients: Clients, settings: WatchNightlySettings, days: Iterable[date]) -> int:
    """Put the tables of `days` below the stack's own prefix of the organization's bucket.

    Return how many objects; raise what AWS raises. S3 copies, from whatever region to whatever
    other, so that a table's size is no matter here.
    """
    mine = settings.account, clients.region
    central, shared = settings.organization_bucket or "", 0
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


def _run(clients: Clients, application_id: str, run_id: str) -> Run | None:
    try:
        run = clients.emr.get_job_run(applicationId=application_id, jobRunId=run_id)["jobRun"]
    except ClientError as error:
        if code_of(error) == "ResourceNotFoundException":
            return None
        raise
    when = run["createdAt"], run["updatedAt"]
    return Run(run_id, run.get("name", ""), run["state"], run["stateDetails"], *when)
