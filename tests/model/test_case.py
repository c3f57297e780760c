from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.model.case import GRACE, Case, State, longest_in
from mendq.model.limits import Timing
from tests.heal.test_guardrails import case


@pytest.mark.parametrize("state", list(State))
def test_a_transition_survives_its_document(state: State) -> None:
    one = replace(case(state), came_from=State.APPLIED, n=2)
    document = json.loads(json.dumps(one.document()))
    assert Case.from_document(document, opened_at=one.opened_at) == one
    assert document["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]


def test_the_key_is_the_same_for_the_same_transition() -> None:
    one = case(State.APPLIED)
    assert one.key() == f"cases/dt=2026-11-16/{one.case_id}-1.json"
    assert case(State.APPLIED).key() == one.key()


def test_saying_the_same_is_state_code_and_steps() -> None:
    one = case(State.REFUSED)
    assert one.says_the_same(case(State.REFUSED, timedelta(hours=1)))
    assert one.says_the_same(replace(one, reason="because of 41 queues"))
    assert one.says_the_same(replace(one, code="over_ceiling"))
    observed = case(State.OBSERVED)
    assert not observed.says_the_same(replace(observed, steps=()))
    assert not one.says_the_same(case(State.OBSERVED))


@pytest.mark.parametrize(
    "state", [State.PROPOSED, State.APPLIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE]
)
def test_a_follow_up_that_is_down_keeps_no_case_open_for_ever(state: State) -> None:
    """`verified` has a longest stay for this alone: no row of the table waits in it."""
    longest = longest_in(state, Timing())
    assert longest is not None
    one = case(state)
    assert one.is_open(one.at + longest, Timing())
    assert not one.is_open(one.at + longest + GRACE, Timing())
