"""The bench's pages in docs/: every goal and every measure stands there."""

from __future__ import annotations

from bench import pages
from bench.pages import GOALS, PartMeasures
from bench.rounds import Cost, Measure
from tests.bench.markdown import read_tables


def _nightly(**more: Measure) -> PartMeasures:
    ingest = Measure("ingest", "Ingest", "limit", {})
    ingest.costs.update({"limit": [Cost(500, 5)], "native reader": [Cost(900, 9)]})
    return PartMeasures("2026-11-22T01:00Z", "2 cores", {"ingest": ingest, **more})


def test_performance_page_says_that_a_part_without_measures_was_not_measured() -> None:
    assert "Not measured." in pages.make_performance_page({"nightly": _nightly()})


def test_performance_page_lists_every_goal_and_every_measure_with_its_ratio() -> None:
    page = pages.make_performance_page({"nightly": _nightly(), "handler": _nightly()})
    goals, *measures = read_tables(page)
    assert [row[0] for row in goals[2:]] == [goal.text for goal in GOALS]
    assert [table[2][0] for table in measures] == ["limit"] * 2
    for table in read_tables(page):
        assert len({len(row) for row in table}) == 1
    assert "native reader | 900 ms | 1.80" in page
    assert "Taken 2026-11-22T01:00Z by `make bench` on 2 cores." in page
    assert "{" not in page
    assert "Not measured." not in page
