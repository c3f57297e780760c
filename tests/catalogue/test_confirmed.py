"""What is said to be confirmed on AWS is what records that AWS wrote show, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import tables
from mendq.catalogue import CATALOGUE, name_symptom_of, symptom
from mendq.model.failed_call import FailedCall, read

RECORDED = Path(__file__).with_name("recorded")


def test_each_recorded_call_is_read_and_matched_and_what_they_show_is_confirmed() -> None:
    found = {path.name: read(path.read_bytes()) for path in RECORDED.glob("*.json")}
    assert [name for name, each in found.items() if not isinstance(each, FailedCall)] == []
    calls = (each for each in found.values() if isinstance(each, FailedCall))
    assert {name_symptom_of(each) for each in calls} == set(symptom.CONFIRMED_SYMPTOM_NAMES)


def test_what_rests_on_failed_calls_is_marked_until_it_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resting = sum(bool(each.seen_as) for each in CATALOGUE)
    for confirmed in (frozenset[str](), frozenset({"access_denied"})):
        monkeypatch.setattr(symptom, "CONFIRMED_SYMPTOM_NAMES", confirmed)
        assert tables.symptoms().count("*unconfirmed on AWS*") == resting - len(confirmed)
