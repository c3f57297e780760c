"""Whether a case would only say again what people have heard."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.healing.case import SILENT_DAYS, Case
from functions.healing.limits import Timing
from functions.healing.states import State

A_DAY = timedelta(days=1)


def is_repeat(case: Case, last: Case | None, now: datetime, timing: Timing) -> bool:
    """Whether `case` opens on failed calls as `last` did, less than a cooldown ago."""
    cooldown = timedelta(minutes=timing.cooldown_minutes)
    return last is not None and last.says_the_same(case) and now - last.at < cooldown


def is_repeat_of_a_sweep(case: Case, last: Case | None, now: datetime) -> bool:
    """The same of what a sweep found: it finds it each hour, so it is told once a day.

    What a person declined is left alone for a week; what nobody answered, or a person closed
    unmended, for a day.
    """
    if last is None:
        return False
    if last.says_the_same(case):
        return now - last.at < A_DAY
    if last.steps != case.steps:
        return False
    if last.state is State.DECLINED:
        return now - last.at < timedelta(days=SILENT_DAYS)
    unmended = last.state is State.CLOSED and last.came_from is State.ESCALATED
    return (unmended or last.state is State.EXPIRED) and now - last.at < A_DAY
