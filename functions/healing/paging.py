"""Whom a case reaches: somebody now, somebody in the morning, or nobody."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from functions.healing.case import Case
from functions.healing.mode import Mode
from functions.healing.states import State

# More than this in an hour is read by nobody; the rest are held back, which is said once.
PAGES_PER_HOUR = 20
TOLD_AGAIN_AFTER = timedelta(hours=24)


class Severity(StrEnum):
    """The topics, one each."""

    URGENT = "urgent"
    INFO = "info"


def severity_of(case: Case, mode: Mode, *, of_the_plan: bool) -> Severity | None:
    """Whom a case reaches as it stands; None: it is only written down.

    `of_the_plan` is a refusal that the queue's own facts gave: a freeze, a budget or a mass symptom
    is no news about this queue. In observe mode nothing is proposed and so nothing is declined.
    A person who approved a plan waits to hear that it came to nothing; a proposal that nobody
    answered only runs out.
    """
    if case.state is State.ESCALATED:
        return Severity.URGENT
    if case.state in (State.CONTESTED, State.PROPOSED):
        return Severity.INFO
    if case.state is State.EXPIRED and case.came_from is State.APPROVED:
        return Severity.INFO
    if case.state is State.REFUSED and of_the_plan and mode >= Mode.PROPOSE:
        return Severity.INFO
    return None
