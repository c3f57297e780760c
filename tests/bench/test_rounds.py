from __future__ import annotations

import pytest

from bench.rounds import Cost, Way, interleaved, middle, paired_ratio, process_cost


def _wall(cost: Cost) -> float:
    return cost.wall_ms


def test_ways_take_turns_and_the_first_round_is_dropped() -> None:
    order: list[str] = []

    def go(name: str) -> Cost:
        order.append(name)
        return Cost(wall_ms=len(order), cpu_ms=0)

    ways = (Way("a", lambda: go("a")), Way("b", lambda: go("b")))
    costs = interleaved(ways, 2, lambda _: None)
    assert order == ["a", "b"] * 3
    assert {name: [each.wall_ms for each in found] for name, found in costs.items()} == {
        "a": [3, 5],
        "b": [4, 6],
    }


def test_a_ratio_is_taken_within_each_round() -> None:
    """A machine that was ten times slower in one round changes no ratio."""
    a, floor = ([Cost(each, 0) for each in walls] for walls in ([2, 40, 6], [1, 20, 3]))
    assert paired_ratio(a, floor, _wall) == 2
    assert middle(a, _wall) == 6


def test_a_process_that_fails_is_no_measure() -> None:
    with pytest.raises(RuntimeError, match=r"bench\.nothing ended with 1"):
        process_cost("bench.nothing", environment={})


def test_a_process_costs_time() -> None:
    cost = process_cost("bench.rounds", environment={})
    assert cost.wall_ms > 0
    assert cost.cpu_ms > 0
