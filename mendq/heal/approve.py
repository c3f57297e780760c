"""Approve, decline or close a case at an operator's request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

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
from mendq.cases.pins import Pins
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import Functions, Outcome, ask_owner
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
# What a person may say of a case; what is done by it is the word and a "d".
DECISIONS: Mapping[str, ManualTransition] = MappingProxyType(
    {"approve": lifecycle.APPROVE, "decline": lifecycle.DECLINE, "close": lifecycle.CLOSE}
)


class OperatorRequest(Struct, frozen=True):
    """`actor` is what the operator's side says of itself, cleaned; IAM alone says who may call."""

    case_id: str
    actor: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> OperatorRequest | Refusal:
        """The refusal of an event that names no case."""
        case_id, actor = event.get("case_id"), event.get("actor")
        if not isinstance(case_id, str) or not 0 < len(case_id) <= LONGEST_CASE_ID:
            return Ignore("bad_request", 'give "case_id", the id of a case, as a text')
        named = plain(actor) if isinstance(actor, str) else ""
        return cls(case_id, named or NOBODY)


class AskedCase(Struct, frozen=True):
    """A case that somebody asks about, as the case store knows it.

    `symptom` is None where its case is from a Mendq that knew more symptoms.
    """

    history: Sequence[Case]
    view: CaseStoreView
    symptom: Symptom | None

    @property
    def newest(self) -> Case:
        return self.history[-1]

    @property
    def unknown(self) -> Refusal:
        name = plain(self.newest.symptom)
        reason = f"this Mendq knows no symptom {name}: `mendq close` ends its case"
        return Ignore("unknown_symptom", reason)


def look_up(request: OperatorRequest, context: CaseContext) -> AskedCase | Refusal:
    """The case with all that its owner may be at work on."""
    history = context.open_cases.transitions(request.case_id)
    if not history:
        named = plain(request.case_id)
        return Ignore("not_found", f"there is no case {named}; `mendq cases` lists")
    newest = history[-1]
    if not context.is_here(newest.queue_arn):
        return Ignore("elsewhere", "the queue is in another account or region")
    symptom = BY_NAME.get(newest.symptom)
    attributes = {step["attribute"] for case in history for step in case.steps}
    attributes.update(symptom.attributes if symptom else ())
    view = context.case_store.look(newest.queue_arn, newest.symptom, sorted(attributes))
    return AskedCase(history, view, symptom)


def until_unmoved(once: Callable[[], Document | Refusal]) -> Document | Refusal:
    """Try again where another run came in between."""
    done: Document | Refusal = {}
    for _ in range(TRIES):
        try:
            done = once()
        except CaseMoved as moved:
            done = Retry("claimed", f"{moved}; ask again")
        if not isinstance(done, Refusal) or not done.again:
            break
    return done


_UNAVAILABLE = (
    *(BotoCoreError, ClientError, FactsUnavailable),
    *(CaseStoreUnavailable, NotificationNotSent, StepFailed),
)


def answered(
    event: Mapping[str, Any], act: Callable[[OperatorRequest], Document | Refusal]
) -> Document:
    """What the operator gets whose request the event is.

    It is never an exception for what AWS or a queue's owner says.
    """
    request = OperatorRequest.of(event)
    if isinstance(request, Refusal):
        return said(request)
    try:
        done = act(request)
    except QueueGone as gone:
        done = Ignore("queue_gone", f"there is no queue {gone} any more")
    except QueueRefusesUs as refusing:
        done = Ignore("queue_refuses_us", str(refusing))
    except CaseStoreUnreadable as unreadable:
        done = Ignore("case_store_unreadable", str(unreadable))
    except _UNAVAILABLE as error:
        reason = f"{error}; ask again in two minutes: what was begun is finished then"
        done = Ignore("unavailable", reason)
    return said(done) if isinstance(done, Refusal) else done


def said(refusal: Refusal) -> Document:
    """A refusal as the operator gets it."""
    return {"error": refusal.code, "reason": refusal.reason}


