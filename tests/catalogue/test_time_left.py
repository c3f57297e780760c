"""How long messages have, exactly and by a bound; who goes first; which redrive could lose."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.dlq.time_left import (
    TimeLeft,
    bound_time_left_by_age,
    can_messages_expire_during,
    compute_time_left,
    estimate_duration,
    sort_by_urgency,
)
from mendq.catalogue.examples import DAY_SECONDS, EXAMPLE_TIME
from mendq.model.limits import Bounds
from mendq.notifications.text import format_duration
from tests.catalogue.asking import golden

MINUTE = timedelta(minutes=1)
BOUNDS = Bounds()


def left(days: float, at_most_days: float | None = None) -> TimeLeft:
    most = days if at_most_days is None else at_most_days
    return TimeLeft(timedelta(days=days), timedelta(days=most))


@pytest.mark.parametrize(("sent_days_ago", "has"), [(3, 1), (5, 0), (-0.1, 4)])
def test_a_message_says_what_it_has_left_never_less_than_nothing_or_more_than_all(
    sent_days_ago: float, has: int
) -> None:
    assert compute_time_left(
        EXAMPLE_TIME - timedelta(days=sent_days_ago), 4 * DAY_SECONDS, EXAMPLE_TIME
    ) == left(has)


def test_a_metric_counts_from_the_move_so_it_is_a_bound() -> None:
    """It may have been in its source for a second, or for as long as that keeps any."""
    assert bound_time_left_by_age(
        DAY_SECONDS, 14 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=False
    ) == left(9, 13)
    assert bound_time_left_by_age(
        5 * DAY_SECONDS, 4 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=False
    ) == left(0)
    assert bound_time_left_by_age(
        DAY_SECONDS, 4 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=True
    ) == left(3)


@given(*(st.integers(60, 14 * DAY_SECONDS) for _ in range(4)))
def test_the_bound_holds_what_the_message_says(
    moved_ago: int, in_source: int, source_retained: int, retained: int
) -> None:
    in_source = min(in_source, source_retained)
    exact = compute_time_left(
        EXAMPLE_TIME - timedelta(seconds=moved_ago + in_source), retained, EXAMPLE_TIME
    )
    bound = bound_time_left_by_age(moved_ago, retained, source_retained, is_fifo=False)
    assert bound.lower_bound <= exact.lower_bound <= bound.upper_bound


def test_each_stage_takes_its_minutes_and_its_soak() -> None:
    """5, then 20, then the 5 that are left, at one a second: a tick each."""
    assert estimate_duration(30, 1, 10 * MINUTE, BOUNDS) == 3 * (10 * MINUTE + MINUTE)
    assert estimate_duration(0, 1, 10 * MINUTE, BOUNDS) == timedelta(0)
    assert estimate_duration(30, 0, 10 * MINUTE, BOUNDS) is None


@given(st.integers(1, 10**9), st.floats(1e-6, 500), st.integers(0, 14 * DAY_SECONDS))
def test_it_takes_no_less_than_the_rate_lets_it_and_no_less_for_more(
    messages: int, rate: float, soak: int
) -> None:
    one, more = (
        estimate_duration(n, rate, timedelta(seconds=soak), BOUNDS)
        for n in (messages, messages * 2)
    )
    assert one is not None
    assert more is not None
    capped = min(messages / rate, timedelta.max.total_seconds() / 4)
    assert capped * 0.999 <= one.total_seconds() <= more.total_seconds()


@pytest.mark.parametrize(("left_days", "lasts_days", "loses"), golden("tables")["losing"])
def test_which_redrive_could_lose(
    left_days: float, lasts_days: float | None, *, loses: bool
) -> None:
    lasts = None if lasts_days is None else timedelta(days=lasts_days)
    assert can_messages_expire_during(left(left_days, 14), lasts) is loses
    assert left(left_days).is_urgent is (left_days < 3)


def test_the_most_urgent_comes_first_and_what_has_no_end_last() -> None:
    items = [("b", None), ("c", 90.0), ("a", None), ("d", 0.0), ("e", 90.0)]
    assert [name for name, _ in sort_by_urgency(items, lambda item: item[1])] == list("dceba")


@pytest.mark.parametrize(("seconds", "words"), golden("tables")["spans"])
def test_a_span_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == words


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
