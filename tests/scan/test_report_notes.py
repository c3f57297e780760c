"""When a scan-only stack reports a topic, for all sequences of scans."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.cases import items
from mendq.scan import report_notes
from mendq.scan.report_notes import (
    BUDGET_PERIOD,
    FORGET_AFTER,
    MESSAGES_WITHOUT_PAUSE,
    PAUSE_BETWEEN_MESSAGES,
    REMIND_AFTER,
    UNREADABLE_DELAY,
    FoundTopic,
    ReportNote,
    ReportSelection,
    make_note_key,
    note_named_topics,
    select_topics_to_report,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
NO_DELAY = timedelta(0)
HOUR = timedelta(hours=1)
# A message of these tests names so many topics.
MOST_NAMES = 10


class Reporter:
    """Reports topics as a scan-only stack does, with its notes."""

    def __init__(self) -> None:
        self.note_by_key: Mapping[str, ReportNote] = {}

    def report(
        self, topics: Iterable[FoundTopic], hour: int, most_names: int | None = MOST_NAMES
    ) -> tuple[str, ...]:
        """Report what is due of the topics found in this hour. Return the topics that are named."""
        now = START + hour * HOUR
        selection = select_topics_to_report(self.note_by_key, topics, now)
        named_topics = selection.topics[:most_names]
        self.note_by_key = selection.note_by_key
        if selection.must_send_message:
            self.note_by_key = note_named_topics(selection, named_topics, now)
        return named_topics


def _make_topics(prefix: str, count: int, severity_rank: int = 0) -> list[FoundTopic]:
    return [FoundTopic(f"{prefix}{number}", severity_rank) for number in range(count)]


def _report_hours(found_hours: list[int], delay: timedelta = NO_DELAY) -> list[int]:
    """Return the hours in which the topic is reported if scans find it in `found_hours`."""
    reporter = Reporter()
    topic = FoundTopic("orders", delay=delay)
    return [hour for hour in sorted(found_hours) if reporter.report([topic], hour)]


@given(st.sets(st.integers(0, 1_000), min_size=1))
def test_topic_is_reported_when_first_found_and_never_twice_within_a_week_of_being_there(
    hours: set[int],
) -> None:
    found_hours = sorted(hours)
    reported_hours = _report_hours(found_hours)
    assert reported_hours[0] == found_hours[0]
    for hour, next_hour in itertools.pairwise(reported_hours):
        found_between = [found for found in found_hours if hour <= found <= next_hour]
        longest_gap = max(later - earlier for earlier, later in itertools.pairwise(found_between))
        was_forgotten = longest_gap * HOUR >= FORGET_AFTER
        assert was_forgotten or (next_hour - hour) * HOUR >= REMIND_AFTER


@given(st.sets(st.integers(0, 1_000), min_size=1))
def test_topic_found_after_a_day_without_it_is_reported_again(hours: set[int]) -> None:
    found_hours = sorted(hours)
    reported_hours = _report_hours(found_hours)
    for earlier, later in itertools.pairwise(found_hours):
        if (later - earlier) * HOUR >= FORGET_AFTER:
            assert later in reported_hours


def test_topic_that_lasts_is_reported_each_seven_days() -> None:
    assert _report_hours(list(range(24 * 15))) == [0, 24 * 7, 24 * 14]


def test_hygiene_that_lasts_is_reported_once_without_a_reminder() -> None:
    reporter = Reporter()
    topic = FoundTopic("archive", is_reported_once=True)
    reported_hours = [hour for hour in range(24 * 15) if reporter.report([topic], hour)]
    assert reported_hours == [0]


def test_unreadable_queue_is_reported_only_once_it_was_unreadable_for_two_hours() -> None:
    assert _report_hours([0, 1], UNREADABLE_DELAY) == []
    assert _report_hours([0, 1, 2, 3], UNREADABLE_DELAY) == [2]


def test_note_with_a_time_in_the_future_does_not_hide_its_topic() -> None:
    """Whoever may write the table could otherwise silence a finding for ever."""
    tomorrow = int((START + timedelta(days=1)).timestamp())
    now = int(START.timestamp())
    for note in (ReportNote(now, tomorrow, now), ReportNote(now, now, tomorrow)):
        notes = {make_note_key("orders"): note}
        assert select_topics_to_report(notes, [FoundTopic("orders")], START).topics == ("orders",)


def test_topic_that_no_message_named_is_due_again_in_the_next_hour() -> None:
    reporter = Reporter()
    topics = _make_topics("a", MOST_NAMES + 2)
    first_names = reporter.report(topics, 0)
    assert len(first_names) == MOST_NAMES
    assert {*reporter.report(topics, 1)} == {topic.text for topic in topics} - {*first_names}
    assert reporter.report(topics, 2) == ()


def test_topic_is_named_within_five_hours_although_twelve_new_ones_come_before_it_each_hour() -> (
    None
):
    """The new ones are equally bad, and their names come first."""
    reporter = Reporter()
    named_topics: list[str] = []
    for hour in range(5):
        topics = [*_make_topics(f"a-{hour}-", 12), FoundTopic("orders")]
        named_topics += reporter.report(topics, hour, most_names=4)
    assert "orders" in named_topics


def test_worst_topic_is_named_at_once_although_many_others_wait() -> None:
    reporter = Reporter()
    waiting_topics = _make_topics("a", 500, severity_rank=2)
    reporter.report(waiting_topics, 0)
    assert "orders" in reporter.report([*waiting_topics, FoundTopic("orders", 0)], 1)


def test_waiting_topic_is_named_within_three_hours_although_worse_ones_are_found_each_hour() -> (
    None
):
    reporter = Reporter()
    named_topics: list[str] = []
    for hour in range(3):
        topics = [*_make_topics(f"a-{hour}-", 50), FoundTopic("orders", 2)]
        named_topics += reporter.report(topics, hour)
    assert "orders" in named_topics


def test_new_topics_each_hour_send_six_hourly_messages_then_one_every_four_hours_naming_all() -> (
    None
):
    reporter = Reporter()
    topics: list[FoundTopic] = []
    named_topics: list[str] = []
    message_hours = []
    for hour in range(48):
        topics.append(FoundTopic(f"a{hour}"))
        names = reporter.report(topics, hour)
        named_topics += names
        if names:
            message_hours.append(hour)
    pause_hours = PAUSE_BETWEEN_MESSAGES // HOUR
    assert message_hours[:MESSAGES_WITHOUT_PAUSE] == [*range(MESSAGES_WITHOUT_PAUSE)]
    later_hours = message_hours[MESSAGES_WITHOUT_PAUSE - 1 :]
    assert {later - hour for hour, later in itertools.pairwise(later_hours)} == {pause_hours}
    assert len(named_topics) == len({*named_topics})
    assert {*named_topics} >= {f"a{hour}" for hour in range(48 - pause_hours)}


def test_message_is_sent_at_once_again_after_a_quiet_day() -> None:
    reporter = Reporter()
    topics = _make_topics("a", MESSAGES_WITHOUT_PAUSE + 2)
    for hour in range(MESSAGES_WITHOUT_PAUSE):
        assert reporter.report(topics[: hour + 1], hour)
    hour = MESSAGES_WITHOUT_PAUSE + BUDGET_PERIOD // HOUR
    reporter.report(topics[:MESSAGES_WITHOUT_PAUSE], hour - 12)
    assert reporter.report(topics[: MESSAGES_WITHOUT_PAUSE + 1], hour)
    assert reporter.report(topics, hour + 1)


def _select_again(reporter: Reporter, topics: Iterable[FoundTopic], hour: int) -> ReportSelection:
    return select_topics_to_report(reporter.note_by_key, topics, START + hour * HOUR)


def test_topics_beyond_the_number_of_notes_are_counted_once_and_again_after_seven_days() -> None:
    reporter = Reporter()
    topics = _make_topics("queue-", report_notes.MAXIMUM_NOTES)
    assert len(reporter.report(topics, 0, most_names=None)) == report_notes.MAXIMUM_NOTES
    topics += _make_topics("new-", 3)
    selection = _select_again(reporter, topics, 1)
    assert (selection.topics, selection.topics_without_note) == ((), 3)
    assert selection.must_send_message
    count_hours = []
    for hour in range(1, 24 * 8, 12):
        if _select_again(reporter, topics[-3:] + topics[:-3], hour).is_count_due:
            count_hours.append(hour)
        reporter.report(topics, hour, most_names=None)
    assert count_hours == [1, 1 + REMIND_AFTER // HOUR]


def test_worst_topic_is_reported_once_although_there_is_no_space_for_a_note() -> None:
    reporter = Reporter()
    topics = _make_topics("queue-", report_notes.MAXIMUM_NOTES, severity_rank=2)
    reporter.report(topics, 0, most_names=None)
    topics.append(FoundTopic("orders", 0))
    assert reporter.report(topics, 1) == ("orders",)
    assert [reporter.report(topics, hour) for hour in range(2, 30)] == [()] * 28
    assert len(reporter.note_by_key) == report_notes.MAXIMUM_NOTES + 1, "and one for the count"


def test_topic_replaces_no_note_of_an_equally_severe_topic() -> None:
    reporter = Reporter()
    topics = _make_topics("queue-", report_notes.MAXIMUM_NOTES, severity_rank=1)
    reporter.report(topics, 0, most_names=None)
    keys = {*reporter.note_by_key}
    reporter.report([*topics, FoundTopic("orders", 1)], 1)
    assert {*reporter.note_by_key} >= keys


def test_all_notes_fit_into_one_item_of_dynamodb() -> None:
    """An item has at most 400 KB, with its keys and names."""
    reporter = Reporter()
    reporter.report(_make_topics("queue-", report_notes.MAXIMUM_NOTES + 1, 3), 0, most_names=None)
    assert len(items.encode_json(reporter.note_by_key).encode()) < 390_000
