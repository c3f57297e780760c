"""EventBridge Scheduler with time zones, the scheduled time and roles, which MiniStack lacks.

A schedule fires when it is due, or at any time on request. Both work the same way.
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

from local_account.account_page import NotFired, parse_request
from local_account.permissions import refusal_to_act, refusal_to_assume
from local_account.where import ACCOUNT, REGION

PRINCIPAL = "scheduler.amazonaws.com"
TICK_SECONDS = 1
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# Service of the target -> the action that the schedule's role must allow.
ACTIONS = {"lambda": "lambda:InvokeFunction", "sqs": "sqs:SendMessage"}
Schedule = Mapping[str, Any]
_AT = re.compile(r"\s*at\((.+)\)\s*")
logger = logging.getLogger("mendq.scheduler")


def install() -> None:
    """Let MiniStack's scheduler thread fire due schedules, once a second; once per process."""
    fired: dict[tuple[str, str, str], datetime] = {}

    def tick() -> None:
        now = datetime.now(UTC)
        for where, schedule in list(scheduler._schedules.all_items()):
            # Times that were due before the schedule's last change are not made up for.
            changes = (schedule["CreationDate"], schedule.get("LastModificationDate") or 0)
            since = datetime.fromtimestamp(float(max(changes)), UTC)
            due = next_after(schedule, max(fired.get(where, since), since))
            if due is None or due > now:
                continue
            fired[where] = due
            with request_scope(*where[:2]):
                try:
                    if _is_on(schedule, now):
                        fire(schedule, due)
                except NotFired as reason:
                    # The reason is a sentence; a traceback would add nothing.
                    logger.error("schedule %s did not fire: %s", schedule["Name"], reason)  # noqa: TRY400

    scheduler._SCHEDULE_TICK_INTERVAL = TICK_SECONDS
    scheduler._tick_schedules = tick


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """Return when the schedule fires next after `moment`, or None if it never fires again."""
    expression = str(schedule.get("ScheduleExpression", ""))
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if once := _AT.fullmatch(expression):
        due = datetime.fromisoformat(once[1]).replace(tzinfo=zone)
        return due.astimezone(UTC) if due > moment else None
    if seconds := eventbridge._parse_rate_seconds(expression):
        step = timedelta(seconds=seconds)
        start = _moment(schedule.get("StartDate"))
        if start is None or moment < start:
            return start or moment + step
        return start + ((moment - start) // step + 1) * step
    fields = eventbridge._parse_cron_fields(expression)
    if fields is None:
        return None
    local: datetime | None = eventbridge._cron_next_fire(fields, moment.astimezone(zone))
    return local and local.astimezone(UTC)


def _is_on(schedule: Schedule, moment: datetime) -> bool:
    start = _moment(schedule.get("StartDate"))
    end = _moment(schedule.get("EndDate"))
    has_begun = start is None or start <= moment
    has_ended = end is not None and end < moment
    return has_begun and not has_ended and schedule.get("State") == "ENABLED"


def _moment(value: Any) -> datetime | None:
    """Convert a timestamp of the REST-JSON protocol, which is a number of seconds."""
    return None if value is None else datetime.fromtimestamp(float(value), UTC)


class Firing(Struct, frozen=True, forbid_unknown_fields=True):
    """Request to fire a schedule: its name, and the scheduled time that its target gets."""

    schedule: str
    time: Annotated[datetime, Meta(tz=True)]


def fire_named(body: Any) -> Mapping[str, Any]:
    """Fire a schedule of any group now, with the requested scheduled time.

    Raises SwitchRefused if the request is not understood, and NotFired if the schedule does not
    exist or its target was not invoked.
    """
    request = parse_request(body, Firing, '{"schedule": .., "time": "2026-11-10T02:00:00Z"}')
    with request_scope(ACCOUNT, REGION):
        for schedule in scheduler._schedules.values():
            if schedule["Name"] == request.schedule:
                fire(schedule, request.time)
                return {"fired": request.schedule}
    raise NotFired(f"there is no schedule {request.schedule}")


def fire(schedule: Schedule, scheduled_at: datetime) -> None:
    """Invoke the schedule's target with the permissions of the schedule's role.

    Raises NotFired if AWS could not invoke it, or if this kind of target is not emulated.
    """
    target = schedule["Target"]
    time = f"{scheduled_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    arn = target["Arn"]
    role = target["RoleArn"]
    action = ACTIONS.get(parse_arn(arn).service)
    if action is None or "Input" not in target:
        raise NotFired(f"targets such as {arn}, or without an input, are not emulated")
    refusal = refusal_to_assume(role, PRINCIPAL) or refusal_to_act(role, action, arn)
    if refusal:
        raise NotFired(refusal)
    target_with_time = {**target, "Input": target["Input"].replace(SCHEDULED_TIME, time)}
    eventbridge._invoke_target(target_with_time, {"Detail": "{}"}, schedule)
