"""Firing schedules: due ones by themselves, any one when asked to, both the same way."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ministack.core.arn import parse_arn
from ministack.core.responses import get_account_id, get_region, new_uuid, request_scope
from ministack.services import eventbridge, scheduler, sqs

from local_account.scheduler.context import Execution, NotFired, substituted
from local_account.scheduler.due import is_on, known_since, next_after
from local_account.service_roles import refusal_to_act, refusal_to_assume
from local_account.where import ACCOUNT, REGION

PRINCIPAL = "scheduler.amazonaws.com"
# The templated targets whose delivery MiniStack has.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html
ACTIONS = {
    "lambda": "lambda:InvokeFunction",
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "states": "states:StartExecution",
}
Schedule = Mapping[str, Any]
logger = logging.getLogger("mendq.scheduler")


TICK_SECONDS = 1


class Ticker:
    """What MiniStack's thread calls every TICK_SECONDS."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str], datetime] = {}

    def tick(self) -> None:
        """Fire every schedule that has come due since the last tick."""
        now = datetime.now(UTC)
        for where, schedule in list(scheduler._schedules.all_items()):
            since = known_since(schedule)
            due = next_after(schedule, max(self._last.get(where, since), since))
            if due is None or due > now:
                continue
            self._last[where] = due
            account, region, _ = where
            with request_scope(account, region):
                if is_on(schedule, now):
                    _fire_due(schedule, due)


def install() -> None:
    """Hook MiniStack's thread; once per process."""
    scheduler._SCHEDULE_TICK_INTERVAL = TICK_SECONDS
    scheduler._tick_schedules = Ticker().tick


def fire_named(name: str, scheduled_at: datetime) -> str:
    """Fire a schedule of any group as if `scheduled_at` were now; its execution's id.

    Raises NotFired.
    """
    with request_scope(ACCOUNT, REGION):
        for schedule in scheduler._schedules.values():
            if schedule["Name"] == name:
                return fire(schedule, scheduled_at)
    raise NotFired(f"there is no schedule {name}")


def fire(schedule: Schedule, scheduled_at: datetime) -> str:
    """Invoke the target under the schedule's role; raise NotFired where AWS could not.

    What is not fired goes to the schedule's dead-letter queue, if the role may write there.
    """
    execution = Execution(new_uuid(), schedule["Arn"], scheduled_at)
    target = dict(schedule["Target"])
    if "Input" in target:
        target["Input"] = substituted(target["Input"], execution)
    if refusal := _refusal(target):
        _dead_letter(target, execution, refusal)
        raise NotFired(refusal)
    eventbridge._invoke_target(target, _event(execution), schedule)
    return execution.id


def _fire_due(schedule: Schedule, due: datetime) -> None:
    try:
        fire(schedule, due)
    except NotFired as refused:
        logger.error("schedule %s did not fire: %s", schedule["Name"], refused)  # noqa: TRY400


def _refusal(target: Mapping[str, Any]) -> str | None:
    arn, role = target["Arn"], target["RoleArn"]
    action = ACTIONS.get(parse_arn(arn).service)
    if action is None:
        return f"targets such as {arn} are not emulated"
    return refusal_to_assume(role, PRINCIPAL) or refusal_to_act(role, action, arn)


def _event(execution: Execution) -> dict[str, Any]:
    """What a target without an input gets."""
    return {
        "EventId": execution.id,
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": int(execution.scheduled_at.timestamp()),
        "Resources": [execution.schedule_arn],
        "Account": get_account_id(),
        "Region": get_region(),
    }


def _dead_letter(target: Mapping[str, Any], execution: Execution, refusal: str) -> None:
    """https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html"""
    arn = str((target.get("DeadLetterConfig") or {}).get("Arn", ""))
    queue = sqs._queue_by_arn(arn) if arn else None
    if queue is None or refusal_to_act(target["RoleArn"], "sqs:SendMessage", arn):
        return
    shown = {
        "ERROR_CODE": "AccessDeniedException",
        "ERROR_MESSAGE": refusal,
        "EXECUTION_ID": execution.id,
        "SCHEDULE_ARN": execution.schedule_arn,
        "SCHEDULED_TIME": execution.scheduled_time,
        "TARGET_ARN": target["Arn"],
    }
    with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
        eventbridge._dispatch_to_sqs(parse_arn(arn), target.get("Input") or json.dumps({}))
        queue["messages"][-1]["message_attributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in shown.items()
        }
