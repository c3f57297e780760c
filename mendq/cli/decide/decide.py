"""`mendq approve | decline | close CASE`: send a person's decision on a case to the approve Lambda.

The Lambda reads the queue again and decides if the change is still right. The command itself
changes nothing.
"""

from __future__ import annotations

from typing import Any

from mendq.cli.commands import INVOKE_LAMBDA_ACTION, SHOW_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import STYLE_BY_STATE, list_states_for_decision, require_whole_id
from mendq.cli.look.show import CaseId, print_case_head, print_plan, read_case_details
from mendq.cli.output import YesOption, confirm
from mendq.heal.approve import TRANSITION_BY_DECISION, find_earlier_answer
from mendq.model.case import Case
from mendq.model.lifecycle import STATES_WITH_WRITTEN_VALUE
from mendq.model.state import State

_QUESTION_BY_DECISION = {
    "approve": "Make this change?",
    "decline": "Decline this change?",
    "close": "Close this case?",
}
# States of the case that mean success, by decision: the state that the decision leads to. An
# approval also succeeds if the change follows later (APPROVED), or if the change was made and
# did not turn out to need a person (INEFFECTIVE, ESCALATED).
_SUCCESS_STATES_BY_DECISION = {
    decision: frozenset({transition.state_after})
    for decision, transition in TRANSITION_BY_DECISION.items()
}
_SUCCESS_STATES_BY_DECISION["approve"] |= {*STATES_WITH_WRITTEN_VALUE} - {
    State.INEFFECTIVE,
    State.ESCALATED,
}
# Printed as `waits` if the Lambda that makes the change did not answer. follow_up invokes it again.
_OWNER_UNAVAILABLE_CODE = "owner_unavailable"
_UNKNOWN_STATE_TEXT = "that is no state that this version knows: use the mendq that is deployed"
_DECISION_NOT_CARRIED_OUT_TEXT = (
    "that is not what was asked for: nothing was changed by this command"
)


@command(1, CommandKind.STEERING, SHOW_ACTIONS | {INVOKE_LAMBDA_ACTION})
def approve(call: Invocation, case_id: CaseId, yes: YesOption = False) -> Exit:
    """Make a proposed change, if it is still the right one.

    Exits with 0 once the approval is recorded. If the change must wait, such as for a thaw, the
    state is `approved` and `waits` says for what. Run it again to see the outcome.

    Examples:
      mendq approve orders             # shows the change and asks
      mendq approve orders --profile production
    """
    return _send_decision(call, "approve", case_id, yes=yes)


@command(1, CommandKind.STEERING, SHOW_ACTIONS | {INVOKE_LAMBDA_ACTION})
def decline(call: Invocation, case_id: CaseId, yes: YesOption = False) -> Exit:
    """Decline a proposed or approved change.

    Examples:
      mendq decline orders
      mendq decline orders --region eu-west-1
    """
    return _send_decision(call, "decline", case_id, yes=yes)


@command(1, CommandKind.STEERING, SHOW_ACTIONS | {INVOKE_LAMBDA_ACTION})
def close(call: Invocation, case_id: CaseId, yes: YesOption = False) -> Exit:
    """End a case that waits for a person: escalated or overridden.

    Examples:
      mendq close orders
      mendq close orders --profile production
    """
    return _send_decision(call, "close", case_id, yes=yes)


def _send_decision(call: Invocation, decision: str, case_id: str, *, yes: bool) -> Exit:
    """Show the case, ask the operator, and send the decision unless it was given earlier.

    Raises CommandError if the case's state does not allow the decision, if it is refused, or if the
    stack is scan-only.
    """
    call.account.require_whole_stack(decision)
    with call.out.show_waiting("reading the case and its queue"):
        case_details = read_case_details(call, case_id)
    require_whole_id(case_details.case, case_id, yes=yes)
    if (answer := find_earlier_answer(decision, case_details.transitions)) is not None:
        return _report_answer(call, decision, answer)
    _require_allowed_state(decision, case_details.case)
    print_case_head(call.out, case_details)
    print_plan(call.out, case_details)
    confirm(_QUESTION_BY_DECISION[decision], yes=yes)
    event = {
        "case_id": case_details.case.case_id,
        "decision": decision,
        "actor": call.account.identity,
    }
    with call.out.show_waiting(f"{decision}: the Lambda looks at the queue again"):
        answer = call.account.invoke("ApproveFunction", event)
    return _report_answer(call, decision, answer)


def _require_allowed_state(decision: str, case: Case) -> None:
    """Raise CommandError if the case's state does not allow the decision.

    An approved case may be approved again, which makes the change happen sooner.
    """
    allowed_states = list_states_for_decision(decision, case)
    if case.state in allowed_states or (
        allowed_states and decision == "approve" and case.state is State.APPROVED
    ):
        return
    reason = "its symptom is unknown"
    if allowed_states:
        reason = f"it takes a case that is {' or '.join(allowed_states)}"
    problem = f"not done: {case.case_id} is {case.state}, so there is nothing to {decision}"
    raise CommandError(f"{problem}: {reason}", error_code="wrong_state")


def _report_answer(call: Invocation, decision: str, lambda_answer: dict[str, Any]) -> Exit:
    """Print the Lambda's answer and return the exit code. Raises CommandError if it is an error."""
    if "error" in lambda_answer:
        exit_code = Exit.NOT_FOUND if lambda_answer["error"] == "not_found" else Exit.FAILED
        error_code = str(lambda_answer["error"])
        raise CommandError(
            f"not done: {lambda_answer.get('reason') or error_code}", exit_code, error_code
        )
    state_text = lambda_answer.get("state")
    # None if this version does not know the state.
    state = next((known_state for known_state in State if known_state == state_text), None)
    if state is State.APPROVED:
        lambda_answer = {
            **lambda_answer,
            "waits": lambda_answer.get("code") or _OWNER_UNAVAILABLE_CODE,
        }
    call.out.print_json(lambda_answer)
    call.out.say_heading("Now")
    call.out.say(
        f"{lambda_answer.get('case_id')} is {state_text}",
        STYLE_BY_STATE.get(state or State.OBSERVED, ""),
    )
    call.out.say(f"because {lambda_answer.get('reason', '')}", "dim")
    if "by" in lambda_answer:
        call.out.say(f"{decision}d by {lambda_answer['by']}", "dim")
    if state is State.APPROVED:
        waiting_change_text = (
            "recorded; the change waits, is tried again every few minutes, or the case expires"
        )
        call.out.say(waiting_change_text, "yellow")
    if state in _SUCCESS_STATES_BY_DECISION[decision]:
        return Exit.DONE
    call.out.say(_DECISION_NOT_CARRIED_OUT_TEXT if state else _UNKNOWN_STATE_TEXT, "red")
    return Exit.FAILED
