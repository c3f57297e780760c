"""`mendq approve | decline | close CASE`: a person's word on a case.

The approve Lambda decides again from what the queue says now; this command only carries the word.
"""

from __future__ import annotations

from typing import Any

from cli.asking import Yes, confirm
from cli.case_view import STYLES
from cli.commands.show import CaseId, look, print_head, print_plan
from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from functions.healing.states import State

_QUESTION = {
    "approve": "Make this change?",
    "decline": "Decline this change?",
    "close": "Close this case?",
}
# What the word was meant to lead to; anything else was not done.
_MEANT = {
    "approve": frozenset({State.APPLIED}),
    "decline": frozenset({State.DECLINED}),
    "close": frozenset({State.CLOSED}),
}


@with_invocation
def approve(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """Make a proposed change, if it is still the right one."""
    return _decide(call, "approve", case_id, yes=yes)


@with_invocation
def decline(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """Turn a proposed or approved change down."""
    return _decide(call, "decline", case_id, yes=yes)


@with_invocation
def close(call: Invocation, case_id: CaseId, yes: Yes = False) -> Exit:
    """End a case that waits for a person: escalated or contested."""
    return _decide(call, "close", case_id, yes=yes)


def _decide(call: Invocation, decision: str, case_id: str, *, yes: bool) -> Exit:
    with call.out.waiting("reading the case and its queue"):
        whole = look(call, case_id)
    print_head(call.out, whole)
    print_plan(call.out, whole)
    confirm(_QUESTION[decision], yes=yes)
    event = {"case_id": case_id, "decision": decision, "actor": call.account.identity}
    with call.out.waiting(f"{decision}: the Lambda looks at the queue again"):
        answer = call.account.invoke("ApproveFunction", event)
    return _told(call, decision, answer)


def _told(call: Invocation, decision: str, answer: dict[str, Any]) -> Exit:
    if "error" in answer:
        code = Exit.NOT_FOUND if answer["error"] == "not_found" else Exit.FAILED
        word = str(answer["error"])
        raise Stopped(f"not done: {answer.get('reason') or word}", code, word)
    call.out.document(answer)
    said = answer.get("state")
    state = next((each for each in State if each == said), None)
    call.out.heading("Now")
    call.out.say(f"{answer.get('case_id')} is {said}", STYLES.get(state, "") if state else "")
    call.out.say(f"because {answer.get('reason', '')}", "dim")
    if state in _MEANT[decision]:
        return Exit.DONE
    call.out.say(_not_done(decision, state), "yellow" if state is State.APPROVED else "red")
    return Exit.FAILED


def _not_done(decision: str, state: State | None) -> str:
    if state is None:
        return "that is no state that this version knows: use the mendq that is deployed"
    if decision == "approve" and state is State.APPROVED:
        return "approved; the change comes within minutes, or the case expires"
    return "that is not what was asked for: nothing was changed by this command"
