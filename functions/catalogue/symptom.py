"""The shape of an entry of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from functions.healing.evidence import EvidenceNeeded
from functions.healing.facts import Facts, Need
from functions.healing.failed_call import FailedCall
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.steps import AttributeStep


@dataclass(frozen=True)
class SeenAs:
    """One way the symptom shows in CloudTrail; `says` reads the error message, untrusted."""

    event_names: frozenset[str]
    error_code: str
    says: Callable[[str], bool]

    def fits(self, call: FailedCall) -> bool:
        return (
            call.error_code == self.error_code
            and call.event_name in self.event_names
            and self.says(call.error_message)
        )


@dataclass(frozen=True)
class Caught:
    """An example that the entry must catch: a call, the queue's facts, the change to each value."""

    title: str
    call: FailedCall
    facts: Facts
    plan: tuple[AttributeStep, ...]


@dataclass(frozen=True)
class NearMiss:
    """An example that must not be touched.

    With a `call` the entry must not match it; with `facts` it must refuse with `code`.
    """

    title: str
    code: str
    call: FailedCall | None = None
    facts: Facts | None = None


@dataclass(frozen=True, eq=False)
class Symptom:
    """One thing that goes wrong with a queue, and what a careful engineer does about it."""

    name: str
    sentence: str
    plan_in_words: str
    aws_page: str
    seen_as: tuple[SeenAs, ...]
    needs: frozenset[Need]
    steps: tuple[type[AttributeStep], ...]
    plan: Callable[[Facts, Limits], Plan | Refusal]
    autonomy: Mode
    evidence: EvidenceNeeded = field(default_factory=EvidenceNeeded)
    caught: tuple[Caught, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()

    @property
    def runbook(self) -> str:
        return f"docs/runbooks/{self.name}.md"

    def matches(self, call: FailedCall) -> bool:
        return any(each.fits(call) for each in self.seen_as)
