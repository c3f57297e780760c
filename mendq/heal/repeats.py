"""Would this only repeat what people were told a short time ago?"""

from __future__ import annotations

from datetime import datetime, timedelta

from mendq.heal.guardrails import A_DAY
from mendq.heal.situation import Situation
from mendq.model.case import SILENT_DAYS, Case, State
from mendq.model.lifecycle import WATCHED
from mendq.model.limits import Mode

# A scan runs every hour. Slightly less than a day, so that a finding is noted once a day.
NOTED_EVERY = timedelta(hours=23)
# A finding that is still there after this time is reported again.
REMEMBERED = timedelta(days=30)


def is_repeat(situation: Situation, case: Case) -> bool:
    """Return True if the new `case` would only repeat what people were told recently.

    If calls failed, the same case is a repeat during the cooldown. A scan finds the same fault
    every hour, so that is a repeat for a day. If a scan finds a fault and the plan is the same as
    before, Mendq stays silent:

    - for a week after a person declined it;
    - for a day after it expired, or for REMEMBERED if it is a proposal about the configuration,
      which is not urgent;
    - for a day after its escalated case was closed.
    """
    last_case = situation.view.case
    if last_case is None:
        return False
    is_same, age = last_case.is_repeated_by(case), situation.now - last_case.at
    if not situation.is_found:
        return is_same and age < timedelta(minutes=situation.timing.cooldown_minutes)
    if is_same:
        return age < A_DAY
    silence = _silence_after(last_case, situation.symptom.is_of_configuration)
    return last_case.steps == case.steps and age < silence


def would_repeat_unread(
    last_case: Case | None, mode: Mode, now: datetime, modified_at: datetime | None
) -> bool:
    """Return True if a fault in configuration would be a repeat, whatever CloudWatch shows.

    Its plan stays the same until someone changes the queue, so nothing needs to be measured.
    """
    if last_case is None or (modified_at is not None and modified_at > last_case.at):
        return False
    if last_case.state is State.OBSERVED and mode is Mode.OBSERVE:
        return now - last_case.at < A_DAY
    return now - last_case.at < _silence_after(last_case, of_configuration=True)


def was_noted_lately(open_case: Case, noted_at: datetime | None, now: datetime) -> bool:
    """Return True if it was noted within the day that a scan still finds the open case's fault.

    A case whose fix is being verified is always looked at: each finding counts against the fix.
    """
    is_watched = open_case.state in WATCHED
    return not is_watched and now - max(open_case.at, noted_at or open_case.at) < NOTED_EVERY


def _silence_after(last_case: Case, of_configuration: bool) -> timedelta:
    """Return how long Mendq stays silent after a case that ended like this one."""
    if last_case.state is State.DECLINED:
        return timedelta(days=SILENT_DAYS)
    if last_case.state is State.EXPIRED:
        was_proposed = last_case.came_from is State.PROPOSED
        return REMEMBERED if of_configuration and was_proposed else A_DAY
    closed_unfixed = last_case.state is State.CLOSED and last_case.came_from is State.ESCALATED
    return A_DAY if closed_unfixed else timedelta(0)
