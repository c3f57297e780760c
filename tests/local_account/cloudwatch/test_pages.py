"""GetMetricData's pages: every point once, in order, however small they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_account.cloudwatch.pages import MOST_QUERIES, BadRequest, Page

POINTS = st.lists(st.integers(0, 9), max_size=5)


def _results(series: list[list[int]]) -> list[dict[str, Any]]:
    return [
        {"Id": f"m{n}", "Timestamps": values, "Values": values, "StatusCode": "Complete"}
        for n, values in enumerate(series)
    ]


@given(st.lists(POINTS, max_size=5), st.integers(1, 7))
def test_the_pages_together_are_the_whole(series: list[list[int]], most: int) -> None:
    token, got = "", dict[str, list[int]]()
    while True:
        page = Page.asked({"NextToken": token, "MaxDatapoints": most}).of(_results(series))
        assert sum(len(each["Values"]) for each in page["MetricDataResults"]) <= most
        for each in page["MetricDataResults"]:
            assert each["Timestamps"] == each["Values"]
            got.setdefault(each["Id"], []).extend(each["Values"])
            whole = got[each["Id"]] == series[int(each["Id"][1:])]
            assert each["StatusCode"] == ("Complete" if whole else "PartialData")
        if "NextToken" not in page:
            break
        token = page["NextToken"]
    assert got == {f"m{n}": values for n, values in enumerate(series)}


def test_more_queries_than_one_call_may_hold_are_refused() -> None:
    Page.asked({"MetricDataQueries": [{}] * MOST_QUERIES})
    with pytest.raises(BadRequest):
        Page.asked({"MetricDataQueries": [{}] * (MOST_QUERIES + 1)})


def test_a_token_of_nobody_is_refused() -> None:
    with pytest.raises(BadRequest):
        Page.asked({"NextToken": "-1"})
