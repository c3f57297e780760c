"""Which run of which owner is this, and what came of one queue in it?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from mendq.aws.clients import closed_calendars
from mendq.aws.queue import managed_queues
from mendq.cases.context import WritingContext
from mendq.model.case import Case, State
from mendq.model.limits import Mode
from mendq.model.plan import Ignore, Refusal
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner


class FixContext(WritingContext, frozen=True, kw_only=True, dict=True):
    """One invocation of a Lambda that owns a write. `whose` is that Lambda: it writes its steps."""

    settings: OwnerSettings
    whose: Owner

    @cached_property
    def closed_calendars(self) -> str | None:
        """The reason if a change calendar freezes changes, else None. Read once per invocation."""
        return closed_calendars(self.clients, self.settings.freeze_calendars)

    @cached_property
    def managed_modes(self) -> Mapping[str, Mode]:
        """The mode of each managed queue by ARN. Listed once per invocation, and only if needed."""
        queues = managed_queues(self.clients, self.settings.account, self.settings.consent)
        return {queue.queue_arn: queue.mode for queue in queues}


class Outcome(Struct, frozen=True):
    """The outcome for one queue: the case's new transition, or the reason why there is none."""

    case: Case | None = None
    refusal: Refusal | None = None

    @property
    def escalated(self) -> bool:
        """True if the case's new transition pages people."""
        return self.case is not None and self.case.state is State.ESCALATED

    def document(self) -> dict[str, Any]:
        """The answer to a caller who asked to continue a case."""
        case, refusal = self.case, self.refusal
        return {
            "case_id": case.case_id if case else None,
            "state": str(case.state) if case else None,
            "reason": case.reason if case else refusal.reason if refusal else "",
            "code": refusal.code if refusal else "",
            "steps": list(case.steps) if case else [],
        }


def declined_outcome(code: str, reason: str) -> Outcome:
    """Return an outcome for which nothing is recorded."""
    return Outcome(refusal=Ignore(code, reason))
