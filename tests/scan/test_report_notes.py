"""When a scan-only stack reports a topic, for all sequences of scans."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.cases import items
from mendq.scan import report_notes
from mendq.scan.report_notes import (
    FORGET_AFTER,
    REMIND_AFTER,
    UNREADABLE_DELAY,
    ReportNote,
    make_note_key,
    select_topics_to_report,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
NO_DELAY = timedelta(0)
HOUR = timedelta(hours=1)


def _report_hours(found_hours: list[int], delay: timedelta = NO_DELAY) -> list[int]:
    """Return the hours in which the topic is reported if scans find it in `found_hours`."""
    note_by_key: dict[str, ReportNote] = {}
    reported_hours = []
    for hour in sorted(found_hours):
        selection = select_topics_to_report(note_by_key, {"orders": delay}, START + hour * HOUR)
        note_by_key = dict(selection.note_by_key)
        if "orders" in selection.topics:
            reported_hours.append(hour)
    return reported_hours


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


def test_unreadable_queue_is_reported_only_once_it_was_unreadable_for_two_hours() -> None:
    assert _report_hours([0, 1], UNREADABLE_DELAY) == []
    assert _report_hours([0, 1, 2, 3], UNREADABLE_DELAY) == [2]


def test_note_from_the_future_hides_nothing() -> None:
    """Whoever may write the table could otherwise silence a finding for ever."""
    tomorrow = int((START + timedelta(days=1)).timestamp())
    now = int(START.timestamp())
    for note in (ReportNote(now, tomorrow, now), ReportNote(now, now, tomorrow)):
        notes = {make_note_key("orders"): note}
        assert select_topics_to_report(notes, {"orders": NO_DELAY}, START).topics == {"orders"}


def test_topics_beyond_the_number_of_notes_are_counted_and_not_reported() -> None:
    topics = {f"queue-{n}": NO_DELAY for n in range(report_notes.MAXIMUM_NOTES + 3)}
    selection = select_topics_to_report({}, topics, START)
    assert len(selection.topics) == len(selection.note_by_key) == report_notes.MAXIMUM_NOTES
    assert selection.topics_without_note == 3
    again = select_topics_to_report(selection.note_by_key, topics, START + HOUR)
    assert (again.topics, again.topics_without_note) == (frozenset(), 3)


def test_all_notes_fit_into_one_item_of_dynamodb() -> None:
    """An item has at most 400 KB, with its keys and names."""
    topics = {f"queue-{n}": NO_DELAY for n in range(report_notes.MAXIMUM_NOTES)}
    notes = select_topics_to_report({}, topics, START).note_by_key
    assert len(items.encode_json(notes).encode()) < 390_000
