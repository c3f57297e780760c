"""What a window's counts say, wherever within its minute SQS measures a backlog."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.metrics import Measured, Window, measured

SINCE = datetime(2026, 11, 16, 3, tzinfo=UTC)
Happening = tuple[str, int]


def _played(
    minutes: Sequence[Sequence[Happening]], gauged_after: int, *, since: datetime = SINCE
) -> Measured:
    """A queue played through; each minute's backlog is what it is after so many happenings."""
    backlog = 0
    series = defaultdict[str, list[tuple[datetime, float]]](list)
    for n, happenings in enumerate(minutes):
        at, counts = SINCE + timedelta(minutes=n), Counter[str]()
        gauge = backlog
        for done, (what, wanted) in enumerate(happenings, 1):
            times = wanted if what == "send" else min(wanted, backlog)
            backlog += times if what == "send" else -times
            counts["sent"] += times * (what == "send")
            counts["received"] += times * {"handle": 1, "handle_twice": 2}.get(what, 0)
            counts["deleted"] += times * {"handle": 1, "handle_twice": 2}.get(what, 0)
            gauge = backlog if done <= gauged_after else gauge
        series["visible"].append((at, gauge))
        for key in ("sent", "received", "deleted"):
            series[key].append((at, counts[key]))
    found = measured(series, Window(since, SINCE + timedelta(hours=6)))
    assert found is not None
    return found


def _minutes(*what: str) -> st.SearchStrategy[list[list[Happening]]]:
    happening = st.tuples(st.sampled_from(what), st.integers(0, 500))
    return st.lists(st.lists(happening, max_size=4), min_size=1, max_size=20)


@given(_minutes("send", "handle", "vanish"), st.integers(0, 4))
def test_no_order_within_a_minute_makes_a_race_of_messages_that_were_handled_once(
    minutes: list[list[Happening]], gauged_after: int
) -> None:
    found = _played(minutes, gauged_after)
    assert found.surplus_deletes <= 0
    assert not found.shows_a_race


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
    series = defaultdict[str, list[tuple[datetime, float]]](list)
    for n, ends in enumerate(at_the_end):
        at, known = SINCE + timedelta(minutes=n), n + ends
        visible = sum(many for sent, received, _, many in batches if sent < known <= received)
        in_flight = sum(
            many for _, received, deleted, many in batches if received < known <= deleted
        )
        series["visible"].append((at, visible))
        series["in_flight"].append((at, in_flight))
        for key, which in (("sent", 0), ("received", 1), ("deleted", 2)):
            series[key].append((at, sum(each[3] for each in batches if each[which] == n)))
    found = measured(series, Window(SINCE, SINCE + timedelta(minutes=30)))
    assert found is not None
    assert found.surplus_deletes <= 0
    assert not found.shows_a_race


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("first", range(60))
def test_an_hourly_batch_is_no_race(first: int, *, at_the_end: bool) -> None:
    """Whichever minute of it is the window's first."""
    series = defaultdict[str, list[tuple[datetime, float]]](list)
    for n in range(360):
        at, minute = SINCE + timedelta(minutes=n), (first + n) % 60
        handled = 3_000 * (minute == 27)
        series["sent"].append((at, 3_000 * (minute == 26)))
        series["received"].append((at, handled))
        series["deleted"].append((at, handled))
        series["visible"].append((at, 3_000 * (minute == (26 if at_the_end else 27))))
    found = measured(series, Window(SINCE, SINCE + timedelta(hours=6)))
    assert found is not None
    assert not found.shows_a_race


@given(_minutes("send", "handle_twice"), st.integers(0, 4))
def test_between_two_quiet_minutes_every_second_delete_is_seen(
    minutes: list[list[Happening]], gauged_after: int
) -> None:
    found = _played([[], *minutes, []], gauged_after)
    assert found.surplus_deletes == found.deleted // 2


def test_what_was_sent_in_the_first_minute_is_counted_once() -> None:
    """It is in that minute's backlog as well."""
    sent, each_twice = [("send", 120)], [("handle_twice", 12)]
    found = _played([sent, *[each_twice] * 10, []], gauged_after=1)
    assert found.sent + found.before.backlog == 120 - 12, "since a minute without sends"
    assert found.surplus_deletes == 9 * 12
    assert found.shows_a_race


def test_a_queue_that_is_being_emptied_is_no_race() -> None:
    """One minute's deletes are more than counters are inexact by."""
    minutes = [[("send", 30_000)], *[[("handle", 80)]] * 359]
    for gauged_after in (0, 1):
        found = _played(minutes, gauged_after)
        assert found.deleted > 28_000
        assert not found.shows_a_race


def test_a_burst_that_is_handled_in_the_last_minute_is_no_race() -> None:
    minutes = [*[[]] * 357, [("send", 1_000)], [("handle", 1_000)]]
    assert not _played(minutes, gauged_after=0).shows_a_race


def test_a_single_minute_says_nothing_of_a_race() -> None:
    found = _played([[("send", 500), ("handle", 500)]], gauged_after=1)
    assert (found.sent, found.deleted, found.now.backlog) == (500, 500, 500)
    assert not found.has_surplus


def test_a_queue_whose_first_minutes_are_missing_began_silent() -> None:
    minutes = [[("send", 3)], []]
    begins = [SINCE - timedelta(minutes=n) for n in (0, 15, 16)]
    silent = [_played(minutes, 1, since=each).began_silent for each in begins]
    assert silent == [False, False, True]


def test_silence_was_an_empty_queue_for_dlq_alone() -> None:
    found = _played([[("send", 3)], []], 1, since=SINCE - timedelta(hours=2))
    assert (found.messages_risen, found.messages_arrived) == (3, 0), "somebody sent them"
    assert found.surplus_deletes == -3, "a race is not found by guessing"