def decide(
    request: OperatorRequest, word: object, context: CaseContext, functions: Functions
) -> Document | Refusal:
    """`{"case_id", "state", "reason", "steps"}`, or why nothing was done.

    Approved again before it is carried out, its owner is called again. Raises CaseStoreUnavailable,
    CaseStoreUnreadable or the bucket's error.
    """
    if not isinstance(word, str) or word not in DECISIONS:
        return Ignore("bad_request", f'"decision" is one of {", ".join(DECISIONS)}')
    return until_unmoved(lambda: _once(request, word, context, functions))


def _once(
    request: OperatorRequest, word: str, context: CaseContext, functions: Functions
) -> Document | Refusal:
    asked = look_up(request, context)
    if isinstance(asked, Refusal):
        return asked
    if (answer := said_before(word, asked.history)) is not None:
        return answer
    move, case = DECISIONS[word], asked.newest
    if asked.symptom is None and word == "approve":
        return asked.unknown
    if asked.symptom is None and word == "close":
        # What ends a case of a symptom that nobody knows: nothing of the catalogue is asked.
        move = lifecycle.CLOSE_UNKNOWN
    if refusal := _refusal(case, word, move, context):
        return refusal
    if case.state is not move.into:
        if refusal := _claimed(asked, context):
            return refusal
        moved = case.moved(move.into, move.because, context.now, actor=request.actor)
        notification = Notification(None, Facts(case.queue_arn, {}, {}))
        case = record_transition(moved, asked.view, notification, context)
    approved = word == "approve"
    if approved and isinstance(source := case.evidence.get("source"), str):
        context.stored(Pins).approve_source(case.queue_arn, source)
    answer = _carried_out(case, context, functions) if approved else Outcome(case).document()
    return {**answer, "by": case.actor}


def said_before(word: str, history: Sequence[Case]) -> Document | None:
    """What came of a word that somebody has said already, and who; None while it is to be said.

    An approval that waits may be said again: its owner is called once more.
    """
    into, newest = DECISIONS[word].into, history[-1]
    said = next((each for each in history if each.state is into), None)
    if said is None or newest.state is State.APPROVED:
        return None
    return {**Outcome(newest).document(), "by": said.actor}


def _refusal(case: Case, word: str, move: ManualTransition, context: CaseContext) -> Refusal | None:
    is_again = word == "approve" and case.state is State.APPROVED
    if case.state not in move.out_of and not is_again:
        takes = f"to {word} takes a case that is {' or '.join(move.out_of)}"
        reason = f"case {case.case_id} is {case.state}; {takes}"
        return Ignore("wrong_state", reason)
    longest = longest_in(case.state, context.settings.timing)
    if word == "approve" and longest is not None and context.now >= case.at + longest:
        ended_at = f"{case.at + longest:%Y-%m-%d %H:%M} UTC"
        reason = f"the proposal of case {case.case_id} ran out at {ended_at}"
        return Ignore("expired", f"{reason}; Mendq proposes again when it is seen again")
    return None


def _claimed(asked: AskedCase, context: CaseContext) -> Refusal | None:
    """What is being written, or was and is not recorded, is no person's to end unseen.

    Where nobody knows the symptom any more, nobody settles it either.
    """
    view = asked.view
    unsettled = view.intent is not None and asked.symptom is not None
    if unsettled or view.held_by_another(context.owner, context.now):
        reason = "a run is at work on this queue, or died there; ask again in two minutes"
        return Retry("claimed", reason)
    if view.case is None or view.case.transition != asked.newest.transition:
        return Retry("claimed", "another run has just moved the case; ask again")
    return None


def _carried_out(case: Case, context: CaseContext, functions: Functions) -> Document:
    """What became of it; it stays approved where its owner could not do it now."""
    try:
        heard = ask_owner(context.clients, functions, case)
    except OwnerUnavailable as error:
        owner = owner_of_case(case.steps)
        reason = f"{error}; the case stays approved, and follow_up calls {owner} again by itself"
        return Outcome(case).document() | {"reason": reason}
    if heard.get("state") is not None:
        return dict(heard)
    newest = context.open_cases.transitions(case.case_id)[-1]
    why = {name: heard[name] for name in ("reason", "code") if name in heard}
    return Outcome(newest).document() | why
