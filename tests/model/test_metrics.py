"""What a window's datapoints amount to, and what the counters of a queue mean, played through."""

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
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
Happening = tuple[str, int]
# Of each message: how often it is received, deleted, and gone from the backlog. Handled twice, its
# visibility timeout ends and another consumer receives and deletes it too; deleted twice, one
# consumer retries with one handle; what vanishes is purged, expired, or moved to a DLQ.
HAPPENINGS = {
    "handle": (1, 1, 1),
    "handle_twice": (2, 2, 1),
    "delete_twice": (1, 2, 1),
    "fail": (1, 0, 0),
    "vanish": (0, 0, 1),
}


def in_window(
    hours: float, is_new: bool = False, /, **series: Sequence[tuple[int, float]]
) -> Measurement | None:
    """What the datapoints, by the minute since SINCE, amount to."""
    points = {key: [(SINCE + n * MINUTE, v) for n, v in each] for key, each in series.items()}
    return summarize_series(points, Window(SINCE, SINCE + hours * HOUR, is_new))


def known(
    hours: float, is_new: bool = False, /, **series: Sequence[tuple[int, float]]
) -> Measurement:
    found = in_window(hours, is_new, **series)
    assert found is not None
    return found


def played(
    minutes: Sequence[Sequence[Happening]],
    gauged_after: int,
    begins: int = 0,
    *,
    is_new: bool = False,
) -> Measurement:
    """A queue played through; each minute's backlog is what it is after so many happenings."""
    backlog, series = 0, defaultdict[str, list[tuple[int, float]]](list)
    for n, happenings in enumerate(minutes, begins):
        counts, gauge = Counter[str](), backlog
        for done, (what, wanted) in enumerate(happenings, 1):
            times = wanted if what == "send" else min(wanted, backlog)
            received, deleted, gone = HAPPENINGS.get(what, (0, 0, -1))
            counts.update(received=received * times, deleted=deleted * times)
            counts["sent"] += times * (what == "send")
            backlog -= gone * times
            gauge = backlog if done <= gauged_after else gauge
        series["visible"].append((n, gauge))
        for key in ("sent", "received", "deleted"):
            series[key].append((n, counts[key]))
    return known(6, is_new, **series)


def minutes_of(*what: str) -> st.SearchStrategy[list[list[Happening]]]:
    happening = st.tuples(st.sampled_from(what), st.integers(0, 500))
    return st.lists(st.lists(happening, max_size=4), min_size=1, max_size=20)


@given(minutes_of("send", "handle", "fail", "vanish"), st.integers(0, 4), st.booleans())
def test_messages_that_were_handled_once_are_no_race_in_whatever_order(
    minutes: list[list[Happening]],
    gauged_after: int,
    is_new: bool,
) -> None:
    found = played(minutes, gauged_after, is_new=is_new)
    assert found.surplus_deletes <= 0
    assert not found.has_consumer_race


@given(minutes_of("send", "handle", "delete_twice", "vanish"))
def test_one_handle_that_is_deleted_twice_is_no_race(minutes: list[list[Happening]]) -> None:
    assert not played([[], *minutes, []], 4).has_consumer_race


@given(minutes_of("send", "handle_twice"), st.integers(0, 4))
def test_between_two_quiet_minutes_every_second_delete_is_seen(
    minutes: list[list[Happening]], gauged_after: int
) -> None:
    found = played([[], *minutes, []], gauged_after)
    assert found.surplus_deletes == found.deleted // 2
    assert found.has_consumer_race == (found.surplus_deletes > max(20, 0.05 * found.sent))


