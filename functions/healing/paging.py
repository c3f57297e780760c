"""Whom a case reaches: somebody now, somebody in the morning, or nobody."""

from __future__ import annotations

from enum import StrEnum

from functions.healing.mode import Mode
from functions.healing.states import State

# More than this in an hour is read by nobody; the rest are held back, which is said once.
PAGES_PER_HOUR = 20


class Severity(StrEnum):
    """The topics, one each."""

    URGENT = "urgent"
    INFO = "info"


def severity_of(state: State, mode: Mode, *, of_the_plan: bool) -> Severity | None:
    """Whom a case in this state reaches; None: it is only written down.

    `of_the_plan` is a refusal that the queue's own facts gave: a freeze, a budget or a mass symptom
    is no news about this queue. In observe mode nothing is proposed and so nothing is declined.
    """
    if state is State.ESCALATED:
        return Severity.URGENT
    if state in (State.CONTESTED, State.PROPOSED):
        return Severity.INFO
    if state is State.REFUSED and of_the_plan and mode >= Mode.PROPOSE:
        return Severity.INFO
    return None
