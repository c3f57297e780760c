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
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.outcome import Outcome
from mendq.heal.owners import FunctionNameByOwner, ask_owner
from mendq.model import other_transitions
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.other_transitions import OtherTransition
from mendq.model.plan import Ignore, Refusal, Retry, owner_of_case
from mendq.model.shared_default import select_members
from mendq.model.state import State
from mendq.notifications.commands import mendq_case_id_command
from mendq.notifications.text import to_plain_text, to_terminal_text

JsonDocument = dict[str, Any]
# The most tries of a request while other runs move the case at the same time.
MAXIMUM_TRIES = 3
MAXIMUM_CASE_ID_LENGTH = 200
UNNAMED_ACTOR = "an operator who gave no name"
# The decisions of an operator about a case, each with the transition that it causes.
TRANSITION_BY_DECISION: Mapping[str, OtherTransition] = MappingProxyType(
    {
        "approve": other_transitions.APPROVAL_TRANSITION,
        "decline": other_transitions.DECLINE_TRANSITION,
        "close": other_transitions.CLOSE_TRANSITION,
    }
)


class OperatorRequest(Struct, frozen=True):
    """An operator's request about one case.

    `actor` is the name that the caller states, cleaned by `to_terminal_text`. Mendq does not check
    the name, because IAM decides who may call.
    """

    case_id: str
    actor: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> OperatorRequest | Refusal:
        """Read the request from an event.

        Return a refusal if the case's id is missing, too long or not a text. If the event names no
        actor, `actor` is UNNAMED_ACTOR.
        """
        case_id = event.get("case_id")
        actor = event.get("actor")
        if not isinstance(case_id, str) or not 0 < len(case_id) <= MAXIMUM_CASE_ID_LENGTH:
            return Ignore("bad_request", 'give "case_id", the id of a case, as a text')
        actor_name = to_terminal_text(actor) if isinstance(actor, str) else ""
        return cls(case_id, actor_name or UNNAMED_ACTOR)


class RequestedCase(Struct, frozen=True):
    """The stored case that a request names.

    `history` has all transitions, the oldest first. `symptom` is None if another version of Mendq
    opened the case and this version does not know the symptom.
    """

    history: Sequence[Case]
    view: CaseStoreView
    symptom: Symptom | None

    @property
    def newest_transition(self) -> Case:
        """The newest transition of the case."""
        return self.history[-1]

    def refuse_unknown_symptom(self) -> Refusal:
        """Return the refusal for a case whose symptom this version of Mendq does not know."""
        symptom_name = to_plain_text(self.newest_transition.symptom)
        reason = f"this Mendq knows no symptom {symptom_name}: `mendq close` ends its case"
        return Ignore("unknown_symptom", reason)


def look_up_case(request: OperatorRequest, context: CaseContext) -> RequestedCase | Refusal:
    """Load the case that the request names.

    Return a refusal if there is no such case, or if its queue is in another account or region. The
    result's `view` has the records of all attributes that the case has changed or may change.
    """
    history = context.open_cases.list_transitions(request.case_id)
    if not history:
        case_id = to_plain_text(request.case_id)
        return Ignore("not_found", f"there is no case {case_id}; `mendq cases` lists")
    newest_transition = history[-1]
    if not context.is_here(newest_transition.queue_arn):
        return Ignore("elsewhere", "the queue is in another account or region")
    symptom = SYMPTOM_BY_NAME.get(newest_transition.symptom)
    attributes = {step["attribute"] for case in history for step in case.steps}
    attributes.update(symptom.attributes if symptom else ())
    view = context.case_store.look(
        newest_transition.queue_arn, newest_transition.symptom, sorted(attributes)
    )
    return RequestedCase(history, view, symptom)


def retry_if_moved(action: Callable[[], JsonDocument | Refusal]) -> JsonDocument | Refusal:
    """Call `action` up to MAXIMUM_TRIES times, and return its last answer.

    Call it again if it raises CaseMoved, or returns a refusal for which `is_retried` is True, such
    as another run's claim. If the last call raises CaseMoved, return a refusal with code `claimed`.
    """
    answer: JsonDocument | Refusal = {}
    for _ in range(MAXIMUM_TRIES):
        try:
            answer = action()
        except CaseMoved as error:
            answer = Retry("claimed", f"{error}; ask again")
        if not isinstance(answer, Refusal) or not answer.is_retried:
            break
    return answer


# Errors that may not happen again if the operator repeats the request later.
_TEMPORARY_ERRORS = (
    BotoCoreError,
    ClientError,
    FactsUnavailable,
    CaseStoreUnavailable,
    NotificationNotSent,
    StepFailed,
)