@given(
    st.lists(
        st.tuples(*[st.integers(0, 29)] * 3, st.integers(1, 3_000)).map(
            lambda each: (*sorted(each[:3]), each[3])
        ),
        max_size=8,
    ),
    st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_a_batch_that_is_sent_received_and_deleted_once_is_no_race(
    batches: list[tuple[int, int, int, int]], at_the_end: list[bool]
) -> None:
    """Whenever that is, and whether SQS looks at the beginning of a minute or at its end."""
    series = defaultdict[str, list[tuple[int, float]]](list)
    for n, ends in enumerate(at_the_end):
        visible = sum(e[3] for e in batches if e[0] < n + ends <= e[1])
        in_flight = sum(e[3] for e in batches if e[1] < n + ends <= e[2])
        series["visible"].append((n, visible))
        series["in_flight"].append((n, in_flight))
        for key, which in (("sent", 0), ("received", 1), ("deleted", 2)):
            series[key].append((n, sum(each[3] for each in batches if each[which] == n)))
    found = known(0.5, **series)
    assert found.surplus_deletes <= 0
    assert not found.has_consumer_race


@pytest.mark.parametrize("begins", [0, 1, 2])
def test_all_is_counted_of_a_new_queue_that_was_reported_at_once(begins: int) -> None:
    """What SQS began to report late may have been sent, received and deleted before."""
    minutes: list[list[Happening]] = [[("send", 300), ("handle_twice", 300)], []]
    found = played(minutes, 4, begins, is_new=True)
    assert (found.surplus_deletes, found.before) == (300 if begins < 2 else -300, Gauges())
    died = {"sent": [(0, 300)], "received": [(0, 900)], "visible": [(begins, 0), (5, 0)]}
    dead = [known(1, is_new, **died).count_dead_messages(3) for is_new in (True, False)]
    assert dead == [300 if begins < 2 else 0, 0]


def test_what_was_sent_in_the_first_minute_is_counted_once() -> None:
    """It is in that minute's backlog as well."""
    found = played([[("send", 120)], *[[("handle_twice", 12)]] * 10, []], gauged_after=1)
    assert found.sent + found.before.backlog == 120 - 12, "since a minute without sends"
    assert found.surplus_deletes == 9 * 12
    assert found.has_consumer_race


@pytest.mark.parametrize(
    "minutes",
    [
        # One minute's deletes are more than counters are inexact by.
        [[("send", 30_000)], *[[("handle", 80)]] * 359],
        [*[[]] * 357, [("send", 1_000)], [("handle", 1_000)]],
        [[("send", 500), ("handle", 500)]],
    ],
    ids=["emptied", "a burst at the end", "a single minute"],
)
def test_what_is_handled_beside_a_gauge_is_no_race(minutes: list[list[Happening]]) -> None:
    for gauged_after in (0, 1):
        assert not played(minutes, gauged_after).has_consumer_race


RACE = examples.measurement(sent=100, received=200, deleted=200)
LATE = examples.measurement(received=60, deleted=60, backlog_before=4, backlog_now=4)


@pytest.mark.parametrize(
    ("counted", "races"),
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
        # Nobody sent them: DLQ messages arrive so, and some may be handled meanwhile.
        (examples.measurement(received=300, deleted=300, backlog_now=700), False),
        # Every delete came too late: no message is gone yet; but one came without being sent.
        (LATE, True),
        (examples.measurement(LATE, backlog_now=5), False),
    ],
)
def test_a_race_is_a_surplus_that_nothing_else_explains(
    counted: Measurement, *, races: bool
) -> None:
    assert counted.has_consumer_race is races


COUNTED = (
    *("sent", "received", "deleted", "backlog_before", "backlog_now"),
    *("in_flight_now", "oldest_age_seconds_now", "groups_in_flight_now"),
)
ANY = st.builds(examples.measurement, **dict.fromkeys(COUNTED, st.integers(0, 100_000)))


@given(ANY, st.booleans(), st.booleans())
def test_a_race_is_never_a_consumer_that_fails(
    counted: Measurement, fails: bool, fifo: bool
) -> None:
    function = LambdaConsumer("arn:f", 30, 0, 0.1, error_share=float(fails))
    arn = examples.QUEUE_ARN if fifo else examples.STANDARD_ARN
    facts = examples.standard_queue(measurement=counted, lambda_consumers=(function,))
    entries = (VISIBILITY_TIMEOUT_TOO_SHORT, CONSUMER_FAILING)
    at = replace(facts, queue_arn=arn)
    assert None in [each.detection.detect(at) for each in entries if each.detection]


def test_a_queue_is_measured_for_six_hours_and_never_over_a_change() -> None:
    window, later = (Window.choose(NOW, at, HOUR) for at in (None, NOW - 2 * HOUR))
    assert window is not None
    assert (window.until - window.since, NOW - window.until >= CLOUDWATCH_LAG) == (
        LONGEST_WINDOW,
        True,
    )
    assert later is not None
    assert later.since == (NOW - 2 * HOUR).replace(second=0) + MINUTE
    new = Window.choose(NOW, NOW - 2 * HOUR, HOUR, is_new=True)
    assert new == Window((NOW - 2 * HOUR).replace(second=0), later.until, begins_empty=True)
    assert Window.choose(NOW, NOW - LONGEST_WINDOW - HOUR, HOUR, is_new=True) == window
    for minutes in (-30, 0, 62):
        assert Window.choose(NOW, NOW - minutes * MINUTE, HOUR) is None, "it says nothing yet"


@given(
    st.none() | st.timedeltas(timedelta(days=-9), timedelta(days=1)),
    st.timedeltas(CLOUDWATCH_LAG, LONGEST_WINDOW),
)
def test_a_window_lies_between_the_change_and_what_cloudwatch_has(
    changed: timedelta | None, shortest: timedelta
) -> None:
    settled_at = None if changed is None else NOW + changed
    window = Window.choose(NOW, settled_at, shortest)
    if window is not None:
        assert window.until <= NOW - CLOUDWATCH_LAG
        assert settled_at is None or window.since >= settled_at
        assert shortest <= window.until - window.since <= LONGEST_WINDOW
        assert (window.since.second, window.until.second) == (0, 0)


