"""`mendq approve | decline | close CASE`: a person's word on a case.

The approve Lambda decides again from what the queue says now; this command only carries the word.
"""

from __future__ import annotations

from typing import Any

from mendq.cli.commands import INVOKE, SHOWN, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import STYLES, may_be_said_of, require_whole_id
from mendq.cli.look.show import CaseId, look, print_head, print_plan
from mendq.cli.output import Yes, confirm
from mendq.heal.approve import DECISIONS, find_earlier_answer
from mendq.model.case import Case, State
from mendq.model.lifecycle import HAS_WRITTEN

_QUESTION = {
    "approve": "Make this change?",
    "decline": "Decline this change?",
    "close": "Close this case?",
}
# What the word was meant to lead to, or led to when it was said before; anything else was not done.
# Approved is done as well: the word is recorded, and the change comes by itself.
_MEANT = {word: frozenset({move.into}) for word, move in DECISIONS.items()}
_MEANT["approve"] |= {*HAS_WRITTEN} - {State.INEFFECTIVE, State.ESCALATED}
# Where the owner of the write was not heard: follow_up calls it again.
_OWNER_NOT_HEARD = "owner_unavailable"
_NO_STATE = "that is no state that this version knows: use the mendq that is deployed"
_NOT_DONE = "that is not what was asked for: nothing was changed by this command"


@command(1, Kind.STEERING, SHOWN | {INVOKE})
def approve(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """Make a proposed change, if it is still the right one.

    Exits with 0 once the approval is recorded: where the change has to wait, such as for a thaw,
    the state is `approved` and `waits` says for what. Said again it tells what became of it.

    Examples:
      mendq approve orders             # shows the change and asks
      mendq approve orders --profile production
    """
    return _decide(call, "approve", case_id, yes=yes)


@command(1, Kind.STEERING, SHOWN | {INVOKE})
def decline(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """Turn a proposed or approved change down.

    Examples:
      mendq decline orders
      mendq decline orders --region eu-west-1
    """
    return _decide(call, "decline", case_id, yes=yes)


@command(1, Kind.STEERING, SHOWN | {INVOKE})
def close(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """End a case that waits for a person: escalated or overridden.

    Examples:
      mendq close orders
      mendq close orders --profile production
    """
    return _decide(call, "close", case_id, yes=yes)


def _decide(call: Invocation, decision: str, case_id: str, *, yes: bool) -> Exit:
    with call.out.show_waiting("reading the case and its queue"):
        whole = look(call, case_id)
    require_whole_id(whole.case, case_id, yes=yes)
    if (answer := find_earlier_answer(decision, whole.transitions)) is not None:
        return _announced(call, decision, answer)
    _require_state(decision, whole.case)
    print_head(call.out, whole)
    print_plan(call.out, whole)
    confirm(_QUESTION[decision], yes=yes)
    event = {"case_id": whole.case.case_id, "decision": decision, "actor": call.account.identity}
    with call.out.show_waiting(f"{decision}: the Lambda looks at the queue again"):
        answer = call.account.invoke("ApproveFunction", event)
    return _announced(call, decision, answer)


def _require_state(decision: str, case: Case) -> None:
    """Raise CommandError before anybody is asked; what is approved may be approved again,
    and is hurried.
    """
    states = may_be_said_of(decision, case)
    if case.state in states or (states and decision == "approve" and case.state is State.APPROVED):
        return
    takes = f"it takes a case that is {' or '.join(states)}" if states else "its symptom is unknown"
    line = f"not done: {case.case_id} is {case.state}, so there is nothing to {decision}: {takes}"
    raise CommandError(line, error_code="wrong_state")


def _announced(call: Invocation, decision: str, answer: dict[str, Any]) -> Exit:
    if "error" in answer:
        code = Exit.NOT_FOUND if answer["error"] == "not_found" else Exit.FAILED
        word = str(answer["error"])
        raise CommandError(f"not done: {answer.get('reason') or word}", code, word)
    said = answer.get("state")
    state = next((each for each in State if each == said), None)
    if state is State.APPROVED:
        answer = {**answer, "waits": answer.get("code") or _OWNER_NOT_HEARD}
    call.out.print_json(answer)
    call.out.say_heading("Now")
    call.out.say(f"{answer.get('case_id')} is {said}", STYLES.get(state or State.OBSERVED, ""))
    call.out.say(f"because {answer.get('reason', '')}", "dim")
    if "by" in answer:
        call.out.say(f"{decision}d by {answer['by']}", "dim")
    if state is State.APPROVED:
        waits = "recorded; the change waits, is tried again every few minutes, or the case expires"
        call.out.say(waits, "yellow")
    if state in _MEANT[decision]:
        return Exit.DONE
    call.out.say(_NOT_DONE if state else _NO_STATE, "red")
    return Exit.FAILED
