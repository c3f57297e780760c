"""Recognize cases and findings that only repeat what was reported a short time ago."""

from __future__ import annotations

from datetime import datetime, timedelta

from mendq.heal.guardrails import ONE_DAY
from mendq.heal.situation import Situation
from mendq.model.case import Case
from mendq.model.lifecycle import STATES_ENDED_BY_FAILED_CALLS
from mendq.model.mode import Mode
from mendq.model.state import SILENT_DAYS, State

# The pause between two notes of a finding with its open case. It is an hour less than a day, so
# that the hourly scan notes a finding once a day.
FINDING_NOTES_PAUSE = timedelta(hours=23)
# After the proposal for a fault in the configuration expired, it is not proposed again for this
# long.
EXPIRED_PROPOSAL_SILENCE = timedelta(days=30)


def would_repeat_last_case(situation: Situation, case: Case) -> bool:
    """Return True if the new `case` only repeats the last case of the queue and symptom.

    After failed calls, a case with the same content is a repeat during the cooldown. After a
    finding of a scan, it is a repeat for a day, because a scan finds the same fault every hour.

    A case after a finding is also a repeat if it has the same plan as the last case:

    - for a week after a person declined the last case;
    - for a day after the last case expired, or for EXPIRED_PROPOSAL_SILENCE if it was a proposal
      for a fault in the configuration, which is not urgent;
    - for a day after a person closed the last case while it was escalated.
    """
    last_case = situation.view.case
    if last_case is None:
        return False
    has_same_content = last_case.is_repeated_by(case)
    last_case_age = situation.now - last_case.at
    if not situation.is_found_by_measurement:
        return has_same_content and last_case_age < timedelta(
            minutes=situation.timing.cooldown_minutes
        )
    if has_same_content:
        return last_case_age < ONE_DAY
    silence_duration = _choose_silence_duration(last_case, situation.symptom.is_of_configuration)
    return last_case.steps == case.steps and last_case_age < silence_duration


def would_repeat_without_metrics(
    last_case: Case | None, mode: Mode, now: datetime, modified_at: datetime | None
) -> bool:
    """Return True if a case about a fault in the configuration would certainly be a repeat.

    Metrics are not needed to know this: the plan stays the same until someone changes the queue.

    Args:
        last_case: The newest case of the queue and symptom, or None if there is none.
        mode: The mode of the queue.
        now: The time of the run.
        modified_at: The time of the queue's last change, or None if SQS does not name it.
    """
    if last_case is None or (modified_at is not None and modified_at > last_case.at):
        return False
    if last_case.state is State.OBSERVED and mode is Mode.OBSERVE:
        return now - last_case.at < ONE_DAY
    return now - last_case.at < _choose_silence_duration(last_case, is_of_configuration=True)


def was_noted_recently(open_case: Case, last_noted_at: datetime | None, now: datetime) -> bool:
    """Return True if evidence was noted, or the case changed its state, within FINDING_NOTES_PAUSE.

    Return False while a fix is verified or watched, because each finding counts against the fix.

    Args:
        open_case: The open case of the finding's queue and symptom.
        last_noted_at: The time of the newest failed call or finding that is noted with the case;
            None if there is none.
        now: The time of the run.
    """
    is_watched_for_failed_calls = open_case.state in STATES_ENDED_BY_FAILED_CALLS
    return (
        not is_watched_for_failed_calls
        and now - max(open_case.at, last_noted_at or open_case.at) < FINDING_NOTES_PAUSE
    )


def _choose_silence_duration(last_case: Case, is_of_configuration: bool) -> timedelta:
    """Return how long the same plan is a repeat after `last_case`; zero if it is not a repeat."""
    if last_case.state is State.DECLINED:
        return timedelta(days=SILENT_DAYS)
    if last_case.state is State.EXPIRED:
        was_proposed = last_case.came_from is State.PROPOSED
        return EXPIRED_PROPOSAL_SILENCE if is_of_configuration and was_proposed else ONE_DAY
    was_closed_unfixed = last_case.state is State.CLOSED and last_case.came_from is State.ESCALATED
    return ONE_DAY if was_closed_unfixed else timedelta(0)
