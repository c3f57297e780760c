"""A case: the life of one (queue, symptom), and what the ledger knows beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from functions.healing.evidence import Evidence, to_text
from functions.healing.limits import Timing
from functions.healing.states import FINAL, State
from functions.healing.steps import AttributeStep

SCHEMA = 1
SILENT_DAYS = 7


@dataclass(frozen=True)
class Case:
    """The newest transition of a case, as the ledger keeps it; `steps` are step documents."""

    case_id: str
    n: int
    at: datetime
    came_from: State | None
    state: State
    queue_arn: str
    symptom: str
    reason: str
    evidence: Mapping[str, Any]
    steps: tuple[Mapping[str, str], ...]
    actor: str
    paged: bool = False

    def document(self) -> dict[str, Any]:
        """The transition as the case bucket holds it."""
        _, _, _, region, account, _ = self.queue_arn.split(":")
        return {
            "schema": SCHEMA,
            "case_id": self.case_id,
            "n": self.n,
            "at": to_text(self.at),
            "from": self.came_from,
            "to": self.state,
            "queue_arn": self.queue_arn,
            "account": account,
            "region": region,
            "symptom": self.symptom,
            "reason": self.reason,
            "evidence": dict(self.evidence),
            "steps": [dict(step) for step in self.steps],
            "paged": self.paged,
            "actor": self.actor,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Case:
        """Raise KeyError or ValueError where `document` is none of ours."""
        came_from = document["from"]
        return cls(
            case_id=document["case_id"],
            n=int(document["n"]),
            at=datetime.fromisoformat(document["at"]),
            came_from=State(came_from) if came_from else None,
            state=State(document["to"]),
            queue_arn=document["queue_arn"],
            symptom=document["symptom"],
            reason=document["reason"],
            evidence=document["evidence"],
            steps=tuple(document["steps"]),
            actor=document["actor"],
            paged=document["paged"],
        )

    def key(self) -> str:
        """Its place in the case bucket: writing it twice changes nothing."""
        return f"cases/dt={self.at:%Y-%m-%d}/{self.case_id}-{self.n}.json"

    def is_open(self, now: datetime, timing: Timing) -> bool:
        """Whether it still speaks for its queue: no state is kept for ever by silence."""
        return self.state not in FINAL and now < self.at + _patience(self.state, timing)

    def says_the_same(self, other: Case) -> bool:
        """Whether `other` would only repeat it."""
        return (self.state, self.reason, self.steps) == (other.state, other.reason, other.steps)


def opened(  # noqa: PLR0913 - each is one column of the transition
    state: State,
    *,
    queue_arn: str,
    symptom: str,
    reason: str,
    evidence: Evidence,
    steps: tuple[AttributeStep, ...],
    now: datetime,
    actor: str,
) -> Case:
    """The first transition of a new case, named after the first event that spoke for it."""
    first = evidence.sightings[0].event_id
    digest = sha256(f"{queue_arn} {symptom} {first} {state} {reason}".encode()).hexdigest()
    return Case(
        case_id=f"{symptom}-{digest[:12]}",
        n=1,
        at=now,
        came_from=None,
        state=state,
        queue_arn=queue_arn,
        symptom=symptom,
        reason=reason,
        evidence=evidence.document(),
        steps=tuple(step.document() for step in steps),
        actor=actor,
    )


def _patience(state: State, timing: Timing) -> timedelta:
    if state is State.PROPOSED:
        return timedelta(hours=timing.proposal_hours)
    if state in (State.ESCALATED, State.CONTESTED):
        return timedelta(days=SILENT_DAYS)
    return timedelta(hours=timing.watch_hours)