def answer_request(
    event: Mapping[str, Any], action: Callable[[OperatorRequest], JsonDocument | Refusal]
) -> JsonDocument:
    """Read the request, call `action`, and return the answer for the operator.

    No error is raised if AWS or the case store fails, the queue no longer exists, or its policy
    denies Mendq access. The answer then has the keys `error` and `reason`, like a refusal.
    """
    request = OperatorRequest.of(event)
    if isinstance(request, Refusal):
        return make_refusal_document(request)
    try:
        answer = action(request)
    except QueueGone as error:
        answer = Ignore("queue_gone", f"there is no queue {error} any more")
    except QueueRefusesUs as error:
        answer = Ignore("queue_refuses_us", str(error))
    except CaseStoreUnreadable as error:
        answer = Ignore("case_store_unreadable", str(error))
    except _TEMPORARY_ERRORS as error:
        reason = f"{error}; ask again in two minutes: what was begun is finished then"
        answer = Ignore("unavailable", reason)
    return make_refusal_document(answer) if isinstance(answer, Refusal) else answer


def make_refusal_document(refusal: Refusal) -> JsonDocument:
    """Return the refusal as the JSON object that the operator gets."""
    return {"error": refusal.code, "reason": refusal.reason}


def act_on_decision(
    request: OperatorRequest,
    decision: object,
    context: CaseContext,
    function_name_by_owner: FunctionNameByOwner,
) -> JsonDocument | Refusal:
    """Approve, decline or close the case, as the operator decided.

    Approving a case again that is approved and still waits calls its owner again, the Lambda that
    writes its next step.

    Args:
        request: The case, and the operator's name.
        decision: One of TRANSITION_BY_DECISION. Anything else is refused.
        context: This invocation.
        function_name_by_owner: The name of the Lambda function of each owner.

    Returns:
        `{"case_id", "state", "reason", "code", "steps", "by"}`, or the reason why nothing was done.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The case could not be read or moved.
    """
    if not isinstance(decision, str) or decision not in TRANSITION_BY_DECISION:
        return Ignore("bad_request", f'"decision" is one of {", ".join(TRANSITION_BY_DECISION)}')
    return retry_if_moved(
        lambda: _act_on_decision_once(request, decision, context, function_name_by_owner)
    )


def _act_on_decision_once(
    request: OperatorRequest,
    decision: str,
    context: CaseContext,
    function_name_by_owner: FunctionNameByOwner,
) -> JsonDocument | Refusal:
    requested_case = look_up_case(request, context)
    if isinstance(requested_case, Refusal):
        return requested_case
    earlier_answer = find_earlier_answer(decision, requested_case.history)
    if earlier_answer is not None:
        return earlier_answer
    transition = TRANSITION_BY_DECISION[decision]
    case = requested_case.newest_transition
    if requested_case.symptom is None and decision == "approve":
        return requested_case.refuse_unknown_symptom()
    if requested_case.symptom is None and decision == "close":
        # A case can be closed even if this version of Mendq does not know its symptom.
        transition = other_transitions.CLOSE_UNKNOWN_TRANSITION
    refusal = _refuse_if_state_forbids(case, decision, transition, context)
    if refusal is None and case.state is not transition.state_after:
        refusal = _refuse_if_claimed(requested_case.view, case, requested_case.symptom, context)
    if refusal is None and requested_case.symptom is not None:
        refusal = _decide_following_cases(
            case, transition, requested_case.symptom, request.actor, context
        )
    if refusal is not None:
        return refusal
    if case.state is not transition.state_after:
        moved_case = case.move_to(
            transition.state_after, transition.because, context.now, actor=request.actor
        )
        notification = Notification(None, Facts(case.queue_arn, {}, {}))
        case = record_transition(moved_case, requested_case.view, notification, context)
    if decision != "approve":
        return {**Outcome(case).document(), "by": case.actor}
    _approve_source(case, context)
    return {**_ask_owner_to_write(case, context, function_name_by_owner), "by": case.actor}


def _approve_source(case: Case, context: CaseContext) -> None:
    """Store that a person approved a DLQ's source, if the case's plan is for one."""
    source_arn = case.evidence.get("source")
    if isinstance(source_arn, str):
        context.open_store(Pins).approve_source(case.queue_arn, source_arn)


def _decide_following_cases(
    first_case: Case,
    transition: OtherTransition,
    symptom: Symptom,
    actor: str,
    context: CaseContext,
) -> Refusal | None:
    """Make the same decision about the cases that follow the first case of a shared default.

    They are moved before the first case. So if the run dies, nothing is written, and the request
    can be repeated. A case that ended meanwhile is skipped.

    Args:
        first_case: The case of the request.
        transition: The transition that the decision causes.
        symptom: The symptom of all cases.
        actor: The operator.
        context: This invocation.

    Returns:
        None if nothing forbids the decision about `first_case`. A refusal if `first_case` is not
        the first one and would be approved alone, or if a run works on a case that follows.

    Raises:
        CaseMoved: Another run has moved one of the cases meanwhile.
    """
    shared_default = first_case.shared_default
    if shared_default is None or transition is other_transitions.CLOSE_TRANSITION:
        return None
    if first_case.follows_first_case:
        if transition is other_transitions.DECLINE_TRANSITION:
            return None
        command = mendq_case_id_command(
            "approve", shared_default.first_case_id, first_case.queue_arn
        )
        reason = f"one approval is for all queues that share its setting: {command}"
        return Ignore("shared_default", reason)
    for queue_arn in shared_default.queue_arns[1:]:
        view = context.case_store.look(queue_arn, symptom.name, symptom.attributes)
        cases = [view.case] if view.case else []
        for case in select_members(cases, shared_default):
            refusal = _refuse_if_claimed(view, case, symptom, context)
            if refusal is not None:
                return refusal
            _decide_following_case(case, view, transition, actor, context)
    return None


