"""Plans and refusals as the record holds them: by what they mean, whatever types they have."""

from __future__ import annotations

from typing import Any

from mendq.model.case import State
from mendq.model.plan import Plan, Refusal

_KINDS = {State.REFUSED: "refuse", State.ESCALATED: "escalate"}


def kind_of(refusal: Refusal) -> str:
    """What a refusal asks for: ignore, retry, refuse, escalate, or the state that it names."""
    if refusal.becomes is None:
        return "retry" if refusal.again else "ignore"
    return _KINDS.get(refusal.becomes, str(refusal.becomes))


def refusal_of(refusal: Refusal | None) -> dict[str, Any] | None:
    """A refusal; None where nothing was refused."""
    if refusal is None:
        return None
    return {
        "code": refusal.code,
        "kind": kind_of(refusal),
        "reason": refusal.reason,
        "next_command": refusal.next_command,
        "silent_in_observe": refusal.silent_in_observe,
    }


def answer_of(answer: Plan | Refusal) -> dict[str, Any]:
    """What the catalogue answers."""
    if isinstance(answer, Refusal):
        return {"refusal": refusal_of(answer)}
    return {
        "steps": [str(each) for each in answer.steps],
        "reason": answer.reason,
        "proposal": [str(each) for each in answer.proposal],
        "first": list(answer.first),
        "at_most": str(answer.at_most),
    }
