"""What no week shows: words for everything that a nightly run can say, and properties of any
week.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics import recommendations
from mendq.catalogue import CATALOGUE
from mendq.model.case import State
from mendq.nightly.verdict import FALLBACK, Verdict
from mendq.report.days import per_day
from mendq.report.drawing import LIGHT
from mendq.report.not_seen import FAR_FEWER, NOTHING_READ, SLOWER
from mendq.report.outcomes import HABITS, OUTCOMES
from mendq.report.read_summary import read
from mendq.report.summary import FIXED
from mendq.report.tables import LEVELS, STATES, level
from mendq.report.tiles import Change, against
from mendq.report.times import times
from mendq.report.to_do import _WHAT, WHY
from mendq.report.verdict import headline, others, verdict_text
from mendq.report.words import plain
from tests.report import week_parts
from tests.report.hostile import hostile_weeks
from tests.report.weeks import incident, summary


def test_the_words_are_the_outcomes_of_the_nightly() -> None:
    states = {*map(str, State)} - {"unverified", "verified", "watching", "closed"}
    assert {*OUTCOMES, *FIXED} == states | {"healed", "not_seen"}


_WORDS = {*OUTCOMES, *FIXED, "a_word"}


@given(
    st.dictionaries(st.sampled_from(sorted(_WORDS)), st.integers(0, 3_000), min_size=1),
    st.integers(0, 9_000),
)
def test_whatever_the_outcomes_the_clauses_sum_to_the_incidents(
    by_outcome: dict[str, int], notified: int
) -> None:
    incidents = sum(by_outcome.values())
    healed = by_outcome.get("healed", 0)
    totals = {"failed_calls": 1, "queues": 1, "incidents": incidents, "healed": healed}
    totals["notified"] = min(notified, incidents)
    week = summary(by_outcome=by_outcome, totals=totals)
    said = plain(others(week)).partition(";")[0].partition(": ")[2].rstrip(".")
    clauses = [int(each.split(" ")[0].replace(",", "")) for each in said.split(", ") if each]
    assert sum(clauses) + _healed_of(headline(week), incidents) == incidents


def _healed_of(said: str, incidents: int) -> int:
    """How many the headline calls healed."""
    words = said.partition(", ")[2].rstrip(".")
    number = re.match(r"([\d,]+) healed", words)
    if number:
        return int(number[1].replace(",", ""))
    return incidents if re.match(r"(healed|both healed|all healed)\b", words) else 0


@given(hostile_weeks())
def test_whatever_the_names_say_the_text_is_a_few_plain_lines(document: dict[str, Any]) -> None:
    text = verdict_text(read(document))
    lines = text.split("\n")
    assert len(lines) <= 9
    assert all(line.isprintable() and line for line in lines)
    assert "://" not in text
    assert len(text.encode()) < 8_000


def test_the_words_are_the_nightly_s_own() -> None:
    assert SLOWER == FALLBACK
    assert {FAR_FEWER, NOTHING_READ} <= set(Verdict)


def test_habits_are_those_of_symptoms() -> None:
    assert set(HABITS) <= {each.name for each in CATALOGUE}


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (5, [], Change("level", "no whole week before it to compare with")),
        (5, [5], Change("level", "equal to the 5 of the one earlier week")),
        (5, [3], Change("rise", "2 above the 3 of the one earlier week")),
        (5, [4, 6], Change("level", "equal to the 2-week median of 5")),
        (5, [20, 21], Change("fall", "15.5 below the 2-week median of 20.5")),
        (29, [1, 20, 22, 900], Change("rise", "8 above the 4-week median of 21")),
        (1_029, [0, 0, 0], Change("rise", "1,029 above the 3-week median of 0")),
    ],
)
def test_a_figure_stands_against_the_median(now: int, before: list[int], change: Change) -> None:
    assert against(now, before) == change


def test_there_are_words_for_whatever_the_nightly_asks() -> None:
    asked = {*recommendations._ASKS.values(), recommendations.WRITE_INTO_TEMPLATE}
    callers = {recommendations.FIX_CALLER, recommendations.NAME_CODE}
    assert asked | callers | {"watch"} == set(_WHAT)
    states = recommendations._ASKS.items()
    whys = {"applied" if kind == "watch" else str(state) for state, kind in states}
    assert whys | {"applied", "unknown_code", "count_only"} == set(WHY)


def test_every_state_has_words() -> None:
    assert {*map(str, State)} <= set(STATES)


def test_a_cell_is_the_darker_the_more_it_holds() -> None:
    levels = [level(count, 1_000) for count in (0, 1, 10, 100, 1_000)]
    assert levels == sorted(levels)
    assert (levels[0], levels[1], levels[-1]) == (0, 1, LEVELS)
    assert [level(count, 1) for count in (0, 1)] == [0, LEVELS]


def test_a_strip_has_the_colour_of_the_days_and_the_width_of_the_axis() -> None:
    cases = [incident(symptom=each) for each in ("b", "b", "a")]
    week = summary(cases, times_to_heal=[week_parts.times("a", 1), week_parts.times("b", 2)])
    found = times(week, per_day(week))
    pictures = [*(each["strip"]["light"] for each in found["rows"]), found["axis"]["light"]]
    assert len({each.width for each in pictures}) == 1
    svgs = [b64decode(each.address.partition(",")[2]).decode() for each in pictures]
    assert [LIGHT.series[1] in each for each in svgs] == [True, False, False]
    assert [LIGHT.series[0] in each for each in svgs] == [False, True, False]
