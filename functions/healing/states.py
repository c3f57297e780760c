"""The states of a case."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """As the case bucket, the ledger and the night spell them."""

    OBSERVED = "observed"
    REFUSED = "refused"
    PROPOSED = "proposed"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    APPLIED = "applied"
    APPLIED_UNPROVEN = "applied_unproven"
    VERIFIED = "verified"
    WATCHING = "watching"
    CLOSED = "closed"
    INEFFECTIVE = "ineffective"
    CONTESTED = "contested"
    ESCALATED = "escalated"
    ROLLED_BACK = "rolled_back"


FINAL = frozenset(
    {
        State.OBSERVED,
        State.REFUSED,
        State.DECLINED,
        State.EXPIRED,
        State.CLOSED,
        State.ROLLED_BACK,
    }
)
