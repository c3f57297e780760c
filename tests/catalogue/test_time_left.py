"""Test how long DLQ messages have until they expire, and which redrive could lose messages."""

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
from tests.catalogue.asking import read_test_data

MINUTE = timedelta(minutes=1)
BOUNDS = Bounds()


def make_time_left(days: float, at_most_days: float | None = None) -> TimeLeft:
    most = days if at_most_days is None else at_most_days
    return TimeLeft(timedelta(days=days), timedelta(days=most))


@pytest.mark.parametrize(("sent_days_ago", "has"), [(3, 1), (5, 0), (-0.1, 4)])
def test_time_left_from_a_messages_send_time_is_between_zero_and_the_retention(
    sent_days_ago: float, has: int
) -> None:
    assert compute_time_left(
        EXAMPLE_TIME - timedelta(days=sent_days_ago), 4 * DAY_SECONDS, EXAMPLE_TIME
    ) == make_time_left(has)


def test_time_left_from_the_age_metric_is_a_range_because_sqs_counts_from_the_move() -> None:
    """Before the move, the message spent between a second and the retention time in its source."""
    assert bound_time_left_by_age(
        DAY_SECONDS, 14 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=False
    ) == make_time_left(9, 13)
    assert bound_time_left_by_age(
        5 * DAY_SECONDS, 4 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=False
    ) == make_time_left(0)


def test_time_left_from_the_age_metric_of_a_fifo_queue_is_exact() -> None:
    assert bound_time_left_by_age(
        DAY_SECONDS, 4 * DAY_SECONDS, 4 * DAY_SECONDS, is_fifo=True
    ) == make_time_left(3)


RETENTIONS = st.integers(60, 14 * DAY_SECONDS)


@given(RETENTIONS, RETENTIONS, RETENTIONS, RETENTIONS)
def test_time_left_range_from_the_metric_always_contains_the_exact_time_left(
    moved_ago: int, in_source: int, source_retained: int, retained: int
) -> None:
    in_source = min(in_source, source_retained)
    exact = compute_time_left(
        EXAMPLE_TIME - timedelta(seconds=moved_ago + in_source), retained, EXAMPLE_TIME
    )
    bound = bound_time_left_by_age(moved_ago, retained, source_retained, is_fifo=False)
    assert bound.lower_bound <= exact.lower_bound <= bound.upper_bound


def test_redrive_duration_is_the_minutes_and_the_soak_of_each_stage() -> None:
    """Stages of 5, 20 and the remaining 5 messages take a tick each at one message a second."""
    assert estimate_duration(30, 1, 10 * MINUTE, BOUNDS) == 3 * (10 * MINUTE + MINUTE)


def test_redrive_duration_is_zero_without_messages_and_unknown_at_a_rate_of_zero() -> None:
    assert estimate_duration(0, 1, 10 * MINUTE, BOUNDS) == timedelta(0)
    assert estimate_duration(30, 0, 10 * MINUTE, BOUNDS) is None


@given(st.integers(1, 10**9), st.floats(1e-6, 500), st.integers(0, 14 * DAY_SECONDS))
def test_redrive_duration_grows_with_messages_and_is_never_below_the_rate(
    messages: int, rate: float, soak: int
) -> None:
    duration = estimate_duration(messages, rate, timedelta(seconds=soak), BOUNDS)
    assert duration is not None
    duration_of_twice = estimate_duration(messages * 2, rate, timedelta(seconds=soak), BOUNDS)
    assert duration_of_twice is not None
    shortest = min(messages / rate, timedelta.max.total_seconds() / 4)
    assert shortest * 0.999 <= duration.total_seconds() <= duration_of_twice.total_seconds()


@pytest.mark.parametrize(("left_days", "lasts_days", "loses"), read_test_data("tables")["losing"])
def test_redrive_can_lose_messages_with_under_3_days_left_or_under_twice_its_duration(
    left_days: float, lasts_days: float | None, *, loses: bool
) -> None:
    lasts = None if lasts_days is None else timedelta(days=lasts_days)
    assert can_messages_expire_during(make_time_left(left_days, 14), lasts) is loses


@pytest.mark.parametrize(("days", "is_urgent"), [(0, True), (2.9, True), (3, False), (13, False)])
def test_time_left_is_urgent_below_three_days(days: float, *, is_urgent: bool) -> None:
    assert make_time_left(days, 14).is_urgent is is_urgent


def test_sort_by_urgency_puts_the_shortest_time_first_and_no_expiry_last() -> None:
    items = [("b", None), ("c", 90.0), ("a", None), ("d", 0.0), ("e", 90.0)]
    assert [name for name, _ in sort_by_urgency(items, lambda item: item[1])] == list("dceba")


@pytest.mark.parametrize(("seconds", "words"), read_test_data("tables")["spans"])
def test_duration_is_written_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (make_time_left(2), "in 2 d"),
        (make_time_left(1, 2), "in 1 d to 2 d"),
        (make_time_left(0, 2), "within 2 d, and maybe at once"),
    ],
)
def test_time_left_is_written_as_a_time_or_a_range(time: TimeLeft, words: str) -> None:
    assert str(time) == words
