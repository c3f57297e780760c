"""Cases that wait for people: gauges, so that an alarm lasts as long as its cause."""

from __future__ import annotations

from constructs import Construct

from infra.alarms.description import OPEN_CASES, AlarmDescription
from infra.alarms.watching import A_MINUTE, AS_BEFORE, Firing, Ringing, own, watch
from mendq.model.case import Severity
from mendq.model.names import OwnMetric

ESCALATED = AlarmDescription(
    "escalated_cases_open",
    "a case is escalated, and for as long as one is",
    "A queue is broken in a way that Mendq cannot or may not fix. Each case has had a page of its "
    "own; this ends when the last of them does.",
    OPEN_CASES,
    "cases_escalated",
    Severity.URGENT,
)
PROPOSED = AlarmDescription(
    "proposed_cases_open",
    "a proposal waits for a person, and for as long as one does",
    "Mendq knows a change that would help and may not make it by itself. Where nobody approves it "
    "in time it expires.",
    OPEN_CASES,
    "proposals_waiting",
    Severity.INFO,
)
ANNOUNCED = (ESCALATED, PROPOSED)


class OpenCases(Construct):
    """A follow-up that is silent ends no case: what it said last still holds."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.alarms = (
            self._gauge(ESCALATED, OwnMetric.ESCALATED_CASES_OPEN),
            self._gauge(PROPOSED, OwnMetric.PROPOSED_CASES_OPEN),
        )

    def _gauge(self, announced: AlarmDescription, metric: OwnMetric) -> Ringing:
        return watch(self, announced, own(metric, "Maximum", A_MINUTE), Firing(1, AS_BEFORE))
