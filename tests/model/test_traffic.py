"""Test which queues must be measured, and whose sums are asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import DLQ_ARN, standard_queue
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Window
from mendq.model.traffic import (
    ACTIVE_HOURS,
    MARGIN_MESSAGES,
    SUM_SERIES,
    UNUSED_PAUSE_HOURS,
    QueueRecord,
    Sums,
    SumsShare,
    Traffic,
    Urgency,
    find_measuring_reason,
    must_measure,
    select_queues_for_sums,
    summarize_traffic,
)

NOW = datetime(2026, 11, 16, 10, tzinfo=UTC)
WINDOW = Window(NOW - timedelta(hours=6), NOW, kinds=("sums",))
HOUR = 500_000


def make_queue(messages: int = 0, **over: Any) -> Facts:
    return standard_queue(ApproximateNumberOfMessages=messages, measurement=None, **over)


def make_traffic(sent: int, received: int, deleted: int) -> Traffic:
    sums = Sums(sent, received, deleted)
    return Traffic(reported=sums, paired=sums)


def make_dlq(messages: int) -> QueueFacts:
    attributes = {"QueueArn": DLQ_ARN, "ApproximateNumberOfMessages": str(messages)}
    return QueueFacts(DLQ_ARN, attributes)


@pytest.mark.parametrize(
    ("sent", "received", "deleted", "urgency"),
    [
        (1_867, 9_335, 0, Urgency.MESSAGES_COME_BACK),
        (2_381, 4_356, 4_358, Urgency.MESSAGES_COME_BACK),
        (4_104, 0, 0, Urgency.MESSAGES_STAY),
        (40_000, 40_000 + MARGIN_MESSAGES, 40_000, None),
        (40_000, 40_000 + MARGIN_MESSAGES + 1, 40_000, Urgency.MESSAGES_COME_BACK),
        (40_000 + MARGIN_MESSAGES, 40_000, 40_000, None),
        (40_000 + MARGIN_MESSAGES + 1, 40_000, 40_000, Urgency.MESSAGES_STAY),
        (40_000, 40_000, 40_000 + MARGIN_MESSAGES, None),
        (40_000, 40_000, 40_000 + MARGIN_MESSAGES + 1, Urgency.MESSAGES_COME_BACK),
        (0, 0, 0, None),
    ],
)
def test_empty_queue_is_measured_if_two_sums_differ_by_more_than_a_few_messages(
    sent: int, received: int, deleted: int, urgency: Urgency | None
) -> None:
    reason = find_measuring_reason(make_queue(), make_traffic(sent, received, deleted), {})
    assert (reason.urgency if reason else None) is urgency


def test_gap_in_one_sum_does_not_hide_a_difference_in_the_reported_minutes() -> None:
    minutes = [NOW - timedelta(minutes=n) for n in range(1, 61)]
    received = [(minute, 10.0) for minute in minutes]
    deleted = [(minute, 10.0 if n % 2 else 9.0) for n, minute in enumerate(minutes)]
    gap = {"sent": deleted, "received": received[:57], "deleted": deleted}
    traffic = summarize_traffic(gap, WINDOW)
    assert traffic.reported.received == traffic.reported.deleted, "as if nothing came back"
    assert must_measure(make_queue(), traffic, {})


def test_sum_without_any_datapoint_is_a_gap_and_not_a_zero() -> None:
    points = {"sent": [], "received": [(NOW - timedelta(hours=1), 2.0)], "deleted": []}
    assert must_measure(make_queue(), summarize_traffic(points, WINDOW), {})


def test_queue_without_any_datapoint_is_not_reported_and_not_measured() -> None:
    traffic = summarize_traffic({}, WINDOW)
    assert not traffic.is_reported
    assert not must_measure(make_queue(), traffic, {})


def test_datapoints_outside_the_window_are_not_counted() -> None:
    outside = [(WINDOW.until, 50.0), (WINDOW.since - timedelta(minutes=1), 50.0)]
    traffic = summarize_traffic({"sent": outside, "received": [], "deleted": []}, WINDOW)
    assert not traffic.is_reported


@pytest.mark.parametrize(
    ("earlier", "now", "is_reason"), [(None, 1, True), (5, 6, True), (5, 5, False), (5, 4, False)]
)
def test_source_is_measured_if_its_dlq_gained_messages_since_it_was_judged(
    earlier: int | None, now: int, *, is_reason: bool
) -> None:
    facts = make_queue(dlq=make_dlq(now))
    history = {}
    if earlier is not None:
        history[facts.name] = QueueRecord(0, HOUR).with_judged_dlq(make_dlq(earlier))
    assert must_measure(facts, None, history) is is_reason


def test_source_is_measured_if_it_was_judged_with_another_dlq_that_held_more() -> None:
    facts = make_queue(dlq=make_dlq(1))
    other_dlq = replace(make_dlq(5), queue_arn=f"{DLQ_ARN}-old")
    history = {facts.name: QueueRecord(0, HOUR).with_judged_dlq(other_dlq)}
    assert must_measure(facts, None, history)


def test_count_of_the_dlqs_own_record_does_not_hide_its_messages_from_the_source() -> None:
    dlq = make_dlq(3)
    assert must_measure(make_queue(dlq=dlq), None, {dlq.name: QueueRecord(3, HOUR)})


def test_dlq_that_gained_messages_is_more_urgent_than_messages_that_wait() -> None:
    reason = find_measuring_reason(make_queue(7, dlq=make_dlq(1)), None, {})
    assert reason is not None
    assert (reason.urgency, reason.text) == (Urgency.MESSAGES_LEAVE, "its DLQ holds 1 message")


def test_gain_of_a_dlq_is_less_urgent_for_a_source_without_receives() -> None:
    """Anybody can make queues that name a DLQ, and send one message to it."""
    idle_sums = {series: [(WINDOW.since, 0.0)] for series in SUM_SERIES}
    idle_traffic = summarize_traffic(idle_sums, WINDOW)
    idle_reason = find_measuring_reason(make_queue(dlq=make_dlq(1)), idle_traffic, {})
    assert idle_reason is not None
    assert idle_reason.urgency > Urgency.MESSAGES_COME_BACK
    receives = summarize_traffic({**idle_sums, "received": [(WINDOW.since, 1.0)]}, WINDOW)
    reason = find_measuring_reason(make_queue(dlq=make_dlq(1)), receives, {})
    assert reason is not None
    assert reason.urgency is Urgency.MESSAGES_LEAVE


@pytest.mark.parametrize(
    ("earlier", "urgency"), [(6, Urgency.MESSAGES_STAY), (7, Urgency.MESSAGES_WAIT)]
)
def test_queue_with_messages_is_more_urgent_if_they_grew_since_the_last_scan(
    earlier: int, urgency: Urgency
) -> None:
    facts = make_queue(7)
    reason = find_measuring_reason(facts, None, {facts.name: QueueRecord(earlier, HOUR)})
    assert reason is not None
    assert reason.urgency is urgency


@pytest.mark.parametrize(
    ("idle_hours", "is_reason"), [(ACTIVE_HOURS - 1, True), (ACTIVE_HOURS, False)]
)
def test_empty_queue_with_a_disabled_mapping_is_measured_only_while_it_is_in_use(
    idle_hours: int, *, is_reason: bool
) -> None:
    facts = make_queue(
        stopped_consumers=("arn:aws:lambda:eu-central-1:123456789012:function:bill",)
    )
    record = QueueRecord(0, HOUR, active_hour=HOUR - idle_hours, sums_hour=HOUR)
    assert must_measure(facts, None, {facts.name: record}) is is_reason


def test_daily_limit_of_30000_metrics_pays_the_sums_of_500_queues_in_use() -> None:
    assert SumsShare.of_daily_limit(30_000) == SumsShare(in_use=500, unused=83)


def test_daily_limit_of_zero_asks_no_sums_and_names_every_queue_as_waiting() -> None:
    turn = select_queues_for_sums(["a", "b"], {}, HOUR, SumsShare.of_daily_limit(0))
    assert turn.names == frozenset()
    assert turn.waiting_names == {"a", "b"}
    assert turn.longest_pause_hours == 0


@given(queue_count=st.integers(1, 60), most=st.integers(1, 20), turns=st.integers(1, 8))
def test_each_queue_in_use_that_is_empty_at_scans_has_its_turn_within_the_longest_pause(
    queue_count: int, most: int, turns: int
) -> None:
    names = [f"q-{n}" for n in range(queue_count)]
    history = dict[str, QueueRecord]()
    last_hour_by_name = dict.fromkeys(names, HOUR)
    for turn_number in range(1, turns * 4):
        hour = HOUR + 2 * turn_number
        turn = select_queues_for_sums(names, history, hour, SumsShare(most, 0))
        assert len(turn.names) <= most
        assert turn.names | turn.waiting_names == {*names}
        for name in names:
            new_record = QueueRecord(0, hour, first_seen_hour=hour)
            record = history.get(name, new_record)._replace(scanned_hour=hour)
            if name in turn.names:
                last_hour_by_name[name] = hour
                record = record._replace(active_hour=hour, sums_hour=hour)
            history[name] = record
            assert hour - last_hour_by_name[name] <= turn.longest_pause_hours


@pytest.mark.parametrize(
    ("active_hours_ago", "sums_hours_ago", "is_in_use"),
    [
        (100, 100, True),
        (100, 77, True),
        (100, 76, False),
        (100, 101, True),
        (ACTIVE_HOURS, 0, False),
        (ACTIVE_HOURS - 1, 0, True),
    ],
)
def test_queue_is_unused_only_if_its_sums_were_0_a_day_after_it_was_active(
    active_hours_ago: int, sums_hours_ago: int, *, is_in_use: bool
) -> None:
    """A busy queue that is empty whenever it is scanned must not lose its turn while it waits."""
    record = QueueRecord(0, HOUR, HOUR - active_hours_ago, HOUR - sums_hours_ago)
    assert record.is_in_use is is_in_use


def test_unused_queues_wait_a_day_and_displace_no_queue_in_use() -> None:
    old_hour = HOUR - UNUSED_PAUSE_HOURS
    history = {f"old-{n}": QueueRecord(0, HOUR, 1, old_hour - n) for n in range(9)}
    history["young"] = QueueRecord(0, HOUR, 1, old_hour + 1)
    turn = select_queues_for_sums([*history, "new"], history, HOUR, SumsShare(5, 2))
    assert turn.names == {"new", "old-8", "old-7"}
    assert turn.waiting_names == frozenset()


def test_queue_that_was_asked_before_has_its_turn_before_queues_that_are_new_in_this_hour() -> None:
    """Somebody who makes queues all the time must not keep others from being measured."""
    old_record = QueueRecord(1, HOUR, HOUR, sums_hour=HOUR - 4, first_seen_hour=HOUR - 9)
    new_names = [f"a-{n}" for n in range(9)]
    turn = select_queues_for_sums([*new_names, "pay"], {"pay": old_record}, HOUR, SumsShare(5, 0))
    assert "pay" in turn.names


def test_queue_that_was_never_asked_has_its_turn_before_those_asked_after_its_first_scan() -> None:
    waiting_record = QueueRecord(1, HOUR, HOUR, first_seen_hour=HOUR - 6)
    history = {f"a-{n}": QueueRecord(1, HOUR, HOUR, HOUR - 4) for n in range(9)}
    history["pay"] = waiting_record
    turn = select_queues_for_sums(history, history, HOUR, SumsShare(5, 0))
    assert "pay" in turn.names


def test_unused_queue_that_was_asked_within_a_day_has_no_turn_even_if_there_is_room() -> None:
    record = QueueRecord(0, HOUR, 1, HOUR - UNUSED_PAUSE_HOURS + 1)
    turn = select_queues_for_sums(["young"], {"young": record}, HOUR, SumsShare(5, 5))
    assert turn.names == frozenset()
