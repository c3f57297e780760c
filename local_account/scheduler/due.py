"""When a schedule is due, in its own time zone.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ministack.services import eventbridge

Schedule = Mapping[str, Any]
_AT = re.compile(r"\s*at\((.+)\)\s*")


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first time after `moment` that the schedule stands for; None: never again."""
    expression = str(schedule.get("ScheduleExpression", ""))
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if once := _AT.fullmatch(expression):
        due = datetime.fromisoformat(once[1]).replace(tzinfo=zone)
        return due.astimezone(UTC) if due > moment else None
    if seconds := eventbridge._parse_rate_seconds(expression):
        return _next_of_rate(schedule, moment, timedelta(seconds=seconds))
    fields = eventbridge._parse_cron_fields(expression)
    if fields is None:
        return None
    local: datetime | None = eventbridge._cron_next_fire(fields, moment.astimezone(zone))
    return local and local.astimezone(UTC)


def is_on(schedule: Schedule, moment: datetime) -> bool:
    """Whether the schedule is enabled and within its dates."""
    if schedule.get("State") != "ENABLED":
        return False
    start, end = (_moment(schedule.get(each)) for each in ("StartDate", "EndDate"))
    return (start is None or start <= moment) and (end is None or moment <= end)


def known_since(schedule: Schedule) -> datetime:
    """From when on it is as it is now: nothing that was due before is made up for."""
    changed = (schedule["CreationDate"], schedule.get("LastModificationDate") or 0)
    return datetime.fromtimestamp(float(max(changed)), UTC)


def _next_of_rate(schedule: Schedule, moment: datetime, step: timedelta) -> datetime:
    """A StartDate is the first time; without one the schedule's own beginning was."""
    start = _moment(schedule.get("StartDate"))
    if start is None:
        return moment + step
    if moment < start:
        return start
    return start + ((moment - start) // step + 1) * step


def _moment(value: Any) -> datetime | None:
    """REST-JSON's timestamps are numbers."""
    return None if value is None else datetime.fromtimestamp(float(value), UTC)
