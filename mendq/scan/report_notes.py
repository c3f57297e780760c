"""Decide what a scan-only stack reports now. Pure: it knows no clock and no AWS.

A topic is something that people may hear about: a symptom of a queue, or a queue that cannot be
looked at. For each topic there is a note about when it was found and reported.

Rules:

1. A topic is reported once when it is new, and again each REMIND_AFTER while it is still found.
   There is no case that stays open, so without the reminder one lost mail would hide a fault.
   Hygiene is reported once: the queue may be meant to be like that.

2. A topic that was not found for FORGET_AFTER is new when it is found again. A shorter time would
   report a symptom that comes and goes each time that it comes. A note from the future is dropped,
   so that a forged one cannot hide a fault.

3. What cannot be looked at is reported only after UNREADABLE_DELAY. AWS throttles calls and is
   disturbed for minutes, and the next round then reads the queue.

4. Only a topic that a message names is noted as reported (`note_named_topics`). A message has no
   space for thousands of names; topics that it only counts stay due for the next one.

5. Half of the names are the worst topics, and half are those that wait longest. Among equals, a
   hash of day and topic decides. So nobody can hide a fault with queues whose names come first, or
   with new queues each hour.

6. After MESSAGES_WITHOUT_PAUSE messages within a day, there is a message only each
   PAUSE_BETWEEN_MESSAGES. Otherwise new queues each hour would cause an urgent message each hour.
   Topics that are due wait for it.

7. At most MAXIMUM_NOTES topics have a note, because one item of DynamoDB holds all of them. If
   there is no space, the note of a less severe topic is replaced. Topics that find no such note are
   only counted: if they were reported without a note, they would be reported each hour. The count
   has a note of its own, so it is reported once and again each REMIND_AFTER, even if nothing else
   is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

REMIND_AFTER = timedelta(days=7)
FORGET_AFTER = timedelta(days=1)
UNREADABLE_DELAY = timedelta(hours=2)
# A note has at most 60 bytes, and an item of DynamoDB 400 KB.
MAXIMUM_NOTES = 6_000
# This many messages within BUDGET_PERIOD are sent without a pause.
MESSAGES_WITHOUT_PAUSE = 6
BUDGET_PERIOD = timedelta(days=1)
PAUSE_BETWEEN_MESSAGES = timedelta(hours=4)
# The note about topics without a note has this topic. No other topic is spelled like it.
_COUNT_TOPIC = "further findings"
_KEY_CHARACTERS = 16


class FoundTopic(Struct, frozen=True):
    """A topic that was found now.

    Attributes:
        text: the topic.
        severity_rank: how much it harms; 0 is the worst.
        delay: the time for which it must have been found before it is reported.
        is_reported_once: True if people need no reminder.
    """

    text: str
    severity_rank: int = 0
    delay: timedelta = timedelta(0)
    is_reported_once: bool = False


class ReportNote(Struct, frozen=True, array_like=True):
    """The note about one topic. Times are seconds since 1970.

    Attributes:
        first_found: when the topic was found first.
        last_found: when the topic was found last.
        reported: when people last heard about it; 0 if they never did.
        severity_rank: how much the topic harms; 0 is the worst, and what notes of an earlier
            version have until the topic is found again.
    """

    first_found: int
    last_found: int
    reported: int = 0
    severity_rank: int = 0


class ReportSelection(Struct, frozen=True):
    """The topics that are due, and the notes about what was found.

    Attributes:
        topics: the topics that are due, in the order in which a message should name them. Empty if
            no message may be sent now.
        is_count_due: True if people must hear of `topics_without_note` now.
        note_by_key: the new notes, by `make_note_key`. They do not say yet that `topics` were
            reported (`note_named_topics`).
        topics_without_note: the number of topics that are not reported, because there is no space
            for a note about them.
    """

    topics: tuple[str, ...]
    is_count_due: bool
    note_by_key: Mapping[str, ReportNote]
    topics_without_note: int

    @property
    def must_send_message(self) -> bool:
        """True if there is something to report now."""
        return self.is_count_due or bool(self.topics)


def make_note_key(topic: str) -> str:
    """Return the key of a topic's note: a short digest, because queue names are long."""
    return sha256(topic.encode()).hexdigest()[:_KEY_CHARACTERS]


def select_topics_to_report(
    note_by_key: Mapping[str, ReportNote], found_topics: Iterable[FoundTopic], now: datetime
) -> ReportSelection:
    """Return the topics that are due now, and the new notes (rules 1 to 3 and 5 to 7).

    Args:
        note_by_key: the stored notes.
        found_topics: the topics that were found now.
        now: the time of the run.
    """
    now_seconds = int(now.timestamp())
    oldest_kept_seconds = now_seconds - int(FORGET_AFTER.total_seconds())
    kept_note_by_key = {
        key: note
        for key, note in note_by_key.items()
        if oldest_kept_seconds < note.last_found <= now_seconds and note.reported <= now_seconds
    }
    count_key = make_note_key(_COUNT_TOPIC)
    count_note = kept_note_by_key.pop(count_key, ReportNote(now_seconds, now_seconds))
    topics = sorted(found_topics, key=lambda topic: topic.severity_rank)
    new_note_by_key = _note_found_topics(kept_note_by_key, topics, now_seconds)
    noted_topics = [topic for topic in topics if make_note_key(topic.text) in new_note_by_key]
    topics_without_note = len(topics) - len(noted_topics)
    due_topics = [
        topic
        for topic in noted_topics
        if _is_topic_due(topic, new_note_by_key[make_note_key(topic.text)], now_seconds)
    ]
    is_count_due = topics_without_note > 0 and _is_due(count_note, timedelta(0), now_seconds)
    if topics_without_note:
        count_note = replace(count_note, last_found=now_seconds)
    if topics_without_note or count_note.reported:
        new_note_by_key[count_key] = count_note
    if not _is_message_allowed(new_note_by_key.values(), now_seconds):
        return ReportSelection((), False, new_note_by_key, topics_without_note)
    naming_order = _sort_for_naming(due_topics, new_note_by_key, now)
    return ReportSelection(naming_order, is_count_due, new_note_by_key, topics_without_note)


