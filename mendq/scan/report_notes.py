"""Decide what a scan-only stack reports now. Pure: it knows no clock and no AWS.

A topic is something that people may hear about: a symptom of a queue, or a queue that cannot be
looked at. For each topic there is a note about when it was found and reported.

Rules:

1. A topic is reported once when it is new, and again each REMIND_AFTER while it is still found.
   There is no case that stays open, so without the reminder one lost mail would hide a fault.

2. A topic that was not found for FORGET_AFTER is new when it is found again. A shorter time would
   report a symptom that comes and goes each time that it comes. A note from the future is dropped,
   so that a forged one cannot hide a fault.

3. What cannot be looked at is reported only after UNREADABLE_DELAY. AWS throttles calls and is
   disturbed for minutes, and the next round then reads the queue.

4. At most MAXIMUM_NOTES topics have a note, because one item of DynamoDB holds all of them. Further
   topics are only counted. If they were reported without a note, they would be reported each hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

REMIND_AFTER = timedelta(days=7)
FORGET_AFTER = timedelta(days=1)
UNREADABLE_DELAY = timedelta(hours=2)
# A note has at most 60 bytes, and an item of DynamoDB 400 KB.
MAXIMUM_NOTES = 6_000
_KEY_CHARACTERS = 16


class ReportNote(Struct, frozen=True, array_like=True):
    """The note about one topic. Times are seconds since 1970.

    Attributes:
        first_found: when the topic was found first.
        last_found: when the topic was found last.
        reported: when people last heard about it; 0 if they never did.
    """

    first_found: int
    last_found: int
    reported: int = 0


class ReportSelection(Struct, frozen=True):
    """The topics to report now, and the notes to store once they are reported.

    Attributes:
        topics: the topics to report.
        note_by_key: the new notes, by `make_note_key`.
        topics_without_note: the number of topics that are not reported, because there is no space
            for a note about them.
    """

    topics: frozenset[str]
    note_by_key: Mapping[str, ReportNote]
    topics_without_note: int


def make_note_key(topic: str) -> str:
    """Return the key of a topic's note: a short digest, because queue names are long."""
    return sha256(topic.encode()).hexdigest()[:_KEY_CHARACTERS]


def select_topics_to_report(
    note_by_key: Mapping[str, ReportNote],
    delay_by_topic: Mapping[str, timedelta],
    now: datetime,
) -> ReportSelection:
    """Return the topics to report now, and the new notes (rules 1 to 4).

    Args:
        note_by_key: the stored notes.
        delay_by_topic: the topics that were found now, the most important first. Each has the time
            for which it must have been found before it is reported.
        now: the time of the run.
    """
    now_seconds = int(now.timestamp())
    oldest_kept_seconds = now_seconds - int(FORGET_AFTER.total_seconds())
    new_note_by_key = {
        key: note
        for key, note in note_by_key.items()
        if oldest_kept_seconds < note.last_found <= now_seconds and note.reported <= now_seconds
    }
    topics_to_report: set[str] = set()
    topics_without_note = 0
    for topic, delay in delay_by_topic.items():
        key = make_note_key(topic)
        if key not in new_note_by_key and len(new_note_by_key) >= MAXIMUM_NOTES:
            topics_without_note += 1
            continue
        note = new_note_by_key.get(key, ReportNote(now_seconds, now_seconds))
        note = replace(note, last_found=now_seconds)
        if _is_due(note, delay, now_seconds):
            topics_to_report.add(topic)
            note = replace(note, reported=now_seconds)
        new_note_by_key[key] = note
    return ReportSelection(frozenset(topics_to_report), new_note_by_key, topics_without_note)


def _is_due(note: ReportNote, delay: timedelta, now_seconds: int) -> bool:
    """Return True if people must hear about the topic of a note now."""
    has_lasted = now_seconds - note.first_found >= delay.total_seconds()
    is_new = note.reported == 0
    must_remind = now_seconds - note.reported >= REMIND_AFTER.total_seconds()
    return has_lasted and (is_new or must_remind)
