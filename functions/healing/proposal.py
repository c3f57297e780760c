"""A plan beside all that may speak against it, for the guardrails that are asked last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.healing.ledger_view import LedgerView
from functions.healing.limits import Limits, Timing
from functions.healing.plan import Plan


@dataclass(frozen=True)
class Proposal:
    """A plan, beside all that may speak against it; one without steps would only page.

    `queues_with_symptom` counts the managed queues that showed it within the hour, this one among
    them; `managed_queues` all of them, and need not be known while the former are few.
    """

    plan: Plan
    view: LedgerView
    limits: Limits
    timing: Timing
    now: datetime
    remaining_seconds: float
    queues_with_symptom: int = 1
    managed_queues: int = 0
    is_drill: bool = False

    def most_written_since(self, age: timedelta) -> tuple[int, str]:
        """How often the attribute that was written most was written, and which one that is."""
        attributes = (step.attribute for step in self.plan.steps)
        written = ((self.written_since(each, age), each) for each in attributes)
        return max(written, default=(0, ""))

    def written_since(self, attribute: str, age: timedelta) -> int:
        writes = self.view.record_of(attribute).writes
        return sum(self.now - write.at < age for write in writes)