def note_named_topics(
    selection: ReportSelection, named_topics: Collection[str], now: datetime
) -> Mapping[str, ReportNote]:
    """Return the notes to store after a message named some of the selection's topics (rule 4).

    The message also had the number of topics without a note.
    """
    new_note_by_key = dict(selection.note_by_key)
    keys = {make_note_key(topic) for topic in named_topics}
    if selection.topics_without_note:
        keys.add(make_note_key(_COUNT_TOPIC))
    for key in keys:
        new_note_by_key[key] = replace(new_note_by_key[key], reported=int(now.timestamp()))
    return new_note_by_key


def _note_found_topics(
    note_by_key: Mapping[str, ReportNote], topics: Iterable[FoundTopic], now_seconds: int
) -> dict[str, ReportNote]:
    """Return the notes with those of the topics. Without space, less severe ones are replaced.

    `topics` must be sorted, the worst first, so that no note is replaced that was added here.
    """
    new_note_by_key = dict(note_by_key)
    new_topic_by_key: dict[str, FoundTopic] = {}
    for topic in topics:
        key = make_note_key(topic.text)
        if key in new_note_by_key:
            new_note_by_key[key] = replace(
                new_note_by_key[key], last_found=now_seconds, severity_rank=topic.severity_rank
            )
        else:
            new_topic_by_key[key] = topic
    # The last one is replaced first: the least severe, and of these the one reported longest ago.
    replaceable_keys = sorted(
        new_note_by_key,
        key=lambda key: (new_note_by_key[key].severity_rank, -new_note_by_key[key].reported),
    )
    for key, topic in new_topic_by_key.items():
        if len(new_note_by_key) >= MAXIMUM_NOTES:
            if not replaceable_keys:
                break
            least_severe_note = new_note_by_key[replaceable_keys[-1]]
            if least_severe_note.severity_rank <= topic.severity_rank:
                break
            del new_note_by_key[replaceable_keys.pop()]
        new_note_by_key[key] = ReportNote(
            now_seconds, now_seconds, severity_rank=topic.severity_rank
        )
    return new_note_by_key


def _sort_for_naming(
    topics: Iterable[FoundTopic], note_by_key: Mapping[str, ReportNote], now: datetime
) -> tuple[str, ...]:
    """Return the topics by turns: one of the worst, and one of those that wait longest (rule 5)."""
    severity_rank_by_topic = {topic.text: topic.severity_rank for topic in topics}

    def make_day_hash(topic: str) -> str:
        return sha256(f"{now:%Y-%m-%d} {topic}".encode()).hexdigest()

    def rank_by_severity(topic: str) -> tuple[int, str]:
        return severity_rank_by_topic[topic], make_day_hash(topic)

    def rank_by_wait(topic: str) -> tuple[int, str]:
        note = note_by_key[make_note_key(topic)]
        return note.reported or note.first_found, make_day_hash(topic)

    worst_first = sorted(severity_rank_by_topic, key=rank_by_severity)
    longest_wait_first = sorted(severity_rank_by_topic, key=rank_by_wait)
    topics_by_turns = chain.from_iterable(zip(worst_first, longest_wait_first, strict=True))
    return tuple(dict.fromkeys(topics_by_turns))


def _is_message_allowed(notes: Iterable[ReportNote], now_seconds: int) -> bool:
    """Return True if the budget of messages has room now (rule 6).

    All notes of a message have the same time, so the different times are the messages.
    """
    period_start = now_seconds - BUDGET_PERIOD.total_seconds()
    message_times = {note.reported for note in notes if note.reported > period_start}
    if len(message_times) < MESSAGES_WITHOUT_PAUSE:
        return True
    return now_seconds - max(message_times) >= PAUSE_BETWEEN_MESSAGES.total_seconds()


def _is_topic_due(topic: FoundTopic, note: ReportNote, now_seconds: int) -> bool:
    """Return True if people must hear about a topic now."""
    if topic.is_reported_once and note.reported:
        return False
    return _is_due(note, topic.delay, now_seconds)


def _is_due(note: ReportNote, delay: timedelta, now_seconds: int) -> bool:
    """Return True if people must hear about the topic of a note now."""
    has_lasted = now_seconds - note.first_found >= delay.total_seconds()
    is_new = note.reported == 0
    must_remind = now_seconds - note.reported >= REMIND_AFTER.total_seconds()
    return has_lasted and (is_new or must_remind)
