"""One invocation of heal, a group of its batch, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from functions.aws.case_bucket import CaseBucket
from functions.aws.clients import Clients
from functions.aws.ledger import Ledger
from functions.aws.managed_queues import count_managed
from functions.catalogue.symptom import Symptom
from functions.healing.case import Case
from functions.healing.failed_call import FailedCall
from functions.healing.guardrails import Home
from functions.healing.managed import Consent
from functions.healing.plan import Refusal
from functions.settings import HealSettings


@dataclass(frozen=True, eq=False)
class Group:
    """The failed calls of one batch that point to one symptom of one queue."""

    queue_arn: str
    symptom: Symptom
    calls: tuple[FailedCall, ...]

    @property
    def attribute(self) -> str:
        return self.symptom.steps[0].attribute


@dataclass(frozen=True)
class Run:
    """One invocation: what it works with, who it is, and how long it has."""

    clients: Clients
    settings: HealSettings
    owner: str
    now: datetime
    remaining_seconds: Callable[[], float]

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def case_bucket(self) -> CaseBucket:
        return CaseBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def home(self) -> Home:
        return Home(self.settings.account, self.clients.region, self.settings.own_roles)

    @property
    def consent(self) -> Consent:
        return Consent(self.settings.mode, self.settings.tag_may_raise_to, self.settings.queues)

    @cached_property
    def managed_queues(self) -> int:
        """How many there are; asked once an invocation, and only when many show a symptom."""
        return count_managed(self.clients, self.consent.queues)


@dataclass(frozen=True)
class Outcome:
    """What became of a group: a case's new transition, or why there is none.

    `look_again`: other runs have brought the rest of the evidence while this one looked.
    """

    case: Case | None = None
    refusal: Refusal | None = None
    look_again: bool = False


def declined(code: str, reason: str, *, again: bool = False) -> Outcome:
    """An outcome that nothing is written down for."""
    return Outcome(refusal=Refusal(code, reason, becomes=None, again=again))
