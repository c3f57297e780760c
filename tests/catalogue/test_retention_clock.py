"""How long messages have, exactly and by a bound; who goes first; which redrive could lose."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue._time_left import (
    TimeLeft,
    could_lose,
    left_by_age,
    left_of,
    most_urgent_first,
    span,
    takes,
)
from mendq.catalogue.examples import AT
from mendq.model.limits import Bounds

DAY = 86_400
MINUTE = timedelta(minutes=1)
BOUNDS = Bounds()


def left(days: float, at_most_days: float | None = None) -> TimeLeft:
    most = days if at_most_days is None else at_most_days
    return TimeLeft(timedelta(days=days), timedelta(days=most))


def test_a_message_says_exactly_what_it_has_left() -> None:
    found = left_of(AT - timedelta(days=3), 4 * DAY, AT)
    assert found == left(1)
    assert found.is_exact
    assert str(found) == "in 1 d"


def test_what_should_be_gone_already_has_no_time_left_and_not_less() -> None:
    assert left_of(AT - timedelta(days=5), 4 * DAY, AT) == left(0)
    assert left_by_age(5 * DAY, 4 * DAY, DAY, is_fifo=False) == left(0)


def test_a_clock_that_is_behind_gives_no_message_more_than_it_is_retained() -> None:
    assert left_of(AT + timedelta(hours=1), 4 * DAY, AT) == left(4)


@pytest.mark.parametrize(("days", "is_urgent"), [(0, True), (2.9, True), (3, False), (13, False)])
def test_less_than_three_days_is_urgent(days: float, *, is_urgent: bool) -> None:
    assert left(days).is_urgent is is_urgent


def test_a_metric_counts_from_the_move_so_it_is_a_bound() -> None:
    """The message may have been in its source for a second, or for as long as that keeps any."""
    assert left_by_age(DAY, 14 * DAY, 4 * DAY, is_fifo=False) == left(9, 13)


def test_on_fifo_the_move_begins_it_anew() -> None:
    assert left_by_age(DAY, 4 * DAY, 4 * DAY, is_fifo=True) == left(3)


@given(
    moved_ago=st.integers(0, 14 * DAY),
    in_source=st.integers(0, 14 * DAY),
    source_retained=st.integers(60, 14 * DAY),
    retained=st.integers(60, 14 * DAY),
)
def test_the_bound_holds_what_the_message_says(
    moved_ago: int, in_source: int, source_retained: int, retained: int
) -> None:
    in_source = min(in_source, source_retained)
    exact = left_of(AT - timedelta(seconds=moved_ago + in_source), retained, AT)
    bound = left_by_age(moved_ago, retained, source_retained, is_fifo=False)
    assert bound.at_least <= exact.at_least <= bound.at_most


def test_each_stage_takes_its_minutes_and_its_soak() -> None:
    """5, then 20, then the 5 that are left, at one a second: a tick each."""
    assert takes(30, 1, 10 * MINUTE, BOUNDS) == 3 * (10 * MINUTE + MINUTE)
    assert takes(0, 1, 10 * MINUTE, BOUNDS) == timedelta(0)
    assert takes(30, 0, 10 * MINUTE, BOUNDS) is None


@given(st.integers(0, 10**9), st.floats(1e-6, 500), st.integers(0, 14 * DAY))
def test_it_takes_no_less_than_the_rate_lets_it(messages: int, rate: float, soak: int) -> None:
    found = takes(messages, rate, timedelta(seconds=soak), BOUNDS)
    assert found is not None
    capped = min(messages / rate, timedelta.max.total_seconds() / 4)
    assert found.total_seconds() >= capped * 0.999


@given(st.integers(1, 10**6), st.floats(0.01, 400), st.integers(0, DAY))
def test_more_messages_never_take_less_time(messages: int, rate: float, soak: int) -> None:
    one, more = (takes(n, rate, timedelta(seconds=soak), BOUNDS) for n in (messages, messages * 2))
    assert one is not None
    assert more is not None
    assert one <= more


@pytest.mark.parametrize(
    ("left_days", "lasts_days", "loses"),
    [
        (3, 0, False),
        (2.9, 0, True),
        (3, 1.5, False),
        (3, 1.6, True),
        (13, 6.4, False),
        (0, None, True),
        (4, None, False),
    ],
)
def test_which_redrive_could_lose(left_days: float, lasts_days: float | None, loses: bool) -> None:
    lasts = None if lasts_days is None else timedelta(days=lasts_days)
    assert could_lose(left(left_days, 14), lasts) is loses


def test_the_most_urgent_comes_first_and_what_has_no_end_last() -> None:
    items = [("b", None), ("c", 90.0), ("a", None), ("d", 0.0), ("e", 90.0)]
    found = [name for name, _ in most_urgent_first(items, lambda item: item[1])]
    assert found == ["d", "c", "e", "b", "a"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (3_660, "1 h 1 min"),
        (2 * DAY, "2 d"),
        (2 * DAY + 3_600 * 5 + 59 * 60, "2 d 5 h"),
    ],
)
def test_a_span_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (left(2), "in 2 d"),
        (left(1, 2), "in 1 d to 2 d"),
        (left(0, 2), "within 2 d, and maybe at once"),
    ],
)
def test_time_left_in_words(time: TimeLeft, words: str) -> None:
    assert str(time) == words
