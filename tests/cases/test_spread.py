"""The spread of a symptom over queues, and the record of an attribute that Mendq wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.spread import MAXIMUM_NOTED_QUEUES, Spread
from tests.heal.situations import NOW as HEAL_NOW
from tests.heal.situations import make_writes

NOW = datetime(2026, 11, 16, 9, 5, tzinfo=UTC)


def add_notes(spread: Spread, now: datetime, *queues: str) -> Spread:
    """Drop outdated notes and add new ones, as the case store does."""
    texts = {f"{slot.isoformat()} {queue}" for slot, queue in spread.notes}
    texts -= set(spread.list_outdated_notes(now))
    return Spread.from_texts(texts | set(spread.make_new_notes(queues, now)))


def test_spread_counts_a_queue_for_64_minutes_and_not_after_75() -> None:
    spread = add_notes(Spread(), NOW, "a")
    assert spread.list_queue_arns(NOW + timedelta(minutes=64)) == {"a"}
    assert spread.list_queue_arns(NOW + timedelta(minutes=75)) == frozenset()


def test_spread_notes_a_queue_at_most_once_in_fifteen_minutes() -> None:
    spread = add_notes(Spread(), NOW, "a")
    assert spread.make_new_notes(["a"], NOW + timedelta(minutes=14)) == []
    assert len(spread.make_new_notes(["a"], NOW + timedelta(minutes=15))) == 1


def test_spread_of_a_lasting_symptom_counts_every_queue_at_any_minute() -> None:
    """Forty queues fail all the time, two in each batch. None may look like the only one."""
    spread = Spread()
    queues = [f"q{n}" for n in range(40)]
    for minute in range(600):
        now = NOW + timedelta(minutes=minute)
        spread = add_notes(spread, now, *queues[minute * 2 % 40 :][:2])
        if minute >= 20:
            assert len(spread.list_queue_arns(now)) == 40
    assert len(spread.notes) <= 2 * 40


def test_spread_stores_no_more_notes_than_the_maximum() -> None:
    spread = add_notes(Spread(), NOW, *(f"q{n}" for n in range(MAXIMUM_NOTED_QUEUES + 5)))
    assert len(spread.notes) == MAXIMUM_NOTED_QUEUES
    spread = add_notes(
        spread, NOW + timedelta(minutes=20), *(f"q{n}" for n in range(MAXIMUM_NOTED_QUEUES))
    )
    assert len(spread.notes) <= MAXIMUM_NOTED_QUEUES


def test_spread_ignores_unreadable_notes() -> None:
    assert Spread.from_texts(["", "soon a", "2026-11-16T09:00:00 naive"]).notes == frozenset()


AFTER_A_WRITE = AttributeRecord().add_write("30", "45", HEAL_NOW)


def test_attribute_record_keeps_the_persons_value_through_two_writes_of_mendq() -> None:
    after_two_writes = AFTER_A_WRITE.add_write("45", "68", HEAL_NOW)
    assert after_two_writes.person_value == "30"
    assert after_two_writes.find_person_value("68") == "30"


def test_attribute_record_takes_a_value_that_mendq_did_not_write_as_the_persons_value() -> None:
    assert AFTER_A_WRITE.find_person_value("10") == "10"
    assert AFTER_A_WRITE.add_write("10", "15", HEAL_NOW).person_value == "10"


def test_attribute_record_drops_writes_older_than_two_days() -> None:
    old, *recent = make_writes(49, 23, 1)
    record = AttributeRecord(writes=(old, *recent)).add_write("30", "45", HEAL_NOW)
    assert record.writes[:-1] == tuple(recent)
    assert record.writes[-1].at == HEAL_NOW
