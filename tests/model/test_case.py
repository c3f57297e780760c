"""Test the case: its JSON document, what repeats it, and when it stops being open."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.model.case import Case
from mendq.model.limits import Timing
from mendq.model.state import TIME_LIMIT_GRACE, State, find_state_time_limit
from tests.model.builders import make_case


@pytest.mark.parametrize("state", list(State))
def test_case_round_trips_through_its_json_document_in_every_state(state: State) -> None:
    case = replace(make_case(state), came_from=State.APPLIED, n=2)
    document = json.loads(json.dumps(case.document()))
    assert Case.from_document(document, opened_at=case.opened_at) == case
    assert document["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert case.key() == f"cases/dt=2026-11-16/{case.case_id}-2.json"


def test_case_is_repeated_only_by_a_case_with_the_same_state_code_and_steps() -> None:
    refused = make_case(State.REFUSED)
    assert refused.is_repeated_by(make_case(State.REFUSED, timedelta(hours=1)))
    assert refused.is_repeated_by(
        replace(refused, reason="because of 41 queues", code="over_ceiling")
    )
    observed = make_case(State.OBSERVED)
    assert not observed.is_repeated_by(replace(observed, steps=()))
    assert not refused.is_repeated_by(observed)


@pytest.mark.parametrize(
    "state", [State.PROPOSED, State.APPLIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE]
)
def test_case_is_closed_after_the_time_limit_of_its_state_even_if_follow_up_never_ran(
    state: State,
) -> None:
    """Only for this does `verified` have a time limit: follow-up leaves that state at once."""
    time_limit = find_state_time_limit(state, Timing())
    assert time_limit is not None
    case = make_case(state)
    assert case.is_open(case.at + time_limit, Timing())
    assert not case.is_open(case.at + time_limit + TIME_LIMIT_GRACE, Timing())
