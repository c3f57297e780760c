"""Which failed calls are worth a write into the case store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mendq.heal.apply import NOTED_EVERY, with_failures
from mendq.model.case import State
from mendq.model.evidence import Evidence
from tests.heal.test_guardrails import case
from tests.model.test_advance import BEGINS, NEEDED, TIMING, failed


def test_a_storm_of_failed_calls_is_noted_every_five_minutes() -> None:
    applied, known, notes = case(State.APPLIED), Evidence(), 0
    for second in range(3_600):
        call = failed(BEGINS + timedelta(seconds=second))
        event = replace(call.sightings[0], event_id=f"event-{second}")
        noted = with_failures(applied, known, Evidence((event,)), NEEDED, TIMING)
        if noted is not None:
            notes, known = notes + 1, noted
    assert known.suffices(NEEDED)
    assert notes == NEEDED.distinct_events + 3_600 // NOTED_EVERY.seconds - 1


def test_calls_from_before_are_not_noted() -> None:
    early = failed(BEGINS - timedelta(seconds=1))
    assert with_failures(case(State.APPLIED), Evidence(), early, NEEDED, TIMING) is None


def test_the_same_call_is_noted_once() -> None:
    call = failed(BEGINS)
    known = with_failures(case(State.APPLIED), Evidence(), call, NEEDED, TIMING)
    assert known == call
    assert with_failures(case(State.APPLIED), call, call, NEEDED, TIMING) is None
