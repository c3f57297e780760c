"""What the bench makes of costs: rounds, goals, and the pages in docs/."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bench import pages
from bench.pages import GOALS, Goal, Part
from bench.rounds import Cost, Measure, Way, measured, process_cost, sampled, take
from tests.bench.markdown import tables_of


def _measure(name: str, **walls: list[float]) -> Measure:
    costs = {way: [Cost(each, each, peak_mb=each) for each in some] for way, some in walls.items()}
    return Measure(name, f"About {name}", next(iter(walls)), costs)


def test_ways_take_turns_and_the_first_round_is_dropped() -> None:
    order: list[str] = []

    def go(name: str) -> Cost:
        order.append(name)
        return Cost(wall_ms=len(order), cpu_ms=0)

    ways = (Way("a", lambda: go("a")), Way("b", lambda: go("b")))
    found = take(Console(file=io.StringIO()), "m", "M", ways, 2, floor=1)
    assert order == ["a", "b"] * 3
    walls = {name: [each.wall_ms for each in costs] for name, costs in found.costs.items()}
    assert (walls, found.floor) == ({"a": [3, 5], "b": [4, 6]}, "b")


def test_a_ratio_is_taken_within_each_round() -> None:
    """A machine that was ten times slower in one round changes no ratio."""
    found = _measure("m", floor=[1, 20, 3], a=[2, 40, 6])
    assert (found.ratio("a", "wall_ms"), found.middle("a", "wall_ms")) == (2, 6)
    assert found.ratio("a", "aws_calls") == 0


def test_a_process_that_fails_is_no_measure_and_what_a_grandchild_uses_counts() -> None:
    with pytest.raises(RuntimeError, match=r"bench\.nothing ended with 1"):
        process_cost(["-m", "bench.nothing"], {})
    busy = "import time; began = time.process_time()\nwhile time.process_time() < began + 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    for cost in (
        process_cost(["-c", code], {}),
        measured(lambda: subprocess.run([sys.executable, "-c", code], check=True)),
    ):
        assert min(cost.cpu_ms, cost.wall_ms) >= 300
    with subprocess.Popen([sys.executable, "-c", code]) as process, sampled(process.pid) as peak:
        process.wait()
    assert peak["bytes"] > 1e6


AGAINST = Goal("g", "ingest", "ours", against="limit", at_most=1.4, stretch=1.2)
FASTER = Goal("g", "ingest", "limit", against="ours", at_least=3)
ALONE = Goal("g", "ingest", "ours", of="peak_mb", at_most=2_500, unit=" MB")


@pytest.mark.parametrize(
    ("goal", "ours", "limit", "row"),
    [
        (AGAINST, 119, 100, ("≤ 1.4 x, stretch 1.2 x", "1.19 x", "met, stretch too")),
        (AGAINST, 139, 100, ("≤ 1.4 x, stretch 1.2 x", "1.39 x", "met")),
        (AGAINST, 141, 100, ("≤ 1.4 x, stretch 1.2 x", "1.41 x", "missed")),
        (FASTER, 100, 299, ("≥ 3 x", "2.99 x", "missed")),
        (FASTER, 100, 301, ("≥ 3 x", "3.01 x", "met")),
        (ALONE, 2_600, 1, ("≤ 2,500 MB", "2,600 MB", "missed")),
    ],
)
def test_a_goal_is_against_another_way_or_by_itself(
    goal: Goal, ours: float, limit: float, row: tuple[str, ...]
) -> None:
    found = {"ingest": _measure("ingest", ours=[ours], limit=[limit])}
    assert goal.row(found)[1:] == row
    one_side = _measure("ingest", limit=[1]) if goal is not FASTER else _measure("ingest", ours=[1])
    for nothing in ({}, {"ingest": one_side}):
        assert goal.found(nothing) is None, "none is met unmeasured"


def _nightly(**more: Measure) -> Part:
    ingest = Measure("ingest", "Ingest", "limit", {})
    ingest.costs.update({"limit": [Cost(500, 5)], "native reader": [Cost(900, 9)]})
    return Part("2026-11-22T01:00Z", "make bench", "2 cores", {"ingest": ingest, **more})


def test_what_is_retained_comes_back_and_another_schema_is_nothing(tmp_path: Path) -> None:
    parts, path = {"nightly": _nightly()}, tmp_path / "bench" / "measures.json"
    pages.keep(parts, path)
    assert pages.read(path) == parts
    path.write_text('{"schema": 1, "cold": {}}')
    assert pages.read(path) == pages.read(tmp_path / "missing.json") == {}


def test_every_goal_and_every_measure_is_on_the_page() -> None:
    page = pages.performance({"nightly": _nightly(), "handler": _nightly()})
    goals, *measures = tables_of(page)
    assert [row[0] for row in goals[2:]] == [each.text for each in GOALS]
    assert [table[2][0] for table in measures] == ["limit"] * 2
    assert {len({len(row) for row in table}) for table in tables_of(page)} == {1}
    assert "native reader | 900 ms | 1.80" in page
    assert "Taken 2026-11-22T01:00Z by `make bench` on 2 cores." in page
    assert "{" not in page
    assert "Not measured." in pages.performance({"nightly": _nightly()})
