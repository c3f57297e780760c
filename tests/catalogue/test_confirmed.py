"""Test that exactly the symptoms shown by CloudTrail records of AWS are called confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import symptom_tables
from mendq.catalogue import CATALOGUE, name_symptom_of, symptom
from mendq.model.failed_call import FailedCall, read

RECORDED = Path(__file__).with_name("recorded")


def test_confirmed_symptoms_are_exactly_those_that_recorded_cloudtrail_events_show() -> None:
    symptoms = set()
    for path in RECORDED.glob("*.json"):
        call = read(path.read_bytes())
        assert isinstance(call, FailedCall), path.name
        symptoms.add(name_symptom_of(call))
    assert symptoms == set(symptom.CONFIRMED_SYMPTOM_NAMES)


def test_symptoms_seen_in_failed_calls_are_marked_unconfirmed_in_the_docs_until_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen_in_calls = sum(bool(entry.seen_as) for entry in CATALOGUE)
    for confirmed in (frozenset[str](), frozenset({"access_denied"})):
        monkeypatch.setattr(symptom, "CONFIRMED_SYMPTOM_NAMES", confirmed)
        assert symptom_tables.symptoms().count("*unconfirmed on AWS*") == seen_in_calls - len(
            confirmed
        )
