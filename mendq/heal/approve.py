"""Approve, decline or close a case at an operator's request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.errors import (
    CaseMoved,
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    NotificationNotSent,
    OwnerUnavailable,
    QueueGone,
    QueueRefusesUs,
    StepFailed,
)
from mendq.cases.context import CaseContext
from mendq.cases.record import Notification, record_transition, try_to_file_owed
from mendq.cases.view import CaseStoreView
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import Functions, ask_owner
from mendq.model import lifecycle
from mendq.model.case import Case, State, longest_in
from mendq.model.facts import Facts
from mendq.model.lifecycle import ManualTransition
from mendq.model.plan import Ignore, Refusal, Retry, owner_of_case
from mendq.notifications.text import plain

Document = dict[str, Any]
# A case once more, where another run came in between.
TRIES = 3
LONGEST_CASE_ID = 200
NOBODY = "an operator who gave no name"


@dataclass(frozen=True)
class OperatorRequest:
    """`actor` is what the operator's side says of itself, cleaned; IAM alone says who may call."""

    case_id: str
    actor: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> OperatorRequest | Refusal:
        """The refusal of an event that names no case."""
        case_id, actor = event.get("case_id"), event.get("actor")
        if not isinstance(case_id, str) or not 0 < len(case_id) <= LONGEST_CASE_ID:
            return refused("bad_request", 'give "case_id", the id of a case, as a text')
        named = plain(actor) if isinstance(actor, str) else ""
        return cls(case_id, named or NOBODY)

    @property
    def not_found(self) -> Refusal:
        return refused("not_found", f"there is no case {plain(self.case_id)}; `mendq cases` lists")


def refused(code: str, reason: str, *, again: bool = False) -> Refusal:
    """A refusal that nothing is written down for."""
    return (Retry if again else Ignore)(code, reason)


def symptom_named(name: str) -> Symptom | Refusal:
    """The refusal of a case from a Mendq that knew more symptoms."""
    found = next((each for each in CATALOGUE if each.name == name), None)
    reason = f"this Mendq knows no symptom {plain(name)}: `mendq close` ends its case"
    return found or refused("unknown_symptom", reason)


def until_unmoved(once: Callable[[], Document | Refusal]) -> Document | Refusal:
    """Try again where another run came in between."""
    done = once()
    for _ in range(TRIES - 1):
        if not isinstance(done, Refusal) or not done.again:
            break
        done = once()
    return done


def answer(act: Callable[[], Document | Refusal]) -> Document:
    """What the operator gets: never an exception for what AWS or a queue's owner says."""
    try:
        done = act()
    except QueueGone as gone:
        done = refused("queue_gone", f"there is no queue {gone} any more")
    except QueueRefusesUs as refusing:
        done = refused("queue_refuses_us", str(refusing))
    except CaseStoreUnreadable as unreadable:
        done = refused("case_store_unreadable", str(unreadable))
    except (
        BotoCoreError,
        ClientError,
        FactsUnavailable,
        CaseStoreUnavailable,
        NotificationNotSent,
        StepFailed,
    ) as error:
        reason = f"{error}; ask again in two minutes: what was begun is finished then"
        done = refused("unavailable", reason)
    return said(done) if isinstance(done, Refusal) else done


def said(refusal: Refusal) -> Document:
    """A refusal as the operator gets it."""
    return {"error": refusal.code, "reason": refusal.reason}


@dataclass(frozen=True)
class Decision:
    """What a person may say of a case, and in a word what is done by that."""

    move: ManualTransition
    done: str

    @property
    def is_approval(self) -> bool:
        return self.move is lifecycle.APPROVE


DECISIONS: Mapping[str, Decision] = MappingProxyType(
    {
        "approve": Decision(lifecycle.APPROVE, "approved"),
        "decline": Decision(lifecycle.DECLINE, "declined"),
        "close": Decision(lifecycle.CLOSE, "closed"),
    }
)

# What ends a case of a symptom that this Mendq does not know: nothing of the catalogue is asked.
_CLOSE_UNKNOWN = Decision(lifecycle.CLOSE_UNKNOWN, "closed")


