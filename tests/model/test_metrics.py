"""Test the summary of CloudWatch datapoints, and the signs of a consumer race in SQS's counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.consumers.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.model.facts import LambdaConsumer
from mendq.model.metrics import (
    CLOUDWATCH_LAG,
    COUNTER_TOLERANCE_MESSAGES,
    LONGEST_WINDOW,
    DaysOfTraffic,
    Gauges,
    Measurement,
    Window,
    select_series,
    summarize_series,
)

SINCE = datetime(2026, 11, 16, 3, tzinfo=UTC)
NOW = datetime(2026, 11, 16, 9, 30, 17, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# For each series, its datapoints as minutes since SINCE and values.
SeriesPoints = Mapping[str, Sequence[tuple[int, float]]]
# An action on a queue, "send" or one of `COUNTS_BY_ACTION`, and the number of messages.
Action = tuple[str, int]


@dataclass(frozen=True)
class ActionCounts:
    """What SQS counts for each message of one action."""

    receives: int = 0
    deletes: int = 0
    leaves_backlog: bool = False


COUNTS_BY_ACTION = {
    "handle": ActionCounts(receives=1, deletes=1, leaves_backlog=True),
    # The visibility timeout ends, and a second consumer receives and deletes the message too.
    "handle_twice": ActionCounts(receives=2, deletes=2, leaves_backlog=True),
    # One consumer deletes twice with one receipt handle.
    "delete_twice": ActionCounts(receives=1, deletes=2, leaves_backlog=True),
    "fail": ActionCounts(receives=1),
    # The message is purged, expires, or moves to a DLQ.
    "vanish": ActionCounts(leaves_backlog=True),
}


def summarize_points(
    hours: float, series: SeriesPoints, *, is_new: bool = False
) -> Measurement | None:
    """Summarize datapoints, each given as its minute since SINCE and its value."""
    points_by_key = {}
    for key, points in series.items():
        points_by_key[key] = [(SINCE + minute * MINUTE, value) for minute, value in points]
    return summarize_series(points_by_key, Window(SINCE, SINCE + hours * HOUR, is_new))


def summarize_window(hours: float, **series: Sequence[tuple[int, float]]) -> Measurement | None:
    return summarize_points(hours, series)


def summarize_known_points(
    hours: float, series: SeriesPoints, *, is_new: bool = False
) -> Measurement:
    measured = summarize_points(hours, series, is_new=is_new)
    assert measured is not None
    return measured


def summarize_known_window(hours: float, **series: Sequence[tuple[int, float]]) -> Measurement:
    return summarize_known_points(hours, series)


def count_action(action: str, wanted: int, backlog: int, counts: Counter[str]) -> int:
    """Count one action on `wanted` messages, or on all of a smaller backlog; return the backlog."""
    if action == "send":
        counts["sent"] += wanted
        return backlog + wanted
    per_message = COUNTS_BY_ACTION[action]
    messages = min(wanted, backlog)
    counts["received"] += per_message.receives * messages
    counts["deleted"] += per_message.deletes * messages
    return backlog - messages if per_message.leaves_backlog else backlog


def simulate_queue(
    minutes: Sequence[Sequence[Action]],
    gauged_after: int,
    begins: int = 0,
    *,
    is_new: bool = False,
) -> Measurement:
    """Simulate the actions of each minute and summarize the counters.

    SQS reports a minute's backlog after the first `gauged_after` actions.
    """
    backlog = 0
    series = defaultdict[str, list[tuple[int, float]]](list)
    for minute, actions in enumerate(minutes, begins):
        counts = Counter[str]()
        gauge = backlog
        for number, (action, wanted) in enumerate(actions, 1):
            backlog = count_action(action, wanted, backlog, counts)
            if number <= gauged_after:
                gauge = backlog
        series["visible"].append((minute, gauge))
        for key in ("sent", "received", "deleted"):
            series[key].append((minute, counts[key]))
    return summarize_known_points(6, series, is_new=is_new)


def make_minutes(*actions: str) -> st.SearchStrategy[list[list[Action]]]:
    action = st.tuples(st.sampled_from(actions), st.integers(0, 500))
    return st.lists(st.lists(action, max_size=4), min_size=1, max_size=20)


@given(make_minutes("send", "handle", "fail", "vanish"), st.integers(0, 4), st.booleans())
def test_messages_handled_once_are_no_consumer_race_in_any_order_of_actions(
    minutes: list[list[Action]],
    gauged_after: int,
    is_new: bool,
) -> None:
    measured = simulate_queue(minutes, gauged_after, is_new=is_new)
    assert measured.surplus_deletes <= 0
    assert not measured.has_consumer_race


@given(make_minutes("send", "handle", "delete_twice", "vanish"))
def test_two_deletes_with_one_receipt_handle_are_no_consumer_race(
    minutes: list[list[Action]],
) -> None:
    assert not simulate_queue([[], *minutes, []], 4).has_consumer_race


@given(make_minutes("send", "handle_twice"), st.integers(0, 4))
def test_surplus_deletes_are_the_second_deletes_if_the_first_and_last_minute_are_quiet(
    minutes: list[list[Action]], gauged_after: int
) -> None:
    measured = simulate_queue([[], *minutes, []], gauged_after)
    assert measured.surplus_deletes == measured.deleted // 2


@given(make_minutes("send", "handle_twice"), st.integers(0, 4))
def test_messages_handled_twice_are_a_race_if_over_20_and_over_5_percent_of_the_sends(
    minutes: list[list[Action]], gauged_after: int
) -> None:
    measured = simulate_queue([[], *minutes, []], gauged_after)
    second_deletes = measured.deleted // 2
    assert measured.has_consumer_race == (second_deletes > max(20, 0.05 * measured.sent))


@given(
    st.lists(
        st.builds(
            lambda minutes, size: (*sorted(minutes), size),
            st.tuples(st.integers(0, 29), st.integers(0, 29), st.integers(0, 29)),
            st.integers(1, 3_000),
        ),
        max_size=8,
    ),
    st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_batches_handled_once_are_no_consumer_race_whenever_sqs_samples_its_gauges(
    batches: list[tuple[int, int, int, int]], samples_at_end: list[bool]
) -> None:
    """A batch is the minutes in which it was sent, received and deleted, and its size.

    In each minute, SQS samples its gauges either at the beginning or at the end.
    """
    series = defaultdict[str, list[tuple[int, float]]](list)
    for minute, is_at_end in enumerate(samples_at_end):
        sample = minute + is_at_end
        counts = Counter[str]()
        for sent, received, deleted, size in batches:
            counts["visible"] += size * (sent < sample <= received)
            counts["in_flight"] += size * (received < sample <= deleted)
            counts["sent"] += size * (sent == minute)
            counts["received"] += size * (received == minute)
            counts["deleted"] += size * (deleted == minute)
        for key in ("visible", "in_flight", "sent", "received", "deleted"):
            series[key].append((minute, counts[key]))
    measured = summarize_known_window(0.5, **series)
    assert measured.surplus_deletes <= 0
    assert not measured.has_consumer_race


REPORTED_IN_MINUTE = pytest.mark.parametrize(
    ("first_report_minute", "is_counted_from_zero"), [(0, True), (1, True), (2, False)]
)


@REPORTED_IN_MINUTE
def test_deletes_in_a_new_queues_first_minute_count_only_if_reported_within_two_minutes(
    first_report_minute: int, *, is_counted_from_zero: bool
) -> None:
    """If SQS reports a queue later, consumers may have handled messages before."""
    minutes: list[list[Action]] = [[("send", 300), ("handle_twice", 300)], []]
    measured = simulate_queue(minutes, 4, first_report_minute, is_new=True)
    assert measured.before == Gauges()
    assert measured.surplus_deletes == (300 if is_counted_from_zero else -300)


@REPORTED_IN_MINUTE
@pytest.mark.parametrize("is_new", [True, False])
def test_dlq_arrivals_count_from_the_first_minute_only_of_a_new_queue_reported_within_two_minutes(
    first_report_minute: int, *, is_counted_from_zero: bool, is_new: bool
) -> None:
    series = {
        "sent": [(0, 300)],
        "received": [(0, 900)],
        "visible": [(first_report_minute, 0), (5, 0)],
    }
    measured = summarize_known_points(1, series, is_new=is_new)
    dead_messages = 300 if is_new and is_counted_from_zero else 0
    assert measured.count_dead_messages(3) == dead_messages


def test_messages_sent_in_the_first_minute_are_not_counted_again_as_backlog() -> None:
    """They are in the sends and in the backlog of that minute."""
    measured = simulate_queue([[("send", 120)], *[[("handle_twice", 12)]] * 10, []], gauged_after=1)
    assert measured.sent + measured.before.backlog == 120 - 12, (
        "the measurement begins in the second minute, in which nothing was sent"
    )
    assert measured.surplus_deletes == 9 * 12
    assert measured.has_consumer_race


@pytest.mark.parametrize(
    "minutes",
    [
        # The deletes of one minute exceed the tolerance for inexact counters.
        [[("send", 30_000)], *[[("handle", 80)]] * 359],
        [*[[]] * 357, [("send", 1_000)], [("handle", 1_000)]],
        [[("send", 500), ("handle", 500)]],
    ],
    ids=["emptied", "a burst at the end", "a single minute"],
)
def test_messages_handled_between_two_gauge_samples_are_no_consumer_race(
    minutes: list[list[Action]],
) -> None:
    for gauged_after in (0, 1):
        assert not simulate_queue(minutes, gauged_after).has_consumer_race


@pytest.mark.parametrize(
    ("sent", "handled", "has_race"),
    [(100, 120, False), (100, 121, True), (1_000, 1_050, False), (1_000, 1_051, True)],
)
def test_consumer_race_needs_over_20_surplus_deletes_and_over_5_percent_of_the_sends(
    sent: int, handled: int, *, has_race: bool
) -> None:
    counted = examples.measurement(sent=sent, received=handled, deleted=handled)
    assert counted.has_consumer_race is has_race


@pytest.mark.parametrize(("late_deletes", "has_race"), [(79, True), (80, False)])
def test_surplus_deletes_that_may_follow_the_last_backlog_sample_are_no_consumer_race(
    late_deletes: int, *, has_race: bool
) -> None:
    counted = examples.measurement(sent=100, received=200, deleted=200)
    counted = replace(counted, deletes_after_last_backlog=late_deletes)
    assert counted.has_consumer_race is has_race


@pytest.mark.parametrize(("excess", "has_race"), [(0, True), (1, False)])
def test_more_deletes_than_receives_beyond_the_tolerance_are_no_consumer_race(
    excess: int, *, has_race: bool
) -> None:
    """Then one consumer deletes twice with one receipt handle."""
    deleted = 180 + COUNTER_TOLERANCE_MESSAGES + excess
    counted = examples.measurement(sent=100, received=180, deleted=deleted)
    assert counted.has_consumer_race is has_race


def test_deletes_of_messages_that_arrived_without_a_send_are_no_consumer_race() -> None:
    """Messages arrive in a DLQ without a send, and its consumers may have handled some."""
    dlq_counts = examples.measurement(received=300, deleted=300, backlog_now=700)
    assert not dlq_counts.has_consumer_race


@pytest.mark.parametrize(("backlog_now", "has_race"), [(4, True), (5, False)])
def test_deletes_that_do_not_shrink_the_backlog_are_a_race_unless_a_message_arrived_unsent(
    backlog_now: int, *, has_race: bool
) -> None:
    late_deletes = examples.measurement(
        received=60, deleted=60, backlog_before=4, backlog_now=backlog_now
    )
    assert late_deletes.has_consumer_race is has_race


COUNT_NAMES = (
    "sent",
    "received",
    "deleted",
    "backlog_before",
    "backlog_now",
    "in_flight_now",
    "oldest_age_seconds_now",
    "groups_in_flight_now",
)
MEASUREMENTS = st.builds(
    examples.measurement, **dict.fromkeys(COUNT_NAMES, st.integers(0, 100_000))
)


@given(MEASUREMENTS, st.booleans(), st.booleans())
def test_no_measurement_is_both_a_consumer_race_and_a_failing_consumer(
    counted: Measurement, fails: bool, fifo: bool
) -> None:
    function = LambdaConsumer("arn:f", 30, 0, 0.1, error_share=float(fails))
    arn = examples.QUEUE_ARN if fifo else examples.STANDARD_ARN
    facts = examples.standard_queue(measurement=counted, lambda_consumers=(function,))
    facts = replace(facts, queue_arn=arn)
    entries = (VISIBILITY_TIMEOUT_TOO_SHORT, CONSUMER_FAILING)
    assert None in [entry.detection.detect(facts) for entry in entries if entry.detection]


def summarize_few_double_deletes(
    surplus_by_minute: Mapping[int, int], *, is_received_again: bool = True
) -> Measurement:
    """Summarize six hours of a message a minute, some of them deleted again."""
    minutes = range(360)
    surpluses = [surplus_by_minute.get(minute, 0) for minute in minutes]
    steady = [(minute, 1.0) for minute in minutes]
    deleted = [(minute, 1.0 + surplus) for minute, surplus in enumerate(surpluses)]
    empty = [(minute, 0.0) for minute in minutes]
    return summarize_known_points(
        6,
        {
            "sent": steady,
            "received": deleted if is_received_again else steady,
            "deleted": deleted,
            "visible": empty,
            "in_flight": empty,
        },
    )


@pytest.mark.parametrize(
    ("surplus_by_minute", "has_race"),
    [
        (dict.fromkeys(range(20, 360, 40), 1), False),
        (dict.fromkeys(range(20, 360, 20), 1), True),
        (dict.fromkeys(range(20, 170, 10), 1), False),
        (dict.fromkeys(range(200, 350, 10), 1), False),
        ({20: 8, 300: 8}, True),
    ],
    ids=["too few", "few in each half", "first half only", "second half only", "at once"],
)
def test_few_double_deletes_are_a_consumer_race_only_if_both_halves_show_them(
    surplus_by_minute: Mapping[int, int], has_race: bool
) -> None:
    measured = summarize_few_double_deletes(surplus_by_minute)
    assert measured.surplus_deletes <= COUNTER_TOLERANCE_MESSAGES
    assert measured.has_consumer_race is has_race


def test_few_deletes_with_one_receipt_handle_are_no_consumer_race() -> None:
    surplus_by_minute = dict.fromkeys(range(20, 360, 20), 1)
    measured = summarize_few_double_deletes(surplus_by_minute, is_received_again=False)
    assert not measured.has_consumer_race


def test_few_double_deletes_of_less_than_two_hours_are_no_consumer_race() -> None:
    points = {"deleted": [(minute, 2.0) for minute in range(15)]} | {
        series: [(minute, float(series == "received") * 2) for minute in range(119)]
        for series in ("received", "visible")
    }
    sent = [(minute, 1.0) for minute in range(15)]
    measured = summarize_known_points(119 / 60, {**points, "sent": sent})
    assert measured.recent.halves == ()
    assert not measured.has_consumer_race


def test_window_without_a_change_is_the_six_hours_until_the_minute_three_minutes_ago() -> None:
    window = Window.choose(NOW, None, HOUR)
    assert window is not None
    assert window.until == (NOW - 3 * MINUTE).replace(second=0)
    assert window.since == window.until - 6 * HOUR


def test_window_after_a_change_begins_in_the_next_whole_minute_and_not_as_empty() -> None:
    changed_at = NOW - 2 * HOUR
    window = Window.choose(NOW, changed_at, HOUR)
    assert window is not None
    assert window.since == changed_at.replace(second=0) + MINUTE
    assert not window.begins_empty


def test_window_of_a_queue_created_two_hours_ago_begins_empty_in_its_first_minute() -> None:
    created_at = NOW - 2 * HOUR
    window = Window.choose(NOW, created_at, HOUR, is_new=True)
    assert window is not None
    assert (window.since, window.begins_empty) == (created_at.replace(second=0), True)


def test_window_of_a_queue_created_before_the_last_six_hours_does_not_begin_empty() -> None:
    created_at = NOW - LONGEST_WINDOW - HOUR
    assert Window.choose(NOW, created_at, HOUR, is_new=True) == Window.choose(NOW, None, HOUR)


@pytest.mark.parametrize("minutes_since_change", [-30, 0, 62])
def test_window_is_none_if_less_than_the_shortest_duration_followed_the_change(
    minutes_since_change: int,
) -> None:
    assert Window.choose(NOW, NOW - minutes_since_change * MINUTE, HOUR) is None


@given(
    st.none() | st.timedeltas(timedelta(days=-9), timedelta(days=1)),
    st.timedeltas(CLOUDWATCH_LAG, LONGEST_WINDOW),
)
def test_window_has_whole_minutes_and_an_allowed_length_between_last_change_and_cloudwatchs_lag(
    changed: timedelta | None, shortest: timedelta
) -> None:
    settled_at = None if changed is None else NOW + changed
    window = Window.choose(NOW, settled_at, shortest)
    if window is not None:
        assert window.until <= NOW - CLOUDWATCH_LAG
        assert settled_at is None or window.since >= settled_at
        assert shortest <= window.until - window.since <= LONGEST_WINDOW
        assert (window.since.second, window.until.second) == (0, 0)


def test_summary_is_none_without_datapoints_inside_the_window() -> None:
    assert summarize_window(2) is None
    assert summarize_window(2, sent=[], visible=[]) is None
    assert summarize_window(2, sent=[(-1, 5), (120, 7)]) is None, "outside of the window"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -1.0])
@pytest.mark.parametrize("key", ["deleted", "visible"])
def test_summary_is_none_only_if_a_datapoint_inside_the_window_is_negative_infinite_or_nan(
    key: str, value: float
) -> None:
    valid: dict[str, list[tuple[int, float]]] = {"sent": [(0, 500)], "deleted": [(9, 500)]}
    assert summarize_points(2, {**valid, key: [(5, value)]}) is None
    outside = [*valid.get(key, []), (130, value)]
    assert summarize_points(2, {**valid, key: outside}) is not None


INVALID_PROCESSING_SECONDS = pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1.0, 0.0, 43_201.0]
)


@INVALID_PROCESSING_SECONDS
def test_invalid_published_processing_time_is_ignored_and_the_other_counts_are_kept(
    value: float,
) -> None:
    counted = summarize_known_window(2, sent=[(0, 500)], processing=[(0, value)])
    assert (counted.sent, counted.processing_p99_seconds) == (500, None)


@INVALID_PROCESSING_SECONDS
def test_processing_time_is_the_longest_valid_datapoint_even_if_it_began_before_the_window(
    value: float,
) -> None:
    processing = [(-30, 41.5), (30, 12), (90, value)]
    counted = summarize_known_window(2, sent=[(0, 500)], processing=processing)
    assert counted.processing_p99_seconds == 41.5


def test_summary_adds_up_the_counts_inside_the_window() -> None:
    measured = summarize_known_window(
        2, sent=[(0, 3), (119, 4), (120, 100)], deleted=[(5, 2)], empty=[(6, 9)]
    )
    assert (measured.sent, measured.received, measured.deleted) == (7, 0, 2)
    assert measured.empty_receives == 9


def test_summary_reads_the_gauges_at_both_ends_of_the_window() -> None:
    measured = summarize_known_window(
        2,
        visible=[(60, 1), (0, 4), (119, 6)],
        in_flight=[(0, 10), (119, 20)],
        delayed=[(0, 100), (119, 200)],
        age=[(0, 30), (119, 7_000)],
        groups=[(0, 3), (5, 1)],
    )
    assert measured.before == Gauges(
        backlog=114, visible=4, in_flight=10, oldest_age_seconds=30, groups_in_flight=3
    )
    assert measured.now == Gauges(
        backlog=226, visible=6, in_flight=20, oldest_age_seconds=7_000, groups_in_flight=1
    )


def test_summary_has_the_fewest_visible_messages_of_any_minute_in_the_window() -> None:
    measured = summarize_known_window(2, visible=[(60, 1), (0, 4), (119, 6)])
    assert measured.fewest_visible_messages == 1


def test_summary_reads_the_gauges_of_noisy_and_quiet_groups_of_a_fair_queue() -> None:
    now = summarize_known_window(
        2, visible=[(0, 9)], noisy=[(119, 2)], quiet=[(119, 7)], quiet_age=[(119, 60)]
    ).now
    assert (now.noisy_groups, now.quiet_visible, now.quiet_oldest_age_seconds) == (2, 7, 60)


def make_measurement_with_deletes_until(last_minute: int, interval_minutes: int) -> Measurement:
    """Make six hours with two sends and two receives a minute, and deletes at this interval."""
    steady = [(minute, 2) for minute in range(360)]
    delete_minutes = range(last_minute % interval_minutes, last_minute + 1, interval_minutes)
    return summarize_known_window(
        6,
        sent=steady,
        received=steady,
        deleted=[(minute, 2 * interval_minutes) for minute in delete_minutes],
        visible=[(0, 0), (359, 4)],
    )


@pytest.mark.parametrize(
    ("last_delete_minute", "interval_minutes", "has_stopped"),
    [(355, 1, True), (356, 1, False), (348, 5, True), (352, 5, False)],
)
def test_consumers_have_stopped_finishing_after_over_3_minutes_and_twice_any_earlier_pause(
    last_delete_minute: int, interval_minutes: int, *, has_stopped: bool
) -> None:
    measured = make_measurement_with_deletes_until(last_delete_minute, interval_minutes)
    assert measured.pause == timedelta(minutes=359 - last_delete_minute)
    assert measured.longest_pause_between_deletes == timedelta(minutes=interval_minutes - 1)
    assert measured.has_stopped_finishing is has_stopped


def test_consumers_have_stopped_finishing_after_15_minutes_without_a_delete() -> None:
    measured = make_measurement_with_deletes_until(343, interval_minutes=20)
    assert measured.pause == 16 * MINUTE
    assert measured.longest_pause_between_deletes == 19 * MINUTE
    assert measured.has_stopped_finishing, "however long the pauses before"


def summarize_outage_after_twenty_finished_messages() -> Measurement:
    """Summarize six hours: 20 messages are finished, then 2 are received every minute."""
    return summarize_known_window(
        6,
        sent=[(0, 10), (5, 10), (200, 2)],
        received=[(5, 10), (6, 10), *[(minute, 2) for minute in range(201, 360)]],
        deleted=[(6, 10), (7, 10)],
        visible=[(0, 0), (100, 0), (201, 1), (359, 1)],
        in_flight=[(0, 0), (100, 0), (201, 1), (359, 1)],
    )


def test_receives_after_the_last_delete_do_not_count_as_receives_per_finished_message() -> None:
    measured = summarize_outage_after_twenty_finished_messages()
    assert (measured.sent_since_delete, measured.received_since_delete) == (2, 318)
    assert measured.receives_per_finished() == 1.0


def test_consumers_that_receive_for_hours_without_a_delete_have_stopped_finishing() -> None:
    assert summarize_outage_after_twenty_finished_messages().has_stopped_finishing


def test_one_message_received_three_times_without_a_delete_is_no_stopped_consumer() -> None:
    measured = summarize_known_window(1, sent=[(0, 1)], received=[(5, 3)], visible=[(0, 1)])
    assert measured.receives_per_finished() is None
    assert not measured.has_stopped_finishing, "it may be one bad message"


def test_half_hours_of_a_summary_have_their_counts_and_leave_out_those_without_datapoints() -> None:
    measured = summarize_outage_after_twenty_finished_messages()
    assert (measured.fewest_messages, measured.usual_messages) == (0, 1)
    last = measured.recent.half_hours[-1]
    assert (last.until - last.since, last.fewest_messages, last.received) == (HOUR / 2, 2, 60)
    assert len(measured.recent.half_hours) == 6


def test_messages_that_came_within_the_last_hour_do_not_count_as_unfinished() -> None:
    """60 messages arrived before noon and stayed; a burst of 40 came ten minutes ago."""
    measured = summarize_known_window(
        6,
        sent=[(5, 60), (350, 40)],
        received=[(10, 60), (351, 40)],
        visible=[(minute, 0 if minute < 5 else 60) for minute in range(350)]
        + [(minute, 100) for minute in range(350, 360)],
    )
    assert measured.sent_minus_deleted == 100
    assert measured.fewest_messages_of_last_hour == 60
    assert measured.unfinished_messages == 60


def test_minutes_with_receives_and_the_pause_since_the_last_leave_out_minutes_without_any() -> None:
    measured = summarize_known_window(1, received=[(5, 2), (6, 0), (40, 1)], visible=[(0, 3)])
    assert measured.minutes_with_receives == 2
    assert measured.pause_since_receive == timedelta(minutes=19)


def test_queue_without_a_receive_has_no_pause_since_one() -> None:
    measured = summarize_known_window(1, received=[(5, 0)], visible=[(0, 3)])
    assert (measured.minutes_with_receives, measured.pause_since_receive) == (0, None)


def test_pauses_of_days_of_traffic_begin_with_the_end_of_an_hour_with_receives() -> None:
    hours = tuple(NOW - timedelta(hours=hours) for hours in (30, 29, 20, 8))
    days = DaysOfTraffic(hours, hours)
    assert days.longest_pause == timedelta(hours=11)
    assert days.measure_pause_at(NOW) == timedelta(hours=7)
    assert days.measure_pause_at(NOW - timedelta(hours=7.5)) == timedelta(0)


def test_days_without_receives_have_no_pause_since_one() -> None:
    assert DaysOfTraffic().longest_pause == timedelta(0)
    assert DaysOfTraffic().measure_pause_at(NOW) is None


def test_usual_in_flight_is_the_median_and_the_highest_age_that_of_any_minute() -> None:
    measured = summarize_known_window(
        1, in_flight=[(0, 2), (1, 9), (2, 3)], age=[(0, 60), (1, 1_178), (2, 5)]
    )
    assert (measured.usual_in_flight, measured.highest_oldest_age_seconds) == (3, 1_178)


def test_usual_in_flight_is_none_if_sqs_did_not_report_it() -> None:
    assert summarize_known_window(1, visible=[(0, 3)]).usual_in_flight is None


def test_recent_counts_cover_only_the_last_hour() -> None:
    measured = summarize_known_window(
        6, received=[(299, 5), (300, 7), (359, 1)], deduplicated=[(10, 3), (301, 2)]
    )
    assert (measured.recent.received, measured.recent.deduplicated) == (8, 2)


def test_standstill_is_none_if_sqs_reports_no_age_of_the_oldest_message() -> None:
    assert summarize_known_window(6, received=[(300, 7)]).recent.standstill is None


@pytest.mark.parametrize(
    ("ages", "minutes"),
    [
        pytest.param([(n, 60 * n) for n in range(120)], 119, id="all the while"),
        pytest.param([(n, 60 * max(0, n - 60)) for n in range(120)], 60, id="for an hour"),
        pytest.param([(n, 3) for n in range(120)], None, id="always new"),
        pytest.param([(n, 55 * n) for n in range(120)], 12, id="moves on slowly"),
        pytest.param([(n, 60 * n) for n in range(119)] + [(119, 0)], None, id="is gone"),
        pytest.param([(5, 300)], None, id="one point"),
    ],
)
def test_standstill_is_the_time_in_which_the_oldest_messages_age_grew_without_a_break(
    ages: list[tuple[int, float]], minutes: int | None
) -> None:
    standstill = summarize_known_window(2, age=ages).recent.standstill
    if minutes is None:
        assert standstill is None
    else:
        assert standstill is not None
        assert standstill.until - standstill.since == (minutes + 1) * MINUTE


POINTS = st.lists(st.tuples(st.integers(-10, 130), st.integers(0, 10**6).map(float)), max_size=8)


def test_time_in_flight_leaves_out_minutes_without_a_count_of_receives() -> None:
    """Minute 3 has 600 messages in flight and no count, minute 2 has a count of 0."""
    gauges = {
        "visible": [(minute, 0) for minute in range(5)],
        "in_flight": [(0, 0), (1, 6), (2, 6), (3, 600), (4, 0)],
    }
    measured = summarize_known_window(
        1, **gauges, received=[(0, 9), (1, 3), (2, 0), (4, 0)], deleted=[(4, 3)]
    )
    assert measured.seconds_in_flight_per_receive == 12 * 60 / 3


def test_time_in_flight_covers_only_minutes_whose_receives_count() -> None:
    """The first two minutes have more sends, so the first backlog is that of minute 2."""
    measured = summarize_known_window(
        1,
        sent=[(0, 9), (1, 9), (2, 0), (3, 0), (4, 0)],
        visible=[(minute, 0) for minute in range(5)],
        in_flight=[(0, 9), (1, 9), (2, 1), (3, 1), (4, 1)],
        received=[(0, 9), (1, 9), (2, 0), (3, 1), (4, 0)],
    )
    assert measured.seconds_in_flight_per_receive == 2 * 60 / 2


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(0, 40))
def test_time_in_flight_without_extension_is_at_most_the_visibility_timeout(
    receives: list[int], in_flight_at_start: int
) -> None:
    """Each message stays in flight for the whole timeout of three minutes."""
    timeout_minutes = 3
    in_flight = [(0, in_flight_at_start)]
    for minute in range(1, len(receives) + 1):
        left = in_flight_at_start if minute < timeout_minutes else 0
        received_since = receives[max(0, minute - timeout_minutes) : minute]
        in_flight.append((minute, left + sum(received_since)))
    measured = summarize_known_window(
        2,
        visible=[(minute, 0) for minute, _ in in_flight],
        in_flight=in_flight,
        received=[(0, 0), *enumerate(receives, 1)],
    )
    assert (measured.seconds_in_flight_per_receive or 0) <= timeout_minutes * 60


ANY_SERIES = st.dictionaries(
    st.sampled_from(sorted(select_series(["every queue", "FIFO"]))), POINTS
)


@given(ANY_SERIES)
def test_summary_does_not_depend_on_the_order_of_datapoints(
    points: dict[str, list[tuple[int, float]]],
) -> None:
    unique_points = {key: list(dict(pairs).items()) for key, pairs in points.items()}
    reversed_points = {key: pairs[::-1] for key, pairs in unique_points.items()}
    assert summarize_points(2, unique_points) == summarize_points(2, reversed_points)


@given(ANY_SERIES)
def test_summary_of_any_datapoints_has_visible_and_in_flight_messages_within_the_backlog(
    points: dict[str, list[tuple[int, float]]],
) -> None:
    measured = summarize_points(2, points)
    if measured is not None:
        fewest = min(measured.before.visible, measured.now.visible)
        assert measured.fewest_visible_messages <= fewest
        assert measured.now.visible + measured.now.in_flight <= measured.now.backlog