def test_cloudwatch_that_knows_nothing_measures_nothing() -> None:
    assert in_window(2) is None
    assert in_window(2, sent=[], visible=[]) is None
    assert in_window(2, sent=[(-1, 5), (120, 7)]) is None, "outside of the window"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -1.0])
@pytest.mark.parametrize("key", ["deleted", "visible"])
def test_a_value_that_no_queue_can_have_measures_nothing(key: str, value: float) -> None:
    known: dict[str, list[tuple[int, float]]] = {"sent": [(0, 500)], "deleted": [(9, 500)]}
    assert in_window(2, **{**known, key: [(5, value)]}) is None
    assert in_window(2, **{**known, key: [*known.get(key, []), (130, value)]}), "outside"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, 43_201.0])
def test_what_anybody_may_publish_costs_itself_alone(value: float) -> None:
    counted = known(2, sent=[(0, 500)], processing=[(0, value)])
    assert (counted.sent, counted.processing_p99_seconds) == (500, None)
    among = known(2, sent=[(0, 500)], processing=[(-30, 41.5), (30, 12), (90, value)])
    assert among.processing_p99_seconds == 41.5, "of the hour in which the window begins too"


def test_counts_are_summed_and_a_backlog_is_all_that_is_there_at_both_ends() -> None:
    found = known(2, sent=[(0, 3), (119, 4), (120, 100)], deleted=[(5, 2)], empty=[(6, 9)])
    assert (found.sent, found.received, found.deleted, found.empty_receives) == (7, 0, 2, 9)
    found = known(
        2,
        visible=[(60, 1), (0, 4), (119, 6)],
        in_flight=[(0, 10), (119, 20)],
        delayed=[(0, 100), (119, 200)],
        age=[(0, 30), (119, 7_000)],
        groups=[(0, 3), (5, 1)],
    )
    assert found.before == Gauges(114, 4, 10, 30, 3)
    assert found.now == Gauges(226, 6, 20, 7_000, 1)
    assert found.fewest_visible_messages == 1
    now = known(2, visible=[(0, 9)], noisy=[(119, 2)], quiet=[(119, 7)], quiet_age=[(119, 60)]).now
    assert (now.noisy_groups, now.quiet_visible, now.quiet_oldest_age_seconds) == (2, 7, 60)


def with_last_delete_at(minute: int, every: int) -> Measurement:
    """Six hours of two sends and two receives a minute; the deletes end at `minute`."""
    steady = [(n, 2) for n in range(360)]
    return known(
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
def test_consumers_have_stopped_finishing_after_a_pause_longer_than_any_before(
    minute: int, every: int, has_stopped: bool
) -> None:
    measured = with_last_delete_at(minute, every)
    assert measured.pause == timedelta(minutes=359 - minute)
    assert measured.longest_pause_between_deletes == timedelta(minutes=every - 1)
    assert measured.has_stopped_finishing is has_stopped


def test_receives_after_the_last_delete_are_no_finished_message_s() -> None:
    quiet = known(
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
    last = quiet.recent.stretches[-1]
    assert (last.until - last.since, last.fewest_messages, last.received) == (HOUR / 2, 2, 60)
    assert len(quiet.recent.stretches) == 6, "SQS reported nothing in earlier half hours"
    nothing = known(1, sent=[(0, 1)], received=[(5, 3)], visible=[(0, 1)])
    assert nothing.receives_per_finished() is None
    assert not nothing.has_stopped_finishing, "it may be one bad message"


def test_what_was_lately_is_of_the_last_hour() -> None:
    found = known(6, received=[(299, 5), (300, 7), (359, 1)], deduplicated=[(10, 3), (301, 2)])
    assert (found.recent.received, found.recent.deduplicated) == (8, 2)
    assert found.recent.standstill is None


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
def test_the_oldest_is_followed_back(ages: list[tuple[int, float]], minutes: int | None) -> None:
    still = known(2, age=ages).recent.standstill
    assert (still and (still.until - still.since) // MINUTE - 1) == minutes


POINTS = st.lists(st.tuples(st.integers(-10, 130), st.integers(0, 10**6).map(float)), max_size=8)


@given(st.dictionaries(st.sampled_from(sorted(select_series(["every queue", "FIFO"]))), POINTS))
def test_whatever_cloudwatch_says_the_order_of_its_points_says_nothing(
    points: dict[str, list[tuple[int, float]]],
) -> None:
    once = {key: [*dict(each).items()] for key, each in points.items()}
    found = in_window(2, **once)
    assert found == in_window(2, **{key: each[::-1] for key, each in once.items()})
    if found is not None:
        assert found.fewest_visible_messages <= min(found.before.visible, found.now.visible)
        assert found.now.visible + found.now.in_flight <= found.now.backlog