def decide(
    request: OperatorRequest, word: object, context: CaseContext, functions: Functions
) -> Document | Refusal:
    """`{"case_id", "state", "reason", "steps"}`, or why nothing was done.

    Approved again before it is carried out, its owner is called again. Raises CaseStoreUnavailable,
    CaseStoreUnreadable or the bucket's error.
    """
    decision = DECISIONS.get(word) if isinstance(word, str) else None
    if decision is None:
        return refused("bad_request", f'"decision" is one of {", ".join(DECISIONS)}')

    def once() -> Document | Refusal:
        try:
            return _once(request, decision, context, functions)
        except CaseMoved as moved:
            return refused("claimed", f"{moved}; ask again", again=True)

    return until_unmoved(once)


def _once(
    request: OperatorRequest, decision: Decision, context: CaseContext, functions: Functions
) -> Document | Refusal:
    history = context.open_cases.transitions(request.case_id)
    if not history:
        return request.not_found
    case = history[-1]
    if not context.is_here(case.queue_arn):
        return refused("elsewhere", "the queue is in another account or region")
    symptom = symptom_named(case.symptom)
    attributes = _attributes_of(case, symptom)
    view = try_to_file_owed(
        context.case_store.look(case.queue_arn, case.symptom, attributes), context
    )
    if isinstance(symptom, Refusal):
        if decision.is_approval:
            return symptom
        decision = _CLOSE_UNKNOWN if decision.move is lifecycle.CLOSE else decision
    refusal = _refusal(case, decision, context)
    if refusal:
        return refusal
    if case.state is not decision.move.into:
        recorded = _claimed(view, symptom, context) or _moved(
            case, view, decision, request.actor, context
        )
        if isinstance(recorded, Refusal):
            return recorded
        case = recorded
    return _carried_out(case, context, functions) if decision.is_approval else _of(case)


def _refusal(case: Case, decision: Decision, context: CaseContext) -> Refusal | None:
    is_again = decision.is_approval and case.state is State.APPROVED
    if case.state not in decision.move.out_of and not is_again:
        states = " or ".join(map(_with_article, decision.move.out_of))
        reason = f"case {case.case_id} is {case.state}; only {states} case can be {decision.done}"
        return refused("wrong_state", reason)
    longest = longest_in(case.state, context.settings.timing)
    if decision.is_approval and longest is not None and context.now >= case.at + longest:
        ended_at = case.at + longest
        reason = f"the proposal of case {case.case_id} ran out at {ended_at:%Y-%m-%d %H:%M} UTC"
        return refused("expired", f"{reason}; Mendq proposes again when it is seen again")
    return None


def _attributes_of(case: Case, symptom: Symptom | Refusal) -> list[str]:
    """All that this case's owner may be at work on."""
    writable = () if isinstance(symptom, Refusal) else symptom.steps
    theirs = {step.attribute for step in writable}
    return sorted(theirs | {step["attribute"] for step in case.steps})


def _claimed(
    view: CaseStoreView, symptom: Symptom | Refusal, context: CaseContext
) -> Refusal | None:
    """What is being written, or was and is not recorded, is no person's to end unseen.

    Where nobody knows the symptom any more, nobody settles it either.
    """
    unsettled = view.intent is not None and not isinstance(symptom, Refusal)
    if not unsettled and not view.held_by_another(context.owner, context.now):
        return None
    reason = "a run is at work on this queue, or died there; ask again in two minutes"
    return refused("claimed", reason, again=True)


def _moved(
    case: Case, view: CaseStoreView, decision: Decision, actor: str, context: CaseContext
) -> Case | Refusal:
    if view.case is None or (view.case.case_id, view.case.n) != (case.case_id, case.n):
        return refused("claimed", "another run has just moved the case; ask again", again=True)
    moved = case.moved(decision.move.into, decision.move.because, context.now, actor=actor)
    return record_transition(
        moved, view, Notification(None, Facts(case.queue_arn, {}, {})), context, context.owner
    )


def _carried_out(case: Case, context: CaseContext, functions: Functions) -> Document:
    """What became of it; it stays approved where its owner could not do it now."""
    try:
        heard = ask_owner(context.clients, functions, case)
    except OwnerUnavailable as error:
        owner = owner_of_case(case.steps)
        reason = f"{error}; the case stays approved, and follow_up calls {owner} again by itself"
        return {**_of(case), "reason": reason}
    if heard.get("state") is not None:
        return dict(heard)
    newest = context.open_cases.transitions(case.case_id)[-1]
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
