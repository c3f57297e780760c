"""The timeline of a case: its states and other events, each with the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from mendq.model.case import Case
from mendq.model.lifecycle import find_start_of_counted_failures
from mendq.model.limits import Timing
from mendq.model.state import State

# The most points of a timeline. A longer timeline keeps its first FIRST_TIMELINE_POINTS_KEPT points
# and its last ones.
MAXIMUM_TIMELINE_POINTS = 12
FIRST_TIMELINE_POINTS_KEPT = 4


@dataclass(frozen=True)
class TimelinePoint:
    """An event in a case, and its time.

    Attributes:
        what: The name of a state, or of another event in `docs/states.md`.
        at: The time.
        details: Further details for people, such as the written values; may be empty.
    """

    what: str
    at: datetime
    details: str = ""

    @property
    def words(self) -> str:
        """The name of the event with spaces in place of underscores, for people."""
        return self.what.replace("_", " ")


def build_timeline(
    transitions: Sequence[Case], timing: Timing | None = None, *, is_whole: bool = False
) -> list[TimelinePoint]:
    """Return the timeline of a case, with the earliest point first.

    Args:
        transitions: Transitions of the case, in order; at least one. Some may be missing.
        timing: The account's waiting times. If given, the result has points `propagated`: the times
            from which failed calls count against a change. Such a point is left out if it is later
            than the next transition, or if there is no next transition.
        is_whole: True to return every transition. If False, a state that follows itself gives one
            point, and the middle is left out if there are more than MAXIMUM_TIMELINE_POINTS points.
    """
    timeline_points = [*_list_opening_points(transitions[0])]
    previous_transition: Case | None = None
    for transition in transitions:
        if (
            previous_transition is not None
            and previous_transition.state is State.APPLIED
            and timing is not None
        ):
            propagated_at = find_start_of_counted_failures(previous_transition, timing)
            if propagated_at <= transition.at:
                timeline_points.append(TimelinePoint("propagated", propagated_at))
        if (
            is_whole
            or previous_transition is None
            or previous_transition.state is not transition.state
        ):
            written_values = _describe_written_values(transition)
            timeline_points.append(
                TimelinePoint(str(transition.state), transition.at, written_values)
            )
        previous_transition = transition
    timeline_points.sort(key=lambda point: point.at)
    if is_whole or len(timeline_points) <= MAXIMUM_TIMELINE_POINTS:
        return timeline_points
    points_kept_at_end = MAXIMUM_TIMELINE_POINTS - FIRST_TIMELINE_POINTS_KEPT
    return timeline_points[:FIRST_TIMELINE_POINTS_KEPT] + timeline_points[-points_kept_at_end:]


def _list_opening_points(first_transition: Case) -> Iterator[TimelinePoint]:
    """Yield the points before the first state: when calls failed, or when a scan found the fault.

    If the transition that opened the case is missing, yield the first failure or finding, and the
    time at which the case opened.
    """
    failed_calls = first_transition.evidence.get("failed_calls")
    is_opening_transition = first_transition.n == 1
    if first_at := first_transition.evidence.get("first_at"):
        point_name = "first_failure" if failed_calls else "found_by_scan"
        yield TimelinePoint(point_name, datetime.fromisoformat(first_at))
    last_at = first_transition.evidence.get("last_at")
    if last_at and failed_calls and failed_calls > 1 and is_opening_transition:
        count_text = f"{failed_calls} failed calls"
        yield TimelinePoint("evidence_complete", datetime.fromisoformat(last_at), count_text)
    if first_transition.opened_at and not is_opening_transition:
        yield TimelinePoint("opened", first_transition.opened_at)


def _describe_written_values(case: Case) -> str:
    """Return the numbers that a transition wrote to the queue, as text for people.

    Policies are left out. Return an empty text if the transition wrote nothing.
    """
    if case.state is not State.APPLIED and not case.is_rollback:
        return ""
    value_texts = []
    for step in case.steps:
        attribute, before, after = (str(step.get(key)) for key in ("attribute", "before", "after"))
        if after.isdigit():
            value_texts.append(f"{attribute} {before} -> {after}")
    return ", ".join(value_texts)