def _decide_following_case(
    case: Case,
    view: CaseStoreView,
    transition: OtherTransition,
    actor: str,
    context: CaseContext,
) -> None:
    """Move one case as the first case of its shared default, unless its state does not allow it."""
    if case.state not in transition.states_before:
        return
    moved_case = case.move_to(transition.state_after, transition.because, context.now, actor=actor)
    notification = Notification(None, Facts(case.queue_arn, {}, {}))
    recorded_case = record_transition(moved_case, view, notification, context)
    if transition is other_transitions.APPROVAL_TRANSITION:
        _approve_source(recorded_case, context)


def find_earlier_answer(decision: str, history: Sequence[Case]) -> JsonDocument | None:
    """Return the answer for an operator if the case has already been in the target state.

    The target state is the one to which the decision moves a case. The answer has the case's newest
    state; `by` is the operator or Lambda that first moved the case to the target state.

    Return None if the case was never in that state. Return None also if the case is approved and
    still waits: its owner, the Lambda that writes its next step, must then be called again.
    """
    target_state = TRANSITION_BY_DECISION[decision].state_after
    newest_transition = history[-1]
    earlier_transition = next((case for case in history if case.state is target_state), None)
    if earlier_transition is None or newest_transition.state is State.APPROVED:
        return None
    return {**Outcome(newest_transition).document(), "by": earlier_transition.actor}


def _refuse_if_state_forbids(
    case: Case, decision: str, transition: OtherTransition, context: CaseContext
) -> Refusal | None:
    """Return a refusal if the case's state, or its time limit, does not allow the decision.

    Only an approval can be too late. Approving an approved case again is allowed until then.
    """
    is_repeated_approval = decision == "approve" and case.state is State.APPROVED
    if case.state not in transition.states_before and not is_repeated_approval:
        allowed_states_text = (
            f"to {decision} takes a case that is {' or '.join(transition.states_before)}"
        )
        reason = f"case {case.case_id} is {case.state}; {allowed_states_text}"
        return Ignore("wrong_state", reason)
    longest_stay_in_state = case.find_time_limit(context.settings.timing)
    if (
        decision == "approve"
        and longest_stay_in_state is not None
        and context.now >= case.at + longest_stay_in_state
    ):
        expiry_text = f"{case.at + longest_stay_in_state:%Y-%m-%d %H:%M} UTC"
        reason = f"the proposal of case {case.case_id} ran out at {expiry_text}"
        return Ignore("expired", f"{reason}; Mendq proposes again when it is seen again")
    return None


def _refuse_if_claimed(
    view: CaseStoreView, case: Case, symptom: Symptom | None, context: CaseContext
) -> Refusal | None:
    """Return a refusal if another run works on the case or has just moved it.

    Return a refusal also if a dead run's write is not recorded yet. Ignore such a write if this
    version of Mendq does not know the symptom, because no run can record it then.
    """
    has_unrecorded_write = view.intent is not None and symptom is not None
    if has_unrecorded_write or view.is_held_by_another(context.owner, context.now):
        reason = "a run is at work on this queue, or died there; ask again in two minutes"
        return Retry("claimed", reason)
    if view.case is None or view.case.transition != case.transition:
        return Retry("claimed", "another run has just moved the case; ask again")
    return None


def _ask_owner_to_write(
    case: Case, context: CaseContext, function_name_by_owner: FunctionNameByOwner
) -> JsonDocument:
    """Ask the Lambda that owns the step to write it, and return the case's outcome as JSON.

    If the Lambda cannot be called now, the case stays approved. If the Lambda writes nothing, the
    result has the case's newest state and the Lambda's reason.
    """
    try:
        answer = ask_owner(context.clients, function_name_by_owner, case)
    except OwnerUnavailable as error:
        owner = owner_of_case(case.steps)
        reason = f"{error}; the case stays approved, and follow_up calls {owner} again by itself"
        return Outcome(case).document() | {"reason": reason}
    if answer.get("state") is not None:
        return dict(answer)
    newest_transition = context.open_cases.list_transitions(case.case_id)[-1]
    refusal_fields = {name: answer[name] for name in ("reason", "code") if name in answer}
    return Outcome(newest_transition).document() | refusal_fields
