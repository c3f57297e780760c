"""EventBridge Scheduler: time zones, context attributes and roles, which MiniStack leaves out.

Due schedules fire by themselves, any one when asked to, both the same way.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ministack.core.arn import parse_arn
from ministack.core.responses import get_account_id, get_region, new_uuid, request_scope
from ministack.services import eventbridge, scheduler

from local_account.account_page import NotFired, SwitchRefused
from local_account.permissions import refusal_to_act, refusal_to_assume
from local_account.where import ACCOUNT, REGION

PRINCIPAL = "scheduler.amazonaws.com"
TICK_SECONDS = 1
# The templated targets whose delivery MiniStack has.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html
ACTIONS = {
    "lambda": "lambda:InvokeFunction",
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "states": "states:StartExecution",
}
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


def fire_named(asked: Any) -> Mapping[str, Any]:
    """Fire a schedule of any group as if a time were now; raise NotFired or SwitchRefused."""
    try:
        name, scheduled_at = str(asked["schedule"]), datetime.fromisoformat(asked["time"])
    except (ValueError, TypeError, KeyError):
        example = '{"schedule": name, "time": "2026-11-10T02:00:00Z"}'
        raise SwitchRefused(f"send {example}") from None
    if scheduled_at.tzinfo is None:
        raise SwitchRefused("time: say which zone, as in 2026-11-10T02:00:00Z")
    with request_scope(ACCOUNT, REGION):
        for schedule in scheduler._schedules.values():
            if schedule["Name"] == name:
                return {"execution_id": fire(schedule, scheduled_at)}
    raise NotFired(f"there is no schedule {name}")


def fire(schedule: Schedule, scheduled_at: datetime) -> str:
    """Invoke the target under the schedule's role; raise NotFired where AWS could not."""
    execution_id, target = str(new_uuid()), dict(schedule["Target"])
    context = {
        "schedule-arn": schedule["Arn"],
        "scheduled-time": f"{scheduled_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "execution-id": execution_id,
        "attempt-number": "1",
    }
    for name, value in context.items() if "Input" in target else ():
        target["Input"] = target["Input"].replace(f"<aws.scheduler.{name}>", value)
    arn, role = target["Arn"], target["RoleArn"]
    if (action := ACTIONS.get(parse_arn(arn).service)) is None:
        raise NotFired(f"targets such as {arn} are not emulated")
    if refusal := refusal_to_assume(role, PRINCIPAL) or refusal_to_act(role, action, arn):
        raise NotFired(refusal)
    event = {  # what a target without an input gets
        "EventId": execution_id,
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": int(scheduled_at.timestamp()),
        "Resources": [schedule["Arn"]],
        "Account": get_account_id(),
        "Region": get_region(),
    }
    eventbridge._invoke_target(target, event, schedule)
    return execution_id
