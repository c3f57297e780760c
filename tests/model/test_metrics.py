"""Test the summary of CloudWatch datapoints, and the signs of a consumer race in SQS's counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
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
# An action on a queue, and the number of messages.
Action = tuple[str, int]
# For each action on a message: its receives, its deletes, and if it leaves the backlog (0 or 1).
# "handle_twice": the visibility timeout ends, and a second consumer receives and deletes it too.
# "delete_twice": one consumer deletes twice with one receipt handle.
# "vanish": the message is purged, expires, or moves to a DLQ.
COUNTS_BY_ACTION = {
    "handle": (1, 1, 1),
    "handle_twice": (2, 2, 1),
    "delete_twice": (1, 2, 1),
    "fail": (1, 0, 0),
    "vanish": (0, 0, 1),
}


def summarize_window(
    hours: float, is_new: bool = False, /, **series: Sequence[tuple[int, float]]
) -> Measurement | None:
    """Summarize datapoints, each given as its minute since SINCE and its value."""
    points_by_key = {}
    for key, points in series.items():
        points_by_key[key] = [(SINCE + minute * MINUTE, value) for minute, value in points]
    return summarize_series(points_by_key, Window(SINCE, SINCE + hours * HOUR, is_new))


def summarize_known_window(
    hours: float, is_new: bool = False, /, **series: Sequence[tuple[int, float]]
) -> Measurement:
    measured = summarize_window(hours, is_new, **series)
    assert measured is not None
    return measured


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
            times = wanted if action == "send" else min(wanted, backlog)
            received, deleted, gone = COUNTS_BY_ACTION.get(action, (0, 0, -1))
            counts.update(received=received * times, deleted=deleted * times)
            if action == "send":
                counts["sent"] += times
            backlog -= gone * times
            if number <= gauged_after:
                gauge = backlog
        series["visible"].append((minute, gauge))
        for key in ("sent", "received", "deleted"):
            series[key].append((minute, counts[key]))
    return summarize_known_window(6, is_new, **series)


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
def test_surplus_deletes_between_two_quiet_minutes_are_exactly_the_second_deletes(
    minutes: list[list[Action]], gauged_after: int
) -> None:
    measured = simulate_queue([[], *minutes, []], gauged_after)
    assert measured.surplus_deletes == measured.deleted // 2
    assert measured.has_consumer_race == (measured.surplus_deletes > max(20, 0.05 * measured.sent))


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


@pytest.mark.parametrize("begins", [0, 1, 2])
def test_new_queue_is_counted_from_zero_only_if_sqs_reported_it_within_two_minutes(
    begins: int,
) -> None:
    """If SQS reports a queue later, consumers may have handled messages before."""
    minutes: list[list[Action]] = [[("send", 300), ("handle_twice", 300)], []]
    measured = simulate_queue(minutes, 4, begins, is_new=True)
    assert (measured.surplus_deletes, measured.before) == (300 if begins < 2 else -300, Gauges())
    series = {"sent": [(0, 300)], "received": [(0, 900)], "visible": [(begins, 0), (5, 0)]}
    new = summarize_known_window(1, True, **series)
    assert new.count_dead_messages(3) == (300 if begins < 2 else 0)
    old = summarize_known_window(1, False, **series)
    assert old.count_dead_messages(3) == 0


def test_messages_sent_in_the_first_minute_are_not_counted_twice_through_the_backlog() -> None:
    """They are in the sends and in the backlog of that minute."""
    measured = simulate_queue([[("send", 120)], *[[("handle_twice", 12)]] * 10, []], gauged_after=1)
    assert measured.sent + measured.before.backlog == 120 - 12, "since a minute without sends"
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


RACE = examples.measurement(sent=100, received=200, deleted=200)
LATE = examples.measurement(received=60, deleted=60, backlog_before=4, backlog_now=4)


@pytest.mark.parametrize(
    ("counted", "has_race"),
    [
        (examples.measurement(sent=100, received=120, deleted=120), False),
        (examples.measurement(sent=100, received=121, deleted=121), True),
        (examples.measurement(sent=1_000, received=1_050, deleted=1_050), False),
        (examples.measurement(sent=1_000, received=1_051, deleted=1_051), True),
        # Deletes that may have come after the last backlog, or beyond inexact receives.
        (replace(RACE, deletes_after_last_backlog=79), True),
        (replace(RACE, deletes_after_last_backlog=80), False),
        (
            examples.measurement(sent=100, received=180, deleted=180 + COUNTER_TOLERANCE_MESSAGES),
            True,
        ),
        (
            examples.measurement(sent=100, received=180, deleted=181 + COUNTER_TOLERANCE_MESSAGES),
            False,
        ),
        # Messages arrived without a send, as in a DLQ, and consumers may have handled some.
        (examples.measurement(received=300, deleted=300, backlog_now=700), False),
        # Every delete came too late, so the backlog did not shrink. In the second case a message
        # arrived without a send.
        (LATE, True),
        (examples.measurement(LATE, backlog_now=5), False),
    ],
)
def test_consumer_race_needs_surplus_deletes_that_no_other_cause_explains(
    counted: Measurement, *, has_race: bool
) -> None:
    assert counted.has_consumer_race is has_race


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


def test_window_is_the_last_six_hours_and_begins_after_the_last_change() -> None:
    window = Window.choose(NOW, None, HOUR)
    assert window is not None
    assert window.until - window.since == LONGEST_WINDOW
    assert NOW - window.until >= CLOUDWATCH_LAG
    changed = Window.choose(NOW, NOW - 2 * HOUR, HOUR)
    assert changed is not None
    assert changed.since == (NOW - 2 * HOUR).replace(second=0) + MINUTE
    new = Window.choose(NOW, NOW - 2 * HOUR, HOUR, is_new=True)
    assert new == Window((NOW - 2 * HOUR).replace(second=0), changed.until, begins_empty=True)
    assert Window.choose(NOW, NOW - LONGEST_WINDOW - HOUR, HOUR, is_new=True) == window
    for minutes in (-30, 0, 62):
        assert Window.choose(NOW, NOW - minutes * MINUTE, HOUR) is None, "it says nothing yet"


@given(
    st.none() | st.timedeltas(timedelta(days=-9), timedelta(days=1)),
    st.timedeltas(CLOUDWATCH_LAG, LONGEST_WINDOW),
)
def test_window_always_lies_between_the_last_change_and_cloudwatchs_lag(
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
def test_summary_is_none_if_a_datapoint_is_negative_infinite_or_nan(key: str, value: float) -> None:
    valid: dict[str, list[tuple[int, float]]] = {"sent": [(0, 500)], "deleted": [(9, 500)]}
    assert summarize_window(2, **{**valid, key: [(5, value)]}) is None
    outside = [*valid.get(key, []), (130, value)]
    assert summarize_window(2, **{**valid, key: outside}), "outside of the window"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, 43_201.0])
def test_invalid_processing_time_that_a_caller_published_drops_only_that_metric(
    value: float,
) -> None:
    counted = summarize_known_window(2, sent=[(0, 500)], processing=[(0, value)])
    assert (counted.sent, counted.processing_p99_seconds) == (500, None)
    among = summarize_known_window(
        2, sent=[(0, 500)], processing=[(-30, 41.5), (30, 12), (90, value)]
    )
    assert among.processing_p99_seconds == 41.5, "of the hour in which the window begins too"


def test_summary_sums_counts_and_reads_the_gauges_at_both_ends_of_the_window() -> None:
    measured = summarize_known_window(
        2, sent=[(0, 3), (119, 4), (120, 100)], deleted=[(5, 2)], empty=[(6, 9)]
    )
    assert (measured.sent, measured.received, measured.deleted, measured.empty_receives) == (
        7,
        0,
        2,
        9,
    )
    measured = summarize_known_window(
        2,
        visible=[(60, 1), (0, 4), (119, 6)],
        in_flight=[(0, 10), (119, 20)],
        delayed=[(0, 100), (119, 200)],
        age=[(0, 30), (119, 7_000)],
        groups=[(0, 3), (5, 1)],
    )
    assert measured.before == Gauges(114, 4, 10, 30, 3)
    assert measured.now == Gauges(226, 6, 20, 7_000, 1)
    assert measured.fewest_visible_messages == 1
    now = summarize_known_window(
        2, visible=[(0, 9)], noisy=[(119, 2)], quiet=[(119, 7)], quiet_age=[(119, 60)]
    ).now
    assert (now.noisy_groups, now.quiet_visible, now.quiet_oldest_age_seconds) == (2, 7, 60)


def make_measurement_with_last_delete_at(minute: int, every: int) -> Measurement:
    """Make six hours with two sends and two receives a minute. The deletes end at `minute`."""
    steady = [(n, 2) for n in range(360)]
    return summarize_known_window(
        6,
        sent=steady,
        received=steady,
        deleted=[(n, 2 * every) for n in range(minute % every, minute + 1, every)],
        visible=[(0, 0), (359, 4)],
    )


@pytest.mark.parametrize(
    ("minute", "every", "has_stopped"),
    [(355, 1, True), (356, 1, False), (348, 5, True), (352, 5, False), (343, 20, True)],
)
def test_consumers_have_stopped_finishing_after_a_pause_twice_as_long_as_any_before(
    minute: int, every: int, has_stopped: bool
) -> None:
    measured = make_measurement_with_last_delete_at(minute, every)
    assert measured.pause == timedelta(minutes=359 - minute)
    assert measured.longest_pause_between_deletes == timedelta(minutes=every - 1)
    assert measured.has_stopped_finishing is has_stopped


def test_receives_after_the_last_delete_do_not_count_as_receives_per_finished_message() -> None:
    quiet = summarize_known_window(
        6,
        sent=[(0, 10), (5, 10), (200, 2)],
        received=[(5, 10), (6, 10), *[(n, 2) for n in range(201, 360)]],
        deleted=[(6, 10), (7, 10)],
        visible=[(0, 0), (100, 0), (201, 1), (359, 1)],
        in_flight=[(0, 0), (100, 0), (201, 1), (359, 1)],
    )
    assert (quiet.sent_since_delete, quiet.received_since_delete) == (2, 318)
    assert quiet.has_stopped_finishing
    assert quiet.receives_per_finished() == 1.0
    assert (quiet.fewest_messages, quiet.usual_messages) == (0, 1)
    last = quiet.recent.half_hours[-1]
    assert (last.until - last.since, last.fewest_messages, last.received) == (HOUR / 2, 2, 60)
    assert len(quiet.recent.half_hours) == 6, "SQS reported nothing in earlier half hours"
    nothing = summarize_known_window(1, sent=[(0, 1)], received=[(5, 3)], visible=[(0, 1)])
    assert nothing.receives_per_finished() is None
    assert not nothing.has_stopped_finishing, "it may be one bad message"


def test_recent_counts_cover_only_the_last_hour() -> None:
    measured = summarize_known_window(
        6, received=[(299, 5), (300, 7), (359, 1)], deduplicated=[(10, 3), (301, 2)]
    )
    assert (measured.recent.received, measured.recent.deduplicated) == (8, 2)
    assert measured.recent.standstill is None


@pytest.mark.parametrize(
    ("ages", "minutes"),
    [
        ([(n, 60 * n) for n in range(120)], 119),
        ([(n, 60 * max(0, n - 60)) for n in range(120)], 60),
        ([(n, 3) for n in range(120)], None),
        ([(n, 55 * n) for n in range(120)], 12),
        ([(n, 60 * n) for n in range(119)] + [(119, 0)], None),
        ([(5, 300)], None),
    ],
    ids=["all the while", "for an hour", "always new", "moves on slowly", "is gone", "one point"],
)
def test_standstill_is_the_time_in_which_the_oldest_messages_age_grew_without_a_break(
    ages: list[tuple[int, float]], minutes: int | None
) -> None:
    still = summarize_known_window(2, age=ages).recent.standstill
    assert (still and (still.until - still.since) // MINUTE - 1) == minutes


POINTS = st.lists(st.tuples(st.integers(-10, 130), st.integers(0, 10**6).map(float)), max_size=8)


@given(st.dictionaries(st.sampled_from(sorted(select_series(["every queue", "FIFO"]))), POINTS))
def test_summary_does_not_depend_on_the_order_of_datapoints(
    points: dict[str, list[tuple[int, float]]],
) -> None:
    unique_points = {key: list(dict(pairs).items()) for key, pairs in points.items()}
    measured = summarize_window(2, **unique_points)
    reversed_points = {key: pairs[::-1] for key, pairs in unique_points.items()}
    assert measured == summarize_window(2, **reversed_points)
    if measured is not None:
        fewest = min(measured.before.visible, measured.now.visible)
        assert measured.fewest_visible_messages <= fewest
        assert measured.now.visible + measured.now.in_flight <= measured.now.backlog
