"""What no week shows: words for everything that a nightly run can say, and sums of any week."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import recommendations
from mendq.model.case import State
from mendq.nightly.verdict import Verdict
from mendq.report.not_seen import FAR_FEWER, NOTHING_READ
from mendq.report.outcomes import OUTCOMES
from mendq.report.summary import FIXED
from mendq.report.tables import LEVELS, STATES, level
from mendq.report.tiles import against
from mendq.report.to_do import _WHAT, WHY
from mendq.report.verdict import headline, others
from mendq.report.words import plain
from tests.report.weeks import summary


def test_there_are_words_for_whatever_a_case_or_the_nightly_job_says() -> None:
    states = {*map(str, State)}
    proved = {"unverified", "verified", "watching", "closed"}
    assert {*OUTCOMES, *FIXED} == (states - proved) | {"healed", "not_seen"}
    assert states <= set(STATES)
    assert {FAR_FEWER, NOTHING_READ} <= set(Verdict)
    asked = {*recommendations._ASKS.values(), recommendations.WRITE_INTO_TEMPLATE, "watch"}
    assert asked | {recommendations.FIX_CALLER, recommendations.NAME_CODE} == set(_WHAT)
    kinds = recommendations._ASKS.items()
    whys = {"applied" if kind == "watch" else str(state) for state, kind in kinds}
    assert whys | {"applied", "unknown_code", "count_only"} == set(WHY)


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(sorted({*OUTCOMES, *FIXED, "a_word"})), st.integers(0, 3_000), min_size=1
    ),
    st.integers(0, 9_000),
)
def test_whatever_the_outcomes_the_clauses_sum_to_the_incidents(
    by_outcome: dict[str, int], notified: int
) -> None:
    incidents = sum(by_outcome.values())
    totals = {"failed_calls": 1, "queues": 1, "incidents": incidents}
    totals |= {"healed": by_outcome.get("healed", 0), "notified": min(notified, incidents)}
    week = summary(by_outcome=by_outcome, totals=totals)
    said = plain(others(week)).partition(";")[0].partition(": ")[2].rstrip(".")
    clauses = [int(each.split(" ")[0].replace(",", "")) for each in said.split(", ") if each]
    assert sum(clauses) + _healed_of(headline(week), incidents) == incidents


def _healed_of(said: str, incidents: int) -> int:
    """How many the headline calls healed."""
    words = said.partition(", ")[2].rstrip(".")
    if number := re.match(r"([\d,]+) healed", words):
        return int(number[1].replace(",", ""))
    return incidents if re.match(r"(healed|both healed|all healed)\b", words) else 0


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (5, [], ("level", "no whole week before it to compare with")),
        (5, [5], ("level", "equal to the 5 of the one earlier week")),
        (5, [3], ("rise", "2 above the 3 of the one earlier week")),
        (5, [20, 21], ("fall", "15.5 below the 2-week median of 20.5")),
        (29, [1, 20, 22, 900], ("rise", "8 above the 4-week median of 21")),
        (1_029, [0, 0, 0], ("rise", "1,029 above the 3-week median of 0")),
    ],
)
def test_a_figure_stands_against_the_median(
    now: int, before: list[int], change: tuple[str, str]
) -> None:
    assert against(now, before) == change


def test_a_cell_is_the_darker_the_more_it_holds() -> None:
    levels = [level(count, 1_000) for count in (0, 1, 10, 100, 1_000)]
    assert levels == sorted(levels)
    assert (levels[0], levels[1], levels[-1]) == (0, 1, LEVELS)
    assert [level(count, 1) for count in (0, 1)] == [0, LEVELS]
