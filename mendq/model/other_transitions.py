"""Other transitions: which transitions does follow_up not make, and who makes them?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from mendq.model.case import REPEAT_NOTIFICATION_AFTER
from mendq.model.lifecycle import (
    STATES_THAT_CALL_OWNER,
    STATES_WAITING_FOR_PERSON,
    STATES_WITH_WRITTEN_VALUE,
)
from mendq.model.state import FINAL_STATES, State


class TransitionActor(StrEnum):
    """The actor of a transition: a person, or one of the Lambdas."""

    FOLLOW_UP = "follow_up"
    HEAL = "heal"
    OWNER = "the owner of the write"
    PERSON = "a person"
    ROLLBACK = "a person, by rollback"
    NEXT_RUN = "whichever run comes next"


@dataclass(frozen=True)
class OtherTransition:
    """A transition that follow_up does not make.

    Attributes:
        out_of: The states before; empty if the transition opens the case.
        into: The state after.
        because: The reason, for docs/states.md.
        who: Who makes the transition.
    """

    out_of: tuple[State, ...]
    into: State
    because: str
    who: TransitionActor


APPROVAL_TRANSITION = OtherTransition(
    out_of=(State.PROPOSED,),
    into=State.APPROVED,
    who=TransitionActor.PERSON,
    because="a person approved the plan",
)
DECLINE_TRANSITION = OtherTransition(
    out_of=(State.PROPOSED, State.APPROVED),
    into=State.DECLINED,
    who=TransitionActor.PERSON,
    because="a person declined the plan; where it is still wanted it is proposed again, and pages "
    f"no sooner than {REPEAT_NOTIFICATION_AFTER // timedelta(hours=1)} hours after its last page",
)
CLOSE_TRANSITION = OtherTransition(
    out_of=STATES_WAITING_FOR_PERSON,
    into=State.CLOSED,
    who=TransitionActor.PERSON,
    because="a person closed it",
)
# The transition for a case whose symptom this version does not know. No other transition ends such
# a case, because follow_up does not know which evidence the symptom needs.
CLOSE_UNKNOWN_TRANSITION = OtherTransition(
    out_of=tuple(state for state in State if state not in FINAL_STATES),
    into=State.CLOSED,
    who=TransitionActor.PERSON,
    because="a person closed it: this Mendq knows its symptom no more",
)

TRANSITIONS_NOT_BY_FOLLOW_UP = (
    OtherTransition(
        out_of=(),
        into=State.OBSERVED,
        who=TransitionActor.HEAL,
        because="the mode is observe: this is what it would have done",
    ),
    OtherTransition(
        out_of=(),
        into=State.REFUSED,
        who=TransitionActor.HEAL,
        because="the queue's own facts or a guardrail speak against it",
    ),
    OtherTransition(
        out_of=(),
        into=State.PROPOSED,
        who=TransitionActor.HEAL,
        because="mode, autonomy or the plan want a person to see it first",
    ),
    OtherTransition(
        out_of=(),
        into=State.APPROVED,
        who=TransitionActor.HEAL,
        because="settings let another Lambda write it without a person",
    ),
    OtherTransition(
        out_of=(),
        into=State.APPLIED,
        who=TransitionActor.HEAL,
        because="the change stands in the queue",
    ),
    OtherTransition(
        out_of=(),
        into=State.ESCALATED,
        who=TransitionActor.HEAL,
        because="a person has to act: Mendq may not, or cannot",
    ),
    OtherTransition(
        out_of=(),
        into=State.OVERRIDDEN,
        who=TransitionActor.HEAL,
        because="somebody else overruled what Mendq had written",
    ),
    APPROVAL_TRANSITION,
    DECLINE_TRANSITION,
    CLOSE_TRANSITION,
    CLOSE_UNKNOWN_TRANSITION,
    OtherTransition(
        out_of=STATES_THAT_CALL_OWNER,
        into=State.APPLIED,
        who=TransitionActor.OWNER,
        because="facts and guardrails, asked anew, agree",
    ),
    OtherTransition(
        out_of=STATES_THAT_CALL_OWNER,
        into=State.OVERRIDDEN,
        who=TransitionActor.OWNER,
        because="somebody else overruled what Mendq had written",
    ),
    OtherTransition(
        out_of=(State.APPROVED,),
        into=State.EXPIRED,
        who=TransitionActor.OWNER,
        because="by now the plan is another, or may not be made",
    ),
    OtherTransition(
        out_of=(State.INEFFECTIVE,),
        into=State.ESCALATED,
        who=TransitionActor.OWNER,
        because="no further step is within the bounds",
    ),
    OtherTransition(
        out_of=(State.APPLIED,),
        into=State.VERIFIED,
        who=TransitionActor.OWNER,
        because="every DLQ message went back, or lies in quarantine",
    ),
    OtherTransition(
        out_of=(State.APPLIED,),
        into=State.ESCALATED,
        who=TransitionActor.OWNER,
        because="a redrive was halted, or a restored policy is public",
    ),
    OtherTransition(
        out_of=(State.ESCALATED,),
        into=State.ESCALATED,
        who=TransitionActor.HEAL,
        because="by now others' calls fail",
    ),
    OtherTransition(
        out_of=STATES_WITH_WRITTEN_VALUE,
        into=State.ROLLED_BACK,
        who=TransitionActor.ROLLBACK,
        because="what it wrote was taken back",
    ),
    OtherTransition(
        out_of=(*STATES_WITH_WRITTEN_VALUE, State.APPROVED),
        into=State.OVERRIDDEN,
        who=TransitionActor.NEXT_RUN,
        because="a run died at its write, and what stands there may be a person's",
    ),
)
