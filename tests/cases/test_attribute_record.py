"""What is remembered of an attribute that Mendq has written."""

from __future__ import annotations

from mendq.cases.view import AttributeRecord
from tests.heal.test_guardrails import NOW, written


def test_a_persons_value_stays_known_through_our_writes() -> None:
    record = AttributeRecord().after_writing("30", "45", NOW).after_writing("45", "68", NOW)
    assert record.person_value == "30"
    assert record.person_value_behind("68") == "30"


def test_a_persons_later_value_starts_anew() -> None:
    record = AttributeRecord().after_writing("30", "45", NOW)
    assert record.person_value_behind("10") == "10"
    assert record.after_writing("10", "15", NOW).person_value == "10"


def test_old_writes_are_forgotten_but_not_the_budget() -> None:
    record = AttributeRecord(writes=written(49, 23, 1))
    assert [each.at for each in record.after_writing("30", "45", NOW).writes] == [
        *(each.at for each in written(23, 1)),
        NOW,
    ]
