"""The states of a case, and how long a case may stay in each."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from mendq.model.limits import Timing

# For this number of days after an override or a rollback, Mendq leaves the attribute alone. A case
# that waits for a person is closed if its symptom is absent for this number of days.
SILENT_DAYS = 7
# How long after its time limit a case counts as open, if follow_up has not ended it before.
TIME_LIMIT_GRACE = timedelta(hours=1)


class State(StrEnum):
    """The states of a case, spelled as in the case bucket and the case store."""

    OBSERVED = "observed"
    REFUSED = "refused"
    PROPOSED = "proposed"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    APPLIED = "applied"
    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    WATCHING = "watching"
    CLOSED = "closed"
    INEFFECTIVE = "ineffective"
    OVERRIDDEN = "overridden"
    ESCALATED = "escalated"
    ROLLED_BACK = "rolled_back"


FINAL_STATES = frozenset(
    {
        State.OBSERVED,
        State.REFUSED,
        State.DECLINED,
        State.EXPIRED,
        State.CLOSED,
        State.ROLLED_BACK,
    }
)
# The states in which a fix is in the queue and must show that it helps.
STATES_UNDER_VERIFICATION = (State.APPLIED, State.UNVERIFIED)
# The states in which a fix is in the queue and no person must look at it yet.
STATES_WITH_FIX_IN_PLACE = (
    *STATES_UNDER_VERIFICATION,
    State.VERIFIED,
    State.WATCHING,
    State.INEFFECTIVE,
)


def find_state_time_limit(state: State, timing: Timing) -> timedelta | None:
    """Return how long a case may stay in a state before follow_up moves it to another state.

    Return None for a state without such a limit: the final states, ESCALATED and OVERRIDDEN. A case
    in state ESCALATED or OVERRIDDEN ends when a person closes it, when the queue is deleted or no
    longer managed, or when no call has failed for SILENT_DAYS. A rollback ends an escalated case.
    """
    hours_by_state = {
        State.PROPOSED: timing.proposal_hours,
        State.APPROVED: timing.proposal_hours,
        State.INEFFECTIVE: 24,
        State.APPLIED: timing.watch_hours,
        State.UNVERIFIED: 24 * SILENT_DAYS,
        State.VERIFIED: timing.watch_hours,
        State.WATCHING: timing.watch_hours,
    }
    return timedelta(hours=hours_by_state[state]) if state in hours_by_state else None
