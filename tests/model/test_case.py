"""A case and its document; and, for others, a case about an example queue."""

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
def test_a_transition_survives_its_document(state: State) -> None:
    one = replace(make_case(state), came_from=State.APPLIED, n=2)
    document = json.loads(json.dumps(one.document()))
    assert Case.from_document(document, opened_at=one.opened_at) == one
    assert document["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert one.key() == f"cases/dt=2026-11-16/{one.case_id}-2.json"


def test_saying_the_same_is_state_code_and_steps() -> None:
    one = make_case(State.REFUSED)
    assert one.is_repeated_by(make_case(State.REFUSED, timedelta(hours=1)))
    assert one.is_repeated_by(replace(one, reason="because of 41 queues", code="over_ceiling"))
    observed = make_case(State.OBSERVED)
    assert not observed.is_repeated_by(replace(observed, steps=()))
    assert not one.is_repeated_by(observed)


@pytest.mark.parametrize(
    "state", [State.PROPOSED, State.APPLIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE]
)
def test_a_follow_up_that_is_down_keeps_no_case_open_for_ever(state: State) -> None:
    """`verified` has a longest stay for this alone: no row of the table waits in it."""
    longest, one = find_state_time_limit(state, Timing()), make_case(state)
    assert longest is not None
    assert one.is_open(one.at + longest, Timing())
    assert not one.is_open(one.at + longest + TIME_LIMIT_GRACE, Timing())
