"""The transitions that follow_up does not make, and who makes them."""

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
        states_before: The states from which the transition is possible; empty if it opens the case.
        state_after: The state after the transition.
        because: The reason, for docs/states.md.
        actor: Who makes the transition.
    """

    states_before: tuple[State, ...]
    state_after: State
    because: str
    actor: TransitionActor


APPROVAL_TRANSITION = OtherTransition(
    states_before=(State.PROPOSED,),
    state_after=State.APPROVED,
    actor=TransitionActor.PERSON,
    because="a person approved the plan",
)
DECLINE_TRANSITION = OtherTransition(
    states_before=(State.PROPOSED, State.APPROVED),
    state_after=State.DECLINED,
    actor=TransitionActor.PERSON,
    because="a person declined the plan; where it is still wanted it is proposed again, and pages "
    f"no sooner than {REPEAT_NOTIFICATION_AFTER // timedelta(hours=1)} hours after its last page",
)
CLOSE_TRANSITION = OtherTransition(
    states_before=STATES_WAITING_FOR_PERSON,
    state_after=State.CLOSED,
    actor=TransitionActor.PERSON,
    because="a person closed it",
)
# The transition for a case whose symptom this version of Mendq does not know. No other transition
# ends such a case, because follow_up does not know which evidence the symptom needs.
CLOSE_UNKNOWN_TRANSITION = OtherTransition(
    states_before=tuple(state for state in State if state not in FINAL_STATES),
    state_after=State.CLOSED,
    actor=TransitionActor.PERSON,
    because="a person closed it: this Mendq knows its symptom no more",
)

TRANSITIONS_NOT_BY_FOLLOW_UP = (
    OtherTransition(
        states_before=(),
        state_after=State.OBSERVED,
        actor=TransitionActor.HEAL,
        because="the mode is observe: this is what it would have done",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.REFUSED,
        actor=TransitionActor.HEAL,
        because="the queue's own facts or a guardrail speak against it",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.PROPOSED,
        actor=TransitionActor.HEAL,
        because="mode, autonomy or the plan want a person to see it first",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.APPROVED,
        actor=TransitionActor.HEAL,
        because="settings let another Lambda write it without a person",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.APPLIED,
        actor=TransitionActor.HEAL,
        because="the change stands in the queue",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.ESCALATED,
        actor=TransitionActor.HEAL,
        because="a person has to act: Mendq may not, or cannot",
    ),
    OtherTransition(
        states_before=(),
        state_after=State.OVERRIDDEN,
        actor=TransitionActor.HEAL,
        because="somebody else overruled what Mendq had written",
    ),
    APPROVAL_TRANSITION,
    DECLINE_TRANSITION,
    CLOSE_TRANSITION,
    CLOSE_UNKNOWN_TRANSITION,
    OtherTransition(
        states_before=STATES_THAT_CALL_OWNER,
        state_after=State.APPLIED,
        actor=TransitionActor.OWNER,
        because="facts and guardrails, asked anew, agree",
    ),
    OtherTransition(
        states_before=STATES_THAT_CALL_OWNER,
        state_after=State.OVERRIDDEN,
        actor=TransitionActor.OWNER,
        because="somebody else overruled what Mendq had written",
    ),
    OtherTransition(
        states_before=(State.APPROVED,),
        state_after=State.EXPIRED,
        actor=TransitionActor.OWNER,
        because="by now the plan is another, or may not be made",
    ),
    OtherTransition(
        states_before=(State.INEFFECTIVE,),
        state_after=State.ESCALATED,
        actor=TransitionActor.OWNER,
        because="no further step is within the bounds",
    ),
    OtherTransition(
        states_before=(State.INEFFECTIVE,),
        state_after=State.ROLLED_BACK,
        actor=TransitionActor.OWNER,
        because="a visibility timeout that did not help is set back: a longer one cannot help "
        "either, and neither a named need, a person nor a freeze stands against it",
    ),
    OtherTransition(
        states_before=(State.APPLIED,),
        state_after=State.VERIFIED,
        actor=TransitionActor.OWNER,
        because="every DLQ message went back, or lies in quarantine",
    ),
    OtherTransition(
        states_before=(State.APPLIED,),
        state_after=State.ESCALATED,
        actor=TransitionActor.OWNER,
        because="a redrive was halted, or a restored policy is public",
    ),
    OtherTransition(
        states_before=(State.ESCALATED,),
        state_after=State.ESCALATED,
        actor=TransitionActor.HEAL,
        because="by now others' calls fail",
    ),
    OtherTransition(
        states_before=STATES_WITH_WRITTEN_VALUE,
        state_after=State.ROLLED_BACK,
        actor=TransitionActor.ROLLBACK,
        because="what it wrote was taken back",
    ),
    OtherTransition(
        states_before=(*STATES_WITH_WRITTEN_VALUE, State.APPROVED),
        state_after=State.OVERRIDDEN,
        actor=TransitionActor.NEXT_RUN,
        because="a run died at its write, and what stands there may be a person's",
    ),
)
