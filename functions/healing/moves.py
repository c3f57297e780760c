"""What Lambdas and people make of a case, beside what `advance` makes of it by itself.

The functions that do it hold the conditions; a proof holds every transition it sees to this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from functions.healing.advance import TABLE
from functions.healing.paging import TOLD_AGAIN_AFTER
from functions.healing.states import FINAL, State


class Who(StrEnum):
    """Whose function moves the case."""

    FOLLOW_UP = "follow_up"
    HEAL = "heal"
    OWNER = "the owner of the write"
    PERSON = "a person"
    ROLL_BACK = "a person, by roll_back"
    NEXT_RUN = "whichever run comes next"


@dataclass(frozen=True)
class Move:
    """Out of no state: the case opens."""

    out_of: tuple[State, ...]
    into: State
    who: Who
    because: str


# The states of a case that has written, and that nobody else has overruled.
HAS_WRITTEN = (
    State.APPLIED,
    State.APPLIED_UNPROVEN,
    State.VERIFIED,
    State.WATCHING,
    State.INEFFECTIVE,
    State.ESCALATED,
    State.CLOSED,
)
# Where the owner of the write looks anew and writes.
TAKEN_UP = (State.APPROVED, State.INEFFECTIVE)

APPROVE = Move((State.PROPOSED,), State.APPROVED, Who.PERSON, "a person approved the plan")
DECLINE = Move(
    (State.PROPOSED, State.APPROVED),
    State.DECLINED,
    Who.PERSON,
    "a person declined the plan; where it is still wanted it is proposed again, "
    f"and pages no sooner than {TOLD_AGAIN_AFTER // timedelta(hours=1)} hours after its last page",
)
CLOSE = Move((State.ESCALATED, State.CONTESTED), State.CLOSED, Who.PERSON, "a person closed it")
# Nobody else ends such a case: follow_up has no entry to go by.
CLOSE_UNKNOWN = Move(
    tuple(state for state in State if state not in FINAL),
    State.CLOSED,
    Who.PERSON,
    "a person closed it: this Mendq knows its symptom no more",
)

MOVES = (
    Move((), State.OBSERVED, Who.HEAL, "the mode is observe: this is what it would have done"),
    Move((), State.REFUSED, Who.HEAL, "the queue's own facts or a guardrail speak against it"),
    Move((), State.PROPOSED, Who.HEAL, "mode, autonomy or the plan want a person to see it first"),
    Move((), State.APPROVED, Who.HEAL, "settings let another Lambda write it without a person"),
    Move((), State.APPLIED, Who.HEAL, "the change stands in the queue"),
    Move((), State.ESCALATED, Who.HEAL, "a person has to act: Mendq may not, or cannot"),
    Move((), State.CONTESTED, Who.HEAL, "somebody else overruled what Mendq had written"),
    APPROVE,
    DECLINE,
    CLOSE,
    CLOSE_UNKNOWN,
    Move(TAKEN_UP, State.APPLIED, Who.OWNER, "facts and guardrails, asked anew, agree"),
    Move(TAKEN_UP, State.CONTESTED, Who.OWNER, "somebody else overruled what Mendq had written"),
    Move(
        (State.APPROVED,),
        State.EXPIRED,
        Who.OWNER,
        "the plan would be another by now, or may not be made any more",
    ),
    Move((State.INEFFECTIVE,), State.ESCALATED, Who.OWNER, "no further step is within the bounds"),
    Move(
        (State.APPLIED,),
        State.VERIFIED,
        Who.OWNER,
        "every dead letter went back, and what came back lies in quarantine",
    ),
    Move((State.APPLIED,), State.ESCALATED, Who.OWNER, "sending dead letters back was halted"),
    Move((State.ESCALATED,), State.ESCALATED, Who.HEAL, "the calls of others fail as well by now"),
    Move(HAS_WRITTEN, State.ROLLED_BACK, Who.ROLL_BACK, "what it wrote was taken back"),
    Move(
        (*HAS_WRITTEN, State.APPROVED),
        State.CONTESTED,
        Who.NEXT_RUN,
        "a run died at its write, and what stands there may be a person's",
    ),
)


def may_move(out_of: State | None, into: State) -> bool:
    """Whether anybody ever moves a case so; None: it opens."""
    by_itself = any(out_of in row.out_of and row.into is into for row in TABLE)
    return by_itself or any(
        move.into is into and (out_of in move.out_of if out_of else not move.out_of)
        for move in MOVES
    )
