"""The outcome of a run for one queue."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mendq.model.case import Case
from mendq.model.plan import Ignore, Refusal
from mendq.model.state import State


class Outcome(Struct, frozen=True):
    """The result of a run for one queue.

    `case` is the new transition of the queue's case, or None if none was recorded. `refusal` is the
    reason why nothing was written, or why a restored policy was escalated; None if there is no such
    reason. Both are None if the queue is healthy.
    """

    case: Case | None = None
    refusal: Refusal | None = None

    @property
    def is_escalation(self) -> bool:
        """True if the case's new transition asks people for help."""
        return self.case is not None and self.case.state is State.ESCALATED

    def document(self) -> dict[str, Any]:
        """Return the outcome as a JSON object for the calling operator or Lambda."""
        case, refusal = self.case, self.refusal
        return {
            "case_id": case.case_id if case else None,
            "state": str(case.state) if case else None,
            "reason": case.reason if case else refusal.reason if refusal else "",
            "code": refusal.code if refusal else "",
            "steps": list(case.steps) if case else [],
        }


def make_declined_outcome(code: str, reason: str) -> Outcome:
    """Return the outcome of a declined group or request, about which nothing is recorded."""
    return Outcome(refusal=Ignore(code, reason))
