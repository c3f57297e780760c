"""The weekly reports of an account: which there are, and when the next one comes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from botocore.exceptions import BotoCoreError, ClientError

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from functions.aws.errors import code_of
from functions.healing.night import Roots
from functions.healing.night import week as week_job

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

_WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
# As infra/schedules.py writes it.
_WEEKLY = re.compile(r"cron\(0 (\d{1,2}) \? \* ([A-Z]{3}) \*\)", re.ASCII)
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_SCHEDULE = "SchedulesWeekly"


def iso_week(text: str) -> str:
    """`text`, given as --week, where it is a week such as 2026-W46; Stopped where it is none."""
    found = _WEEK.fullmatch(text)
    cure = "say one such as 2026-W46"
    if found and (last := _last_week(int(found[1]))):
        if 1 <= int(found[2]) <= last:
            return text
        cure = f"{found[1]} has {last}, so say one from {found[1]}-W01 to {found[1]}-W{last}"
    raise Stopped(f"--week {text} is no week: {cure}", Exit.USAGE)


def _last_week(year: int) -> int:
    """The number of the year's last ISO week, which 28 December lies in; 0 of no year."""
    return date(year, 12, 28).isocalendar().week if year else 0


@dataclass(frozen=True)
class Reports:
    """What lies in the report bucket of the stack."""

    account: Account

    @property
    def bucket(self) -> str:
        return self.account.output("ReportBucket")

    def weeks(self) -> list[str]:
        """The weeks that have a page, oldest first."""
        return self._weeks_of(page_key)

    def weeks_summed_up(self) -> list[str]:
        """The weeks that a page is, or is to be, made of, oldest first."""
        return self._weeks_of(summary_key)

    def _weeks_of(self, key_of: Callable[[str], str]) -> list[str]:
        """Those whose object is there; other things lie beside it."""
        before, _, after = key_of("*").partition("*")
        listed = self.account.clients.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=before
        )
        keys = (each["Key"] for page in listed for each in page.get("Contents", []))
        names = (each.removeprefix(before).removesuffix(after) for each in keys)
        weeks = {each for each in names if _WEEK.fullmatch(each)}
        return sorted(weeks)

    def page(self, week: str) -> bytes | None:
        """The page; None where there is none."""
        return self._object(page_key(week))

    def summary(self, week: str) -> bytes | None:
        """What the page was made of; None where it is gone."""
        return self._object(summary_key(week))

    def _object(self, key: str) -> bytes | None:
        try:
            found = self.account.clients.s3.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise
        return found["Body"].read()


def page_key(week: str) -> str:
    """Where deliver_report puts a week's page."""
    return f"report/week={week}/report.html"


def summary_key(week: str) -> str:
    """Where the weekly job puts what the page is made of."""
    return f"summary/week={week}/summary.json"


@dataclass(frozen=True)
class Next:
    """When the next report is begun, and the week it will be about."""

    at: datetime
    week: str


def next_report(account: Account, now: datetime) -> Next | None:
    """As the deployed schedule says; None where it cannot be read."""
    cloudformation: CloudFormationClient = account.session.client("cloudformation")
    scheduler: EventBridgeSchedulerClient = account.session.client("scheduler")
    try:
        pages = cloudformation.get_paginator("list_stack_resources").paginate(
            StackName=account.stack
        )
        names = (
            each.get("PhysicalResourceId", "").rpartition("/")[2]
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["LogicalResourceId"].startswith(_SCHEDULE)
        )
        found = scheduler.get_schedule(Name=next(names))
    except (ClientError, BotoCoreError, StopIteration):
        return None
    zone = found.get("ScheduleExpressionTimezone", "UTC")
    return next_of(found["ScheduleExpression"], zone, now)


def next_of(expression: str, zone: str, now: datetime) -> Next | None:
    """The first time after `now` that a weekly expression stands for; None where it is none."""
    found = _WEEKLY.fullmatch(expression)
    try:
        local = now.astimezone(ZoneInfo(zone))
        hour, weekday = int(found[1] if found else ""), _DAYS.index(found[2] if found else "")
        at = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    except (ValueError, ZoneInfoNotFoundError):
        return None
    at += timedelta(days=(weekday - at.weekday()) % 7)
    if at <= local:
        at += timedelta(days=7)
    in_utc = at.astimezone(UTC)
    return Next(in_utc, week_job(in_utc, Roots("", "", "")).of)
