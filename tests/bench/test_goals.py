"""What was asked for beside what was measured."""

from __future__ import annotations

import pytest

from bench.goals import GOALS, Goal
from bench.rounds import Cost, Measure, peak, wall


def _measure(**walls: float) -> Measure:
    costs = {name: [Cost(each, 0, peak_mb=each)] for name, each in walls.items()}
    return Measure("ingest", "Ingest", "limit", costs)


@pytest.mark.parametrize(
    ("ours", "verdict"), [(119, "met, stretch too"), (139, "met"), (141, "missed")]
)
def test_a_goal_against_another_way(ours: float, verdict: str) -> None:
    goal = Goal("g", "ingest", "ours", wall, against="limit", at_most=1.4, stretch=1.2)
    found = goal.found({"ingest": _measure(ours=ours, limit=100)})
    assert found == pytest.approx(ours / 100)
    assert goal.verdict(found or 0) == verdict


@pytest.mark.parametrize(("theirs", "verdict"), [(299, "missed"), (301, "met")])
def test_to_be_faster_than_somebody(theirs: float, verdict: str) -> None:
    goal = Goal("g", "ingest", "theirs", wall, against="ours", at_least=3)
    found = goal.found({"ingest": _measure(ours=100, theirs=theirs)})
    assert goal.verdict(found or 0) == verdict


def test_a_goal_by_itself_has_its_unit() -> None:
    goal = Goal("g", "ingest", "ours", peak, at_most=2_500, unit=" MB")
    assert goal.found({"ingest": _measure(ours=2_600)}) == 2_600
    assert (goal.bound, goal.worded(2_600), goal.verdict(2_600)) == (
        "≤ 2,500 MB",
        "2,600 MB",
        "missed",
    )


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    goal = Goal("g", "ingest", "ours", wall, against="limit", at_most=1.4)
    assert goal.found({}) is None
    assert goal.found({"ingest": _measure(limit=1)}) is None
    assert goal.found({"ingest": _measure(ours=1)}) is None


def test_every_goal_has_one_bound() -> None:
    assert [each for each in GOALS if (each.at_most is None) == (each.at_least is None)] == []
