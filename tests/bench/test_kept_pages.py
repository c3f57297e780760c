"""The pages that the bench wrote into docs/: figures of one machine and one day, in one shape."""

from __future__ import annotations

import pytest

from bench import cost_page
from bench.goals import GOALS
from bench.rounds import ROOT
from tests.bench.markdown import tables_of


@pytest.mark.parametrize("name", ["performance.md", "cost.md"])
def test_the_pages_in_docs_are_of_this_shape(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    if name == "cost.md":
        assert page.count(cost_page.BEGIN) == page.count(cost_page.END) == 1
        page = page.partition(cost_page.BEGIN)[2].partition(cost_page.END)[0]
    tables = tables_of(page)
    assert tables
    assert {len({len(row) for row in table}) for table in tables} == {1}
    if name == "performance.md":
        assert [row[:2] for row in tables[0][2:]] == [[each.text, each.bound] for each in GOALS]
    else:
        assert tables[0][0] == list(cost_page.HEADINGS)
