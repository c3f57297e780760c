"""Test that a measurement covers no minute of which CloudWatch lacks a count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.metrics import Datapoints, MetricGap, Window, find_time_without_gaps

SINCE = datetime(2026, 11, 16, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MINUTES = range(360)
WINDOW = Window(SINCE, SINCE + 6 * HOUR, begins_empty=True, shortest_duration=HOUR)
STEADY_SERIES = ("sent", "received", "deleted", "visible")


def make_points(
    lost_minutes: Mapping[str, Collection[int]], value: float = 0.0
) -> dict[str, Datapoints]:
    """Return a datapoint of each minute and series, except the lost ones."""
    return {
        series: [
            (SINCE + minute * MINUTE, value)
            for minute in MINUTES
            if minute not in lost_minutes.get(series, ())
        ]
        for series in STEADY_SERIES
    }


def find_part(lost_minutes: Mapping[str, Collection[int]], value: float = 0.0) -> Window:
    part = find_time_without_gaps(make_points(lost_minutes, value), WINDOW)
    assert isinstance(part, Window)
    return part


def test_whole_window_is_measured_if_no_datapoint_is_missing() -> None:
    assert find_part({}) == WINDOW


@pytest.mark.parametrize("series", STEADY_SERIES)
def test_part_after_a_gap_is_measured_if_it_is_the_longest(series: str) -> None:
    part = find_part({series: [100]})
    assert (part.since, part.until) == (SINCE + 101 * MINUTE, WINDOW.until)
    assert not part.begins_empty


def test_part_before_a_late_gap_is_measured_and_includes_no_running_minute() -> None:
    points = make_points({"deleted": [340]})
    part = find_time_without_gaps(points, replace(WINDOW, includes_running_minute=True))
    assert isinstance(part, Window)
    assert (part.since, part.until) == (SINCE, SINCE + 340 * MINUTE)
    assert part.begins_empty
    assert not part.includes_running_minute


def test_part_that_ended_more_than_an_hour_ago_is_not_measured() -> None:
    part = find_part({"received": [290]})
    assert part.since == SINCE + 291 * MINUTE


@pytest.mark.parametrize("lost_minute", [299, 300])
def test_queue_is_not_measured_if_the_time_since_the_gap_is_too_short(lost_minute: int) -> None:
    window = replace(WINDOW, shortest_duration=timedelta(minutes=61))
    lost_minutes = [lost_minute, *range(60, 299, 60)]
    gap = find_time_without_gaps(make_points({"deleted": lost_minutes}), window)
    assert isinstance(gap, MetricGap)
    assert "a missing count is not 0" in gap.reason


@pytest.mark.parametrize(
    ("series", "metric"),
    [
        ("sent", "NumberOfMessagesSent"),
        ("received", "NumberOfMessagesReceived"),
        ("deleted", "NumberOfMessagesDeleted"),
        ("visible", "ApproximateNumberOfMessagesVisible"),
    ],
)
def test_queue_is_not_measured_and_the_metric_is_named_if_one_has_no_datapoint(
    series: str, metric: str
) -> None:
    gap = find_time_without_gaps(make_points({series: MINUTES}), WINDOW)
    assert isinstance(gap, MetricGap)
    assert gap.missing_metrics == (metric,)
    assert metric in gap.reason


def test_window_without_any_count_is_not_cut() -> None:
    lost_minutes = dict.fromkeys(("sent", "received", "deleted"), MINUTES)
    assert find_part(lost_minutes) == WINDOW


def test_minutes_without_any_datapoint_are_no_gap_of_an_unused_queue() -> None:
    assert find_part(dict.fromkeys(STEADY_SERIES, range(200))) == WINDOW


def test_series_that_was_not_asked_for_is_no_gap() -> None:
    points = {"received": make_points({})["received"]}
    assert find_time_without_gaps(points, WINDOW) == WINDOW


def test_whole_window_is_measured_if_counts_of_0_seem_to_be_left_out() -> None:
    idle_minutes = range(0, 360, 2)
    lost_minutes = {
        "sent": idle_minutes,
        "received": [*idle_minutes, 5],
        "deleted": [*idle_minutes, 7],
    }
    assert find_part(lost_minutes, value=1.0) == WINDOW


def test_missing_deletes_of_a_busy_queue_are_a_gap_although_no_count_is_0() -> None:
    part = find_part({"deleted": [100]}, value=5.0)
    assert part.since == SINCE + 101 * MINUTE
