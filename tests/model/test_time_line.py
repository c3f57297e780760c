"""Test the points of a case's timeline, and the points left out because their time is unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mendq.model.case import Case
from mendq.model.limits import Timing
from mendq.model.state import State
from mendq.model.time_text import format_time
from mendq.model.timeline import MAXIMUM_TIMELINE_POINTS, build_timeline
from tests.model.builders import NOW, make_case

TIMING = Timing()
BEFORE = ["first_failure", "evidence_complete"]
# 60 s until the change has propagated, plus the longer of the visibility timeouts.
PROPAGATED_AT = NOW + timedelta(seconds=105)


def make_transitions(*states: tuple[State, timedelta]) -> list[Case]:
    """Make an applied fix that reaches each state at this time after the write."""
    transitions = [make_case(State.APPLIED)]
    for state, later in states:
        transitions.append(transitions[-1].move_to(state, "because", NOW + later))
    return transitions


def name_points(transitions: list[Case], timing: Timing | None = TIMING) -> list[str]:
    return [point.what for point in build_timeline(transitions, timing)]


VERIFIED_FIX = make_transitions((State.VERIFIED, timedelta(hours=1)))


@pytest.mark.parametrize(
    ("transitions", "points"),
    [
        pytest.param(make_transitions(), [*BEFORE, "applied"], id="not propagated yet"),
        pytest.param(
            make_transitions((State.ESCALATED, timedelta(seconds=104))),
            [*BEFORE, "applied", "escalated"],
            id="escalated before the change propagated",
        ),
    ],
)
def test_timeline_has_no_propagation_point_before_the_change_has_propagated(
    transitions: list[Case], points: list[str]
) -> None:
    assert name_points(transitions) == points


@pytest.mark.parametrize(
    ("transitions", "points"),
    [
        pytest.param(
            VERIFIED_FIX[1:], ["first_failure", "opened", "verified"], id="applied is not read"
        ),
        pytest.param(
            [replace(VERIFIED_FIX[1], opened_at=None)],
            ["first_failure", "verified"],
            id="opening time unknown",
        ),
        pytest.param(
            [replace(VERIFIED_FIX[0], evidence={"failed_calls": 0})],
            ["applied"],
            id="no failed call",
        ),
    ],
)
def test_timeline_leaves_out_points_whose_time_is_unknown(
    transitions: list[Case], points: list[str]
) -> None:
    assert name_points(transitions) == points


def test_timeline_leaves_out_when_a_change_propagated_if_the_waiting_times_are_unknown() -> None:
    assert name_points(VERIFIED_FIX, None) == [*BEFORE, "applied", "verified"]


def test_timeline_has_one_point_per_event_with_its_figures_and_time() -> None:
    points = build_timeline(make_transitions((State.VERIFIED, timedelta(hours=1))), TIMING)
    assert [(point.words, point.details) for point in points] == [
        ("first failure", ""),
        ("evidence complete", "3 failed calls"),
        ("applied", "VisibilityTimeout 30 -> 45"),
        ("propagated", ""),
        ("verified", ""),
    ]
    seconds = [(point.at - NOW).total_seconds() for point in points]
    assert seconds == [-3, -1, 0, (PROPAGATED_AT - NOW).total_seconds(), 3_600]


def test_timeline_of_a_case_found_by_a_scan_begins_with_the_scan() -> None:
    at = format_time(datetime(2026, 11, 16, 9, tzinfo=NOW.tzinfo))
    found = replace(make_case(State.PROPOSED), evidence={"failed_calls": 0, "first_at": at})
    assert name_points([found]) == ["found_by_scan", "proposed"]


LONG_CASE = make_transitions(
    *[
        (state, timedelta(days=day))
        for day, state in enumerate((State.INEFFECTIVE, State.APPLIED) * 10, 1)
    ]
)


def test_timeline_of_a_long_case_keeps_the_first_and_last_points() -> None:
    points = build_timeline(LONG_CASE, None)
    assert len(points) == MAXIMUM_TIMELINE_POINTS
    assert [point.what for point in points[:4]] == [*BEFORE, "applied", "ineffective"]
    assert points[-1].at == LONG_CASE[-1].at


def test_whole_timeline_of_a_long_case_has_a_point_for_every_transition() -> None:
    points = build_timeline(LONG_CASE, is_whole=True)
    assert [point.at for point in points[2:]] == [transition.at for transition in LONG_CASE]
