"""Whether a case would only say again what people have heard."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.healing.advance import WATCHED
from functions.healing.case import SILENT_DAYS, Case
from functions.healing.daily_pace import REMEMBERED
from functions.healing.limits import Timing
from functions.healing.mode import Mode
from functions.healing.states import State

A_DAY = timedelta(days=1)
# A sweep comes round in an hour: a little less than a day, so that it is no day and an hour.
NOTED_EVERY = timedelta(hours=23)
SILENT_UNANSWERED = REMEMBERED


def is_repeat(case: Case, last: Case | None, now: datetime, timing: Timing) -> bool:
    """Whether `case` opens on failed calls as `last` did, less than a cooldown ago."""
    cooldown = timedelta(minutes=timing.cooldown_minutes)
    return last is not None and last.says_the_same(case) and now - last.at < cooldown


def is_repeat_of_a_sweep(
    case: Case, last: Case | None, now: datetime, *, of_configuration: bool = False
) -> bool:
    """The same of what a sweep found: it finds it each hour, so it is told once a day.

    What a person declined is left alone for a week; what nobody answered, or a person closed
    unmended, for a day, and of a fault in configuration, which nobody is in a hurry about, for
    SILENT_UNANSWERED.
    """
    if last is None:
        return False
    if last.says_the_same(case):
        return now - last.at < A_DAY
    return last.steps == case.steps and now - last.at < _silence_after(last, of_configuration)


def needs_no_look(
    last: Case | None, mode: Mode, now: datetime, modified_at: datetime | None
) -> bool:
    """Whether a fault in configuration would be a repeat, whatever CloudWatch says of the queue.

    Its plan is the same as long as nobody has changed the queue.
    """
    if last is None or (modified_at is not None and modified_at > last.at):
        return False
    if last.state is State.OBSERVED and mode is Mode.OBSERVE:
        return now - last.at < A_DAY
    return now - last.at < _silence_after(last, of_configuration=True)


def was_noted_lately(open_case: Case, noted_at: datetime | None, now: datetime) -> bool:
    """Whether an open case that waits has heard within the day that it is still found."""
    waits = open_case.state not in WATCHED
    return waits and now - max(open_case.at, noted_at or open_case.at) < NOTED_EVERY


def _silence_after(last: Case, of_configuration: bool) -> timedelta:
    """Zero for a case that ended in any other way."""
    if last.state is State.DECLINED:
        return timedelta(days=SILENT_DAYS)
    if last.state is State.EXPIRED:
        unanswered = last.came_from is State.PROPOSED
        return SILENT_UNANSWERED if of_configuration and unanswered else A_DAY
    unmended = last.state is State.CLOSED and last.came_from is State.ESCALATED
    return A_DAY if unmended else timedelta(0)
