"""EventBridge Scheduler: time zones, the scheduled time and roles, which MiniStack leaves out.

Due schedules fire by themselves, any one when asked to, both the same way.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from ministack.core.arn import parse_arn
from ministack.core.responses import request_scope
from ministack.services import eventbridge, scheduler
from msgspec import Meta, Struct

from local_account.account_page import NotFired, sent
from local_account.permissions import refusal_to_act, refusal_to_assume
from local_account.where import ACCOUNT, REGION

PRINCIPAL = "scheduler.amazonaws.com"
TICK_SECONDS = 1
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# What is asked of the schedule's role, by the service of the target.
ACTIONS = {"lambda": "lambda:InvokeFunction", "sqs": "sqs:SendMessage"}
Schedule = Mapping[str, Any]
_AT = re.compile(r"\s*at\((.+)\)\s*")
logger = logging.getLogger("mendq.scheduler")


def install() -> None:
    """Have MiniStack's thread call our tick, each second; once per process."""
    fired: dict[tuple[str, str, str], datetime] = {}

    def tick() -> None:
        now = datetime.now(UTC)
        for where, schedule in list(scheduler._schedules.all_items()):
            # Nothing that was due before the schedule was as it is now is made up for.
            changed = (schedule["CreationDate"], schedule.get("LastModificationDate") or 0)
            since = datetime.fromtimestamp(float(max(changed)), UTC)
            due = next_after(schedule, max(fired.get(where, since), since))
            if due is None or due > now:
                continue
            fired[where] = due
            with request_scope(*where[:2]):
                try:
                    if _is_on(schedule, now):
                        fire(schedule, due)
                except NotFired as refused:
                    said = "schedule %s did not fire: %s"
                    logger.error(said, schedule["Name"], refused)  # noqa: TRY400

    scheduler._SCHEDULE_TICK_INTERVAL = TICK_SECONDS
    scheduler._tick_schedules = tick


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first time after `moment` that the schedule stands for; None: never again."""
    expression = str(schedule.get("ScheduleExpression", ""))
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if once := _AT.fullmatch(expression):
        due = datetime.fromisoformat(once[1]).replace(tzinfo=zone)
        return due.astimezone(UTC) if due > moment else None
    if seconds := eventbridge._parse_rate_seconds(expression):
        step, start = timedelta(seconds=seconds), _moment(schedule.get("StartDate"))
        if start is None or moment < start:
            return start or moment + step
        return start + ((moment - start) // step + 1) * step
    fields = eventbridge._parse_cron_fields(expression)
    if fields is None:
        return None
    local: datetime | None = eventbridge._cron_next_fire(fields, moment.astimezone(zone))
    return local and local.astimezone(UTC)


def _is_on(schedule: Schedule, moment: datetime) -> bool:
    start, end = (_moment(schedule.get(each)) for each in ("StartDate", "EndDate"))
    within = (start is None or start <= moment) and (end is None or moment <= end)
    return within and schedule.get("State") == "ENABLED"


def _moment(value: Any) -> datetime | None:
    """REST-JSON's timestamps are numbers."""
    return None if value is None else datetime.fromtimestamp(float(value), UTC)


class Firing(Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule, and the time that it is to be."""

    schedule: str
    time: Annotated[datetime, Meta(tz=True)]


def fire_named(asked: Any) -> Mapping[str, Any]:
    """Fire a schedule of any group as if a time were now; raise NotFired or SwitchRefused."""
    wanted = sent(asked, Firing, '{"schedule": .., "time": "2026-11-10T02:00:00Z"}')
    with request_scope(ACCOUNT, REGION):
        for schedule in scheduler._schedules.values():
            if schedule["Name"] == wanted.schedule:
                fire(schedule, wanted.time)
                return {"fired": wanted.schedule}
    raise NotFired(f"there is no schedule {wanted.schedule}")


def fire(schedule: Schedule, scheduled_at: datetime) -> None:
    """Invoke the target under the schedule's role; raise NotFired where AWS could not."""
    target, time = schedule["Target"], f"{scheduled_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    arn, role = target["Arn"], target["RoleArn"]
    if (action := ACTIONS.get(parse_arn(arn).service)) is None or "Input" not in target:
        raise NotFired(f"targets such as {arn}, or without an input, are not emulated")
    if refusal := refusal_to_assume(role, PRINCIPAL) or refusal_to_act(role, action, arn):
        raise NotFired(refusal)
    given = {**target, "Input": target["Input"].replace(SCHEDULED_TIME, time)}
    eventbridge._invoke_target(given, {"Detail": "{}"}, schedule)
