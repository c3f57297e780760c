from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.scan.selection import MAXIMUM_NEW_FAULTS_PER_DAY, TopicAdmission, admit_topics

NOW = datetime(2026, 11, 16, 23, 50, tzinfo=UTC)
QUEUES = [f"arn:aws:sqs:us-east-1:123456789012:q-{n:02}" for n in range(30)]


Notes = frozenset[str]


def _noted(notes: Notes, queues: list[str], now: datetime) -> tuple[Notes, list[str]]:
    admission = admit_topics(notes, queues, now)
    retained = notes.union(admission.notes_to_add).difference(admission.notes_to_drop)
    return retained, admission.topics


def test_after_a_month_it_is_news_again() -> None:
    notes, _ = _noted(frozenset(), QUEUES[:1], NOW)
    later, first = NOW + EXPIRED_PROPOSAL_SILENCE, QUEUES[:1]
    again, before = f"{later:%Y-%m-%d} {QUEUES[0]}", f"2026-11-16 {QUEUES[0]}"
    assert admit_topics(notes, first, later) == TopicAdmission(first, [again], [before])
    assert admit_topics(notes, first, later - timedelta(days=1)) == TopicAdmission(first, [], [])


def test_no_name_hides_another_for_ever() -> None:
    """Whoever may make queues makes ten new ones a day, whose names come first."""
    notes, told = frozenset[str](), set[str]()
    for day in range(10):
        flood = [
            QUEUES[0].replace("q-", f"0-{day}-{n}-") for n in range(MAXIMUM_NEW_FAULTS_PER_DAY)
        ]
        notes, admitted = _noted(notes, [*flood, QUEUES[0]], NOW + timedelta(days=day))
        told.update(admitted)
    assert QUEUES[0] in told


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from(QUEUES)))))
def test_no_day_has_more_new_ones_than_ten(asked: list[tuple[int, list[str]]]) -> None:
    notes, now, announced = frozenset[str](), NOW, dict[str, set[str]]()
    for days, queues in asked:
        now += timedelta(days=days)
        known = {each.partition(" ")[2] for each in notes}
        notes, admitted = _noted(notes, queues, now)
        announced.setdefault(f"{now:%F}", set()).update(set(admitted) - known)
        assert set(admitted) <= set(queues)
        assert known & set(queues) <= set(admitted)
    assert all(len(each) <= MAXIMUM_NEW_FAULTS_PER_DAY for each in announced.values())
