from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.healing.evidence import MAXIMUM_KEPT, Evidence, EvidenceNeeded, Sighting, to_text

AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def sighting(event_id: str, seconds: float = 0) -> Sighting:
    return Sighting(AT + timedelta(seconds=seconds), event_id, f"r-{event_id}", "arn:role/x")


def test_one_event_seen_three_times_is_one() -> None:
    evidence = Evidence.of([sighting("a"), sighting("a", 1), sighting("a", 2)])
    assert len(evidence.sightings) == 1
    assert not evidence.suffices(EvidenceNeeded())


@pytest.mark.parametrize(("last_seconds", "enough"), [(600, True), (600.001, False)])
def test_the_window_is_ten_minutes_inclusive(last_seconds: float, enough: bool) -> None:
    evidence = Evidence.of([sighting("a"), sighting("b", 5), sighting("c", last_seconds)])
    assert evidence.suffices(EvidenceNeeded()) is enough


def test_the_window_may_lie_anywhere() -> None:
    evidence = Evidence.of([sighting("old", -3000), *(sighting(each) for each in "abc")])
    assert evidence.suffices(EvidenceNeeded())


def test_nothing_is_not_enough() -> None:
    assert not Evidence().suffices(EvidenceNeeded())


def test_what_is_kept_is_fresh_and_bounded() -> None:
    many = Evidence.of(sighting(str(n), -n * 60) for n in range(70))
    kept = many.fresh(AT).worth_keeping()
    assert len(kept) == MAXIMUM_KEPT
    assert kept[-1].event_id == "0"
    assert Evidence.of([sighting("stale", -3601)]).fresh(AT).worth_keeping() == ()


def test_the_document_names_first_and_last() -> None:
    document = Evidence.of([sighting("b", 5), sighting("a")]).document()
    assert document["first_request_id"] == "r-a"
    assert document["last_request_id"] == "r-b"
    assert document["first_at"] == to_text(AT) == "2026-11-16T09:30:00.000Z"
    assert document["failed_calls"] == 2


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_sighting_survives_the_ledger(event_id: str, request_id: str, principal: str) -> None:
    one = Sighting(AT, event_id, request_id, principal)
    assert Sighting.from_text(one.to_text()) == one
