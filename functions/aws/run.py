"""One invocation of a Lambda that owns a write, a group of heal's batch, what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from functions.aws.desk import WritingDesk
from functions.aws.freeze import closed_calendars
from functions.aws.managed_queues import managed_queues
from functions.catalogue.symptom import Symptom
from functions.healing.case import Case
from functions.healing.failed_call import FailedCall
from functions.healing.guardrails import FEW_QUEUES, Home
from functions.healing.managed import Consent
from functions.healing.plan import Refusal
from functions.healing.pulse import PulseSource
from functions.healing.queue_names import partition_of
from functions.healing.spread import Reach
from functions.healing.steps import Owner
from functions.healing.sweeping import Shared
from functions.settings import HealSettings, OwnerSettings


@dataclass(frozen=True, eq=False)
class Group:
    """The failed calls of one batch that point to one symptom of one queue.

    Without any where it is a sweep that points there: `is_found`, for those it is `shared` with.
    """

    queue_arn: str
    symptom: Symptom
    calls: tuple[FailedCall, ...] = ()
    is_found: bool = False
    shared: Shared = field(default_factory=Shared)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that a fix of it may write."""
        return tuple(step.attribute for step in self.symptom.steps)


@dataclass(frozen=True)
class OwnerRun(WritingDesk):
    """One invocation of a Lambda that owns a write: whose steps it takes, and how."""

    settings: OwnerSettings
    whose: Owner

    @property
    def consent(self) -> Consent:
        return self.settings.consent

    @cached_property
    def closed_calendars(self) -> str | None:
        """Why a change calendar freezes changes, or None; asked once an invocation."""
        return closed_calendars(self.clients, self.settings.freeze_calendars)

    @cached_property
    def _managed_arns(self) -> frozenset[str]:
        """Asked once an invocation, and only when many show a symptom."""
        found = managed_queues(self.clients, self.settings.account, self.consent)
        return frozenset(each.queue_arn for each in found)

    def reach(self, spread: frozenset[str], now_seen: Iterable[str]) -> Reach:
        """How far a symptom has spread; `now_seen` are managed, whatever a listing says yet."""
        if len(spread) <= FEW_QUEUES:
            return Reach(spread)
        return Reach.among(spread, self._managed_arns.union(now_seen))


@dataclass(frozen=True)
class Run(OwnerRun):
    """One invocation of heal."""

    settings: HealSettings

    @property
    def home(self) -> Home:
        account, region = self.settings.account, self.clients.region
        roles = f"arn:{partition_of(region)}:iam::{account}:role"
        return Home(account, region, tuple(f"{roles}/{each}" for each in self.settings.own_roles))

    @property
    def pulse_source(self) -> PulseSource:
        return PulseSource.at(self.settings.account, self.clients.region, self.settings.pulse_role)


@dataclass(frozen=True)
class Outcome:
    """What became of a group: a case's new transition, or why there is none.

    `look_again`: other runs have brought the rest of the evidence while this one looked.
    """

    case: Case | None = None
    refusal: Refusal | None = None
    look_again: bool = False

    def document(self) -> dict[str, Any]:
        """What whoever called with a case is answered."""
        case, refusal = self.case, self.refusal
        return {
            "case_id": case.case_id if case else None,
            "state": str(case.state) if case else None,
            "reason": case.reason if case else refusal.reason if refusal else "",
            "code": refusal.code if refusal else "",
            "steps": list(case.steps) if case else [],
        }


def declined(code: str, reason: str, *, again: bool = False) -> Outcome:
    """An outcome that nothing is written down for."""
    return Outcome(refusal=Refusal(code, reason, becomes=None, again=again))
