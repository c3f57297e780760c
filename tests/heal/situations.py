"""Situations to decide about, and the cases and evidence in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.cases.attribute_record import AttributeRecord, AttributeWrite
from mendq.cases.spread import Reach
from mendq.cases.view import CaseStoreView
from mendq.catalogue import CATALOGUE, examples
from mendq.heal.situation import Situation
from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.state import State
from mendq.model.steps import Owner, SetVisibilityTimeout

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
STEP = SetVisibilityTimeout(30, 45)


def make_evidence(*seconds_ago: float) -> Evidence:
    return Evidence.of(
        Sighting(NOW - timedelta(seconds=seconds), f"e{n}", "r", "p")
        for n, seconds in enumerate(seconds_ago)
    )


def make_case(state: State, age: timedelta = timedelta()) -> Case:
    return start_case(
        state,
        queue_arn=examples.QUEUE_ARN,
        symptom="visibility_timeout_too_short",
        reason="because",
        evidence=make_evidence(1, 2, 3),
        steps=(STEP,),
        now=NOW - age,
        actor="heal",
    )


HELD_BY = AttributeRecord(claim_owner="another", claim_until=NOW + timedelta(seconds=60))


def make_situation(**over: Any) -> Situation:
    """Return a situation before the queue is read. No guardrail refuses it."""
    fields: dict[str, Any] = {
        "symptom": CATALOGUE[0],
        "facts": Facts(examples.QUEUE_ARN, {}, {}),
        "mode": Mode.HEAL,
        "view": CaseStoreView(),
        "now": NOW,
        "owner": "me",
        "writer": Owner.HEAL,
        "limits": Limits(),
        "timing": Timing(),
        "evidence": make_evidence(1, 2, 3),
        "fresh_sightings": make_evidence(1, 2, 3).sightings,
    }
    return Situation(**{**fields, **over})


def make_read_situation(**over: Any) -> Situation:
    """Return a situation after the queue was read. No other queue has the symptom."""
    return make_situation(are_facts_read=True, reach=Reach(), **over)


def make_writes(*hours_ago: float) -> tuple[AttributeWrite, ...]:
    """Return writes by Mendq from 20 to 30, made this many hours ago."""
    return tuple(AttributeWrite(NOW - timedelta(hours=hours), "20", "30") for hours in hours_ago)
