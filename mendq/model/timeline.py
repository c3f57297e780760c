"""The timeline of a case: its states and other events, each with the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from mendq.model.case import Case, State
from mendq.model.lifecycle import failures_count_from
from mendq.model.limits import Timing

# A timeline of more points keeps the first FIRST_POINTS, and the last ones.
MOST_POINTS = 12
FIRST_POINTS = 4


@dataclass(frozen=True)
class TimelinePoint:
    """Something that happened in a case: a state or another word of `docs/states.md`."""

    what: str
    at: datetime
    says: str = ""

    @property
    def words(self) -> str:
        """The point in words, for people."""
        return self.what.replace("_", " ")


def build_timeline(
    transitions: Sequence[Case], timing: Timing | None = None, *, is_whole: bool = False
) -> list[TimelinePoint]:
    """Return what happened in a case, the earliest point first.

    Args:
        transitions: Transitions of the case, in order. Some may be missing.
        timing: The account's waiting times. With it, the result has a point `propagated`: the time
            from which failed calls count against a change. This point is left out if it is later
            than the next transition.
        is_whole: True to return every transition. Otherwise repeated states are one point, and of
            more than MOST_POINTS points those in the middle are left out.
    """
    points = [*_opening_points(transitions[0])]
    before: Case | None = None
    for transition in transitions:
        if before is not None and before.state is State.APPLIED and timing is not None:
            arrived_at = failures_count_from(before, timing)
            if arrived_at <= transition.at:
                points.append(TimelinePoint("propagated", arrived_at))
        if is_whole or before is None or before.state is not transition.state:
            values = _written_values(transition)
            points.append(TimelinePoint(str(transition.state), transition.at, values))
        before = transition
    points.sort(key=lambda point: point.at)
    if is_whole or len(points) <= MOST_POINTS:
        return points
    last_points = MOST_POINTS - FIRST_POINTS
    return points[:FIRST_POINTS] + points[-last_points:]


def _opening_points(first: Case) -> Iterator[TimelinePoint]:
    """Yield the points before the first state: when calls failed, or when a scan found the fault.

    If the transition that opened the case is missing, yield only the first failure or finding, and
    the time when the case opened.
    """
    failed_calls = first.evidence.get("failed_calls")
    is_opening = first.n == 1
    if first_at := first.evidence.get("first_at"):
        what = "first_failure" if failed_calls else "found_by_scan"
        yield TimelinePoint(what, datetime.fromisoformat(first_at))
    last_at = first.evidence.get("last_at")
    if last_at and failed_calls and failed_calls > 1 and is_opening:
        says = f"{failed_calls} failed calls"
        yield TimelinePoint("evidence_complete", datetime.fromisoformat(last_at), says)
    if first.opened_at and not is_opening:
        yield TimelinePoint("opened", first.opened_at)


def _written_values(case: Case) -> str:
    """Return the numbers that a transition wrote into the queue. Policies are left out."""
    if case.state is not State.APPLIED and not case.is_rollback:
        return ""
    values = []
    for step in case.steps:
        name, before, after = (str(step.get(key)) for key in ("attribute", "before", "after"))
        if after.isdigit():
            values.append(f"{name} {before} -> {after}")
    return ", ".join(values)
