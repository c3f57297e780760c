"""What a time line shows of a case, and what it leaves out because nobody knows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mendq.model.case import Case
from mendq.model.limits import Timing
from mendq.model.state import State
from mendq.model.time_text import format_time
from mendq.model.timeline import MAXIMUM_TIMELINE_POINTS, build_timeline
from tests.model.builders import NOW, make_case

TIMING = Timing()
BEFORE = ["first_failure", "evidence_complete"]
# Propagation of 60 s, and the longer of the visibility timeouts.
ARRIVED = NOW + timedelta(seconds=105)


def went(*after: tuple[State, timedelta]) -> list[Case]:
    """A fix that was applied at once, and what came so long after it."""
    moved = [make_case(State.APPLIED)]
    for state, later in after:
        moved.append(moved[-1].move_to(state, "because", NOW + later))
    return moved


def what(transitions: list[Case], timing: Timing | None = TIMING) -> list[str]:
    return [each.what for each in build_timeline(transitions, timing)]


def test_what_is_not_known_is_left_out() -> None:
    verified = went((State.VERIFIED, timedelta(hours=1)))
    assert what(verified, None) == [*BEFORE, "applied", "verified"], "nobody says when it arrived"
    assert what(went()) == [*BEFORE, "applied"], "it is to arrive"
    early = went((State.ESCALATED, timedelta(seconds=104)))
    assert "propagated" not in what(early), "it came to nothing before"
    assert what(verified[1:]) == ["first_failure", "opened", "verified"]
    assert what([replace(verified[1], opened_at=None)]) == ["first_failure", "verified"]
    nothing = replace(verified[0], evidence={"failed_calls": 0})
    assert what([nothing]) == ["applied"]


def test_each_thing_that_happened_is_a_point_with_its_numbers() -> None:
    points = build_timeline(went((State.VERIFIED, timedelta(hours=1))), TIMING)
    assert [(each.words, each.says) for each in points] == [
        ("first failure", ""),
        ("evidence complete", "3 failed calls"),
        ("applied", "VisibilityTimeout 30 -> 45"),
        ("propagated", ""),
        ("verified", ""),
    ]
    seconds = [(each.at - NOW).total_seconds() for each in points]
    assert seconds == [-3, -1, 0, (ARRIVED - NOW).total_seconds(), 3_600]


def test_what_a_scan_found_failed_no_call() -> None:
    at = format_time(datetime(2026, 11, 16, 9, tzinfo=NOW.tzinfo))
    found = replace(make_case(State.PROPOSED), evidence={"failed_calls": 0, "first_at": at})
    assert what([found]) == ["found_by_scan", "proposed"]


def test_a_long_life_keeps_its_beginning_and_its_end() -> None:
    states = (State.INEFFECTIVE, State.APPLIED) * 10
    lived = [*went(*((each, timedelta(days=n)) for n, each in enumerate(states, 1)))]
    points = build_timeline(lived, None)
    assert len(points) == MAXIMUM_TIMELINE_POINTS
    assert [each.what for each in points[:4]] == [*BEFORE, "applied", "ineffective"]
    assert points[-1].at == lived[-1].at
    assert [it.at for it in build_timeline(lived, is_whole=True)[2:]] == [it.at for it in lived]
