"""A person's word on a case: approve or decline a proposal, close what is a person's to end.

Nothing is written into a queue here: an approved case is handed to the Lambda that owns its write,
which looks anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from functions.aws.call_owner import Functions, ask_owner
from functions.aws.desk import Desk
from functions.aws.errors import CaseMoved, OwnerUnavailable
from functions.aws.filing import try_to_file_owed
from functions.aws.operator_request import (
    Document,
    OperatorRequest,
    refused,
    symptom_named,
    until_unmoved,
)
from functions.aws.telling import Telling, tell
from functions.catalogue.symptom import Symptom
from functions.healing import moves
from functions.healing.case import Case, longest_in
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.moves import Move
from functions.healing.owners import owner_of_case
from functions.healing.plan import Refusal
from functions.healing.states import State


@dataclass(frozen=True)
class Decision:
    """What a person may say of a case, and in a word what is done by that."""

    move: Move
    done: str

    @property
    def is_approval(self) -> bool:
        return self.move is moves.APPROVE


DECISIONS: Mapping[str, Decision] = MappingProxyType(
    {
        "approve": Decision(moves.APPROVE, "approved"),
        "decline": Decision(moves.DECLINE, "declined"),
        "close": Decision(moves.CLOSE, "closed"),
    }
)
# What ends a case of a symptom that this Mendq does not know: nothing of the catalogue is asked.
_CLOSE_UNKNOWN = Decision(moves.CLOSE_UNKNOWN, "closed")


def decide(
    request: OperatorRequest, word: object, desk: Desk, functions: Functions
) -> Document | Refusal:
    """`{"case_id", "state", "reason", "steps"}`, or why nothing was done.

    Approved again before it is carried out, its owner is called again. Raises LedgerUnavailable,
    LedgerUnreadable or the bucket's error.
    """
    decision = DECISIONS.get(word) if isinstance(word, str) else None
    if decision is None:
        return refused("bad_request", f'"decision" is one of {", ".join(DECISIONS)}')

    def once() -> Document | Refusal:
        try:
            return _once(request, decision, desk, functions)
        except CaseMoved as moved:
            return refused("claimed", f"{moved}; ask again", again=True)

    return until_unmoved(once)


def _once(
    request: OperatorRequest, decision: Decision, desk: Desk, functions: Functions
) -> Document | Refusal:
    history = desk.open_cases.transitions(request.case_id)
    if not history:
        return request.not_found
    case = history[-1]
    if not desk.is_here(case.queue_arn):
        return refused("elsewhere", "the queue is in another account or region")
    symptom = symptom_named(case.symptom)
    attributes = _attributes_of(case, symptom)
    view = try_to_file_owed(desk.ledger.look(case.queue_arn, case.symptom, attributes), desk)
    if isinstance(symptom, Refusal):
        if decision.is_approval:
            return symptom
        decision = _CLOSE_UNKNOWN if decision.move is moves.CLOSE else decision
    refusal = _refusal(case, decision, desk)
    if refusal:
        return refusal
    if case.state is not decision.move.into:
        told = _claimed(view, symptom, desk) or _moved(case, view, decision, request.actor, desk)
        if isinstance(told, Refusal):
            return told
        case = told
    return _carried_out(case, desk, functions) if decision.is_approval else _of(case)


def _refusal(case: Case, decision: Decision, desk: Desk) -> Refusal | None:
    is_again = decision.is_approval and case.state is State.APPROVED
    if case.state not in decision.move.out_of and not is_again:
        states = " or ".join(map(_with_article, decision.move.out_of))
        reason = f"case {case.case_id} is {case.state}; only {states} case can be {decision.done}"
        return refused("wrong_state", reason)
    longest = longest_in(case.state, desk.settings.timing)
    if decision.is_approval and longest is not None and desk.now >= case.at + longest:
        ended_at = case.at + longest
        reason = f"the proposal of case {case.case_id} ran out at {ended_at:%Y-%m-%d %H:%M} UTC"
        return refused("expired", f"{reason}; Mendq proposes again when it is seen again")
    return None


def _attributes_of(case: Case, symptom: Symptom | Refusal) -> list[str]:
    """All that this case's owner may be at work on."""
    writable = () if isinstance(symptom, Refusal) else symptom.steps
    theirs = {step.attribute for step in writable}
    return sorted(theirs | {step["attribute"] for step in case.steps})


def _claimed(view: LedgerView, symptom: Symptom | Refusal, desk: Desk) -> Refusal | None:
    """What is being written, or was and is not recorded, is no person's to end unseen.

    Where nobody knows the symptom any more, nobody settles it either.
    """
    unsettled = view.intent is not None and not isinstance(symptom, Refusal)
    if not unsettled and not view.held_by_another(desk.owner, desk.now):
        return None
    reason = "a run is at work on this queue, or died there; ask again in two minutes"
    return refused("claimed", reason, again=True)


def _moved(
    case: Case, view: LedgerView, decision: Decision, actor: str, desk: Desk
) -> Case | Refusal:
    if view.case is None or (view.case.case_id, view.case.n) != (case.case_id, case.n):
        return refused("claimed", "another run has just moved the case; ask again", again=True)
    moved = case.moved(decision.move.into, decision.move.because, desk.now, actor=actor)
    return tell(moved, view, Telling(None, Facts(case.queue_arn, {}, {})), desk, desk.owner)


def _carried_out(case: Case, desk: Desk, functions: Functions) -> Document:
    """What became of it; it stays approved where its owner could not do it now."""
    try:
        heard = ask_owner(desk.clients, functions, case)
    except OwnerUnavailable as error:
        owner = owner_of_case(case.steps)
        reason = f"{error}; the case stays approved, and follow_up calls {owner} again by itself"
        return {**_of(case), "reason": reason}
    if heard.get("state") is not None:
        return dict(heard)
    newest = desk.open_cases.transitions(case.case_id)[-1]
    return {**_of(newest), **{name: heard[name] for name in ("reason", "code") if name in heard}}


def _of(case: Case) -> Document:
    return {
        "case_id": case.case_id,
        "state": str(case.state),
        "reason": case.reason,
        "steps": [dict(step) for step in case.steps],
    }


def _with_article(state: State) -> str:
    return f"an {state}" if state[0] in "aeiou" else f"a {state}"
