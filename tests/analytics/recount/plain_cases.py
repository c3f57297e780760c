"""Cases, put together from the transitions that a case bucket holds."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

FINAL = frozenset({"observed", "refused", "declined", "expired", "closed", "rolled_back"})
GOOD = frozenset({"closed", "watching", "verified"})
APPLIED = frozenset({"applied", "unverified"})


@dataclass(frozen=True)
class Case:
    case_id: str
    transitions: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, transitions: list[dict[str, Any]]) -> Self:
        ordered = sorted(transitions, key=lambda transition: int(transition["n"]))
        return cls(ordered[0]["case_id"], tuple(ordered))

    @property
    def about(self) -> tuple[str, str]:
        """The queue's ARN and the symptom."""
        return self.transitions[0]["queue_arn"], self.transitions[0]["symptom"]

    @property
    def evidence(self) -> list[tuple[datetime, datetime]]:
        """The first and the last failed call of each transition."""
        found = [transition["evidence"] for transition in self.transitions]
        return [
            (parse_time(evidence["first_at"]), parse_time(evidence["last_at"]))
            for evidence in found
        ]

    @property
    def opened_at(self) -> datetime:
        return parse_time(self.transitions[0]["at"])

    @property
    def ended_at(self) -> datetime | None:
        """When it first came into a state that is final."""
        ends = [
            parse_time(transition["at"])
            for transition in self.transitions
            if transition["to"] in FINAL
        ]
        return min(ends, default=None)

    @property
    def is_notified(self) -> bool:
        return any(transition["notified"] for transition in self.transitions)

    @property
    def is_urgent(self) -> bool:
        return any(transition["urgent"] is True for transition in self.transitions)

    @property
    def is_opened_by_scan(self) -> bool:
        return bool(self.transitions[0]["evidence"]["failed_calls"] == 0)

    @property
    def states(self) -> list[str]:
        return [transition["to"] for transition in self.transitions]

    @property
    def outcome(self) -> str:
        """By the contract's table of outcomes; it leaves open what a good end with a page is.

        And what waits to be carried out: `approved` is verified after approval.
        """
        ended_in = self.states[-1]
        if ended_in == "approved":
            return "proposed"
        if ended_in not in GOOD:
            return "applied" if ended_in in APPLIED else ended_in
        if ("proposed", "approved") in zip(self.states, self.states[1:], strict=False):
            return "approved"
        if not self.is_notified:
            return "healed"
        reached = [state for state in self.states if state not in GOOD | APPLIED | {"approved"}]
        return reached[-1] if reached else "escalated"

    @property
    def seconds_to_heal(self) -> float | None:
        verified = [
            parse_time(transition["at"])
            for transition in self.transitions
            if transition["to"] == "verified"
        ]
        if not verified:
            return None
        return (verified[0] - self.evidence[0][0]).total_seconds()

    def overlaps(self, first: datetime, last: datetime) -> bool:
        return any(since <= last and first <= until for since, until in self.evidence)


def read_cases(root: Path) -> list[Case]:
    """Read `root/dt=YYYY-MM-DD/CASE_ID-N.json`, without files that are no JSON."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(root.glob("dt=????-??-??/*.json")):
        with suppress(ValueError):
            transition = json.loads(path.read_bytes())
            found.setdefault(transition["case_id"], []).append(transition)
    return [Case.of(case_transitions) for case_transitions in found.values()]


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
