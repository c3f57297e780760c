from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.heal.decide import REMEMBERED
from mendq.heal.repeats import NEW_FAULTS_A_DAY, DailyPace

NOW = datetime(2026, 11, 16, 23, 50, tzinfo=UTC)
QUEUES = [f"arn:aws:sqs:us-east-1:123456789012:q-{n:02}" for n in range(30)]


def _noted(pace: DailyPace, queues: list[str], now: datetime) -> tuple[DailyPace, tuple[str, ...]]:
    admitted = pace.admitted(queues, now)
    notes = pace.notes.union(pace.missing(admitted, now))
    return DailyPace(notes.difference(pace.outdated(now))), admitted


def test_after_a_month_it_is_news_again() -> None:
    pace, _ = _noted(DailyPace(), QUEUES[:1], NOW)
    later = NOW + REMEMBERED
    assert pace.outdated(later) == [f"2026-11-16 {QUEUES[0]}"]
    assert pace.missing(QUEUES[:1], later) == [f"{later:%Y-%m-%d} {QUEUES[0]}"]
    assert pace.outdated(later - timedelta(days=1)) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from(QUEUES)))))
def test_no_day_has_more_new_ones_than_ten(asked: list[tuple[int, list[str]]]) -> None:
    pace, now, announced = DailyPace(), NOW, dict[str, set[str]]()
    for days, queues in asked:
        now += timedelta(days=days)
        known = {each.partition(" ")[2] for each in pace.notes}
        pace, admitted = _noted(pace, queues, now)
        announced.setdefault(f"{now:%F}", set()).update(set(admitted) - known)
        assert set(admitted) <= set(queues)
        assert known & set(queues) <= set(admitted)
    assert all(len(each) <= NEW_FAULTS_A_DAY for each in announced.values())
