"""What the counters of a queue mean: each thing that happens, played through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.model.facts import LambdaConsumer
from mendq.model.metrics import SURPLUS_MESSAGES, Measured

COUNTED = (
    *("sent", "received", "deleted", "backlog_before", "backlog_now"),
    *("in_flight_now", "oldest_age_seconds_now", "groups_in_flight_now"),
)
MEASURED = st.builds(examples.measured, **dict.fromkeys(COUNTED, st.integers(0, 100_000)))
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


def played(before: int, history: Iterable[tuple[str, int]]) -> Measured:
    """A standard queue and its counters, one happening after the other."""
    backlog, counted = before, dict.fromkeys(("sent", "received", "deleted"), 0)
    for what, wanted in history:
        if what == "send":
            counted["sent"] += wanted
            backlog += wanted
            continue
        times = min(wanted, backlog)
        received, deleted, gone = HAPPENINGS[what]
        counted["received"] += received * times
        counted["deleted"] += deleted * times
        backlog -= gone * times
    return examples.measured(**counted, backlog_before=before, backlog_now=backlog)


def happenings(*what: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    return st.lists(st.tuples(st.sampled_from(what), st.integers(0, 2_000)), max_size=30)


BACKLOG = st.integers(0, 5_000)


@given(BACKLOG, happenings("send", "handle", "fail", "vanish"))
def test_what_vanishes_or_fails_never_reads_like_a_race(
    before: int, history: list[tuple[str, int]]
) -> None:
    measured = played(before, history)
    assert measured.surplus_deletes <= 0
    assert not measured.has_surplus
    assert not measured.shows_a_race


@given(BACKLOG, happenings("send", "handle", "delete_twice", "vanish"))
def test_one_handle_that_is_deleted_twice_is_no_race(
    before: int, history: list[tuple[str, int]]
) -> None:
    assert not played(before, history).shows_a_race


@given(BACKLOG, happenings("send", "handle", "handle_twice"))
def test_messages_that_were_handled_twice_are_a_race_once_they_are_enough(
    before: int, history: list[tuple[str, int]]
) -> None:
    measured = played(before, history)
    twice = measured.received - (before + measured.sent - measured.now.backlog)
    assert measured.surplus_deletes == twice
    assert measured.shows_a_race == (twice > max(20, 0.05 * measured.sent))


@pytest.mark.parametrize(
    ("sent", "surplus", "has"),
    [(100, 20, False), (100, 21, True), (400, 20, False), (1_000, 50, False), (1_000, 51, True)],
)
def test_a_surplus_is_more_than_counters_are_inexact_by(sent: int, surplus: int, has: bool) -> None:
    measured = examples.measured(sent=sent, received=sent + surplus, deleted=sent + surplus)
    assert measured.has_surplus is has
    assert measured.shows_a_race is has


def test_a_backlog_that_nobody_sent_is_no_delete() -> None:
    """DLQ messages arrive so; some of them may be handled meanwhile."""
    arrived = examples.measured(received=300, deleted=300, backlog_now=700)
    assert arrived.has_surplus
    assert not arrived.shows_a_race


def test_where_every_delete_came_too_late_all_of_them_are_surplus() -> None:
    """No message is gone yet: each delete was of a handle that had run out."""
    race = examples.measured(received=60, deleted=60, backlog_before=4, backlog_now=4)
    assert race.surplus_deletes == race.deleted
    assert race.shows_a_race
    assert not examples.measured(
        received=60, deleted=60, backlog_before=4, backlog_now=5
    ).shows_a_race, "one came without being sent"


def test_deletes_that_may_have_come_after_the_last_backlog_are_no_surplus() -> None:
    race = examples.measured(sent=100, received=200, deleted=200, deleted_unsure=79)
    assert race.shows_a_race
    assert not replace(race, deleted_unsure=80).shows_a_race


def test_deletes_beyond_receives_may_be_inexact_as_well() -> None:
    race = examples.measured(sent=100, received=180, deleted=180 + SURPLUS_MESSAGES)
    assert race.shows_a_race
    assert not replace(race, deleted=race.deleted + 1).shows_a_race


@given(MEASURED, st.booleans(), st.booleans())
def test_a_race_is_never_a_consumer_that_fails(
    measured: Measured, fails: bool, is_fifo: bool
) -> None:
    function = LambdaConsumer("arn:f", 30, 0, 0.1, error_share=1.0 if fails else 0.0)
    arn = examples.QUEUE_ARN if is_fifo else examples.STANDARD_ARN
    facts = replace(
        examples.queue(queue_arn=arn),
        measured=measured,
        lambda_consumers=(function,),
        dlq_sources=(),
    )
    assert CONSUMER_FAILING.detection is not None
    assert VISIBILITY_TIMEOUT_TOO_SHORT.detection is not None
    found = (
        VISIBILITY_TIMEOUT_TOO_SHORT.detection.detect(facts),
        CONSUMER_FAILING.detection.detect(facts),
    )
    assert None in found


def test_what_is_still_in_flight_is_not_in_vain_yet() -> None:
    assert examples.measured(received=100, deleted=40, in_flight_now=50).fruitless_receives == 10
    assert examples.measured(received=100, deleted=40, in_flight_now=90).fruitless_receives == 0


@pytest.mark.parametrize(("now", "still"), [(22_199, True), (20_040, True), (20_039, False)])
def test_an_oldest_message_that_ages_with_the_clock_is_the_same_one(now: int, still: bool) -> None:
    measured = examples.measured(oldest_age_seconds_before=600, oldest_age_seconds_now=now)
    assert measured.oldest_stands_still is still


BLOCKED = {
    "received": 50,
    "deleted": 2,
    "in_flight_now": 10,
    "groups_in_flight_now": 1,
    "oldest_age_seconds_now": 21_600,
}


def test_a_group_that_is_tried_five_times_and_never_done_blocks() -> None:
    assert examples.measured(**BLOCKED).one_group_blocks


@pytest.mark.parametrize(
    "over",
    [
        {"received": 49},
        {"deleted": 3},
        {"in_flight_now": 11},
        {"groups_in_flight_now": 2},
        {"groups_in_flight_now": None},
        {"oldest_age_seconds_now": 19_000},
    ],
)
def test_what_else_may_be_going_on_blocks_no_group(over: dict[str, int]) -> None:
    assert not examples.measured(**{**BLOCKED, **over}).one_group_blocks
