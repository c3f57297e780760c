"""EventBridge Scheduler with time zones, the scheduled time and roles, which MiniStack lacks.

A schedule fires when it is due, and at any time on request. Both ways invoke the target with the
same code.
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

from local_account.account_page import ScheduleNotFired, parse_request
from local_account.permissions import find_action_refusal, find_assume_refusal
from local_account.where import ACCOUNT, REGION

SERVICE_PRINCIPAL = "scheduler.amazonaws.com"
DUE_CHECK_INTERVAL_SECONDS = 1
SCHEDULED_TIME_PLACEHOLDER = "<aws.scheduler.scheduled-time>"
# Service of the target -> the action that the schedule's role must allow.
ACTION_BY_SERVICE = {"lambda": "lambda:InvokeFunction", "sqs": "sqs:SendMessage"}
Schedule = Mapping[str, Any]
_ONE_TIME_EXPRESSION = re.compile(r"\s*at\((.+)\)\s*")
logger = logging.getLogger("mendq.scheduler")


def install() -> None:
    """Make MiniStack's scheduler thread fire due schedules, each second.

    Call this once per process.
    """
    last_fired_at: dict[tuple[str, str, str], datetime] = {}

    def fire_due_schedules() -> None:
        now = datetime.now(UTC)
        for schedule_key, schedule in list(scheduler._schedules.all_items()):
            # Times that were due before the schedule's last change are skipped.
            change_times = (schedule["CreationDate"], schedule.get("LastModificationDate") or 0)
            changed_at = datetime.fromtimestamp(float(max(change_times)), UTC)
            due_at = find_next_time(
                schedule, max(last_fired_at.get(schedule_key, changed_at), changed_at)
            )
            if due_at is None or due_at > now:
                continue
            last_fired_at[schedule_key] = due_at
            with request_scope(*schedule_key[:2]):
                try:
                    if _is_active(schedule, now):
                        invoke_target(schedule, due_at)
                except ScheduleNotFired as reason:
                    # The reason is a sentence; a traceback would add nothing.
                    logger.error("schedule %s did not fire: %s", schedule["Name"], reason)  # noqa: TRY400

    scheduler._SCHEDULE_TICK_INTERVAL = DUE_CHECK_INTERVAL_SECONDS
    scheduler._tick_schedules = fire_due_schedules


def find_next_time(schedule: Schedule, reference_time: datetime) -> datetime | None:
    """Return when the schedule fires next after `reference_time`; None if it never does.

    Also None if the schedule's expression is neither `at(..)`, a rate nor a cron expression. The
    state and EndDate are not considered, and StartDate only for a rate. Raises ValueError if the
    time in `at(..)` cannot be read.
    """
    expression = str(schedule.get("ScheduleExpression", ""))
    time_zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if one_time_match := _ONE_TIME_EXPRESSION.fullmatch(expression):
        due_at = datetime.fromisoformat(one_time_match[1]).replace(tzinfo=time_zone)
        return due_at.astimezone(UTC) if due_at > reference_time else None
    if rate_seconds := eventbridge._parse_rate_seconds(expression):
        rate_interval = timedelta(seconds=rate_seconds)
        starts_at = _parse_timestamp(schedule.get("StartDate"))
        if starts_at is None or reference_time < starts_at:
            return starts_at or reference_time + rate_interval
        return starts_at + ((reference_time - starts_at) // rate_interval + 1) * rate_interval
    cron_fields = eventbridge._parse_cron_fields(expression)
    if cron_fields is None:
        return None
    local_time: datetime | None = eventbridge._cron_next_fire(
        cron_fields, reference_time.astimezone(time_zone)
    )
    return local_time.astimezone(UTC) if local_time else None


def _is_active(schedule: Schedule, reference_time: datetime) -> bool:
    starts_at = _parse_timestamp(schedule.get("StartDate"))
    ends_at = _parse_timestamp(schedule.get("EndDate"))
    has_begun = starts_at is None or starts_at <= reference_time
    has_ended = ends_at is not None and ends_at < reference_time
    return has_begun and not has_ended and schedule.get("State") == "ENABLED"


def _parse_timestamp(timestamp_seconds: Any) -> datetime | None:
    """Return a timestamp, given in seconds since the epoch, as a datetime. None stays None."""
    return (
        None if timestamp_seconds is None else datetime.fromtimestamp(float(timestamp_seconds), UTC)
    )


class FireRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Request to fire a schedule: its name, and the scheduled time that its target gets."""

    schedule: str
    time: Annotated[datetime, Meta(tz=True)]


def fire_on_request(body: Any) -> Mapping[str, Any]:
    """Fire a schedule of any group now, with the requested scheduled time.

    The schedule fires even if it is disabled. Raises SwitchRefused if the request is not
    understood, and ScheduleNotFired if the schedule does not exist or its target was not invoked.
    """
    request = parse_request(body, FireRequest, '{"schedule": .., "time": "2026-11-10T02:00:00Z"}')
    with request_scope(ACCOUNT, REGION):
        for schedule in scheduler._schedules.values():
            if schedule["Name"] == request.schedule:
                invoke_target(schedule, request.time)
                return {"fired": request.schedule}
    raise ScheduleNotFired(f"there is no schedule {request.schedule}")


def invoke_target(schedule: Schedule, scheduled_at: datetime) -> None:
    """Invoke the schedule's target with the permissions of the schedule's role.

    The scheduled time replaces its placeholder in the target's input. Raises ScheduleNotFired if
    the role does not let AWS invoke the target, or if the target is not emulated: only Lambdas and
    queues with an input are.
    """
    target = schedule["Target"]
    time_text = f"{scheduled_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    target_arn = target["Arn"]
    role_arn = target["RoleArn"]
    action = ACTION_BY_SERVICE.get(parse_arn(target_arn).service)
    if action is None or "Input" not in target:
        raise ScheduleNotFired(
            f"targets such as {target_arn}, or without an input, are not emulated"
        )
    refusal = find_assume_refusal(role_arn, SERVICE_PRINCIPAL) or find_action_refusal(
        role_arn, action, target_arn
    )
    if refusal:
        raise ScheduleNotFired(refusal)
    target_with_time = {
        **target,
        "Input": target["Input"].replace(SCHEDULED_TIME_PLACEHOLDER, time_text),
    }
    eventbridge._invoke_target(target_with_time, {"Detail": "{}"}, schedule)
