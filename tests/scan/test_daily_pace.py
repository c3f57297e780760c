"""Test that a scan reports only ten new queues a day per configuration symptom."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.scan.selection import MAXIMUM_NEW_FAULTS_PER_DAY, TopicAdmission, admit_topics

NOW = datetime(2026, 11, 16, 23, 50, tzinfo=UTC)
QUEUES = [f"arn:aws:sqs:us-east-1:123456789012:q-{n:02}" for n in range(30)]


Notes = frozenset[str]


def _admit_and_note(notes: Notes, queues: list[str], now: datetime) -> tuple[Notes, list[str]]:
    admission = admit_topics(notes, queues, now)
    retained = notes.union(admission.notes_to_add).difference(admission.notes_to_drop)
    return retained, admission.topics


def test_queue_counts_as_new_again_after_the_silence_of_an_expired_proposal() -> None:
    notes, _ = _admit_and_note(frozenset(), QUEUES[:1], NOW)
    first = QUEUES[:1]
    later = NOW + EXPIRED_PROPOSAL_SILENCE
    new_note = f"{later:%Y-%m-%d} {QUEUES[0]}"
    old_note = f"2026-11-16 {QUEUES[0]}"
    assert admit_topics(notes, first, later) == TopicAdmission(first, [new_note], [old_note])
    assert admit_topics(notes, first, later - timedelta(days=1)) == TopicAdmission(first, [], [])


def test_queue_is_admitted_within_ten_days_although_ten_new_queues_sort_before_it_each_day() -> (
    None
):
    """An attacker creates ten queues a day to hide the faults of another queue."""
    notes = frozenset[str]()
    reported = set[str]()
    for day in range(10):
        flood = [
            QUEUES[0].replace("q-", f"0-{day}-{n}-") for n in range(MAXIMUM_NEW_FAULTS_PER_DAY)
        ]
        notes, admitted = _admit_and_note(notes, [*flood, QUEUES[0]], NOW + timedelta(days=day))
        reported.update(admitted)
    assert QUEUES[0] in reported


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from(QUEUES)))))
def test_no_day_admits_more_than_ten_new_queues_and_every_known_queue_stays_admitted(
    asked: list[tuple[int, list[str]]],
) -> None:
    notes = frozenset[str]()
    now = NOW
    new_queues_by_day = dict[str, set[str]]()
    for days, queues in asked:
        now += timedelta(days=days)
        known = {note.partition(" ")[2] for note in notes}
        notes, admitted = _admit_and_note(notes, queues, now)
        new_queues_by_day.setdefault(f"{now:%F}", set()).update(set(admitted) - known)
        assert set(admitted) <= set(queues)
        assert known & set(queues) <= set(admitted)
    for new_queues in new_queues_by_day.values():
        assert len(new_queues) <= MAXIMUM_NEW_FAULTS_PER_DAY
