"""Test the case: its JSON document, what repeats it, and when it stops being open."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.model.case import Case
from mendq.model.limits import Timing
from mendq.model.state import State, find_state_time_limit
from tests.model.builders import make_case


@pytest.mark.parametrize("state", list(State))
def test_case_round_trips_through_its_json_document_in_every_state(state: State) -> None:
    case = replace(make_case(state), came_from=State.APPLIED, n=2)
    document = json.loads(json.dumps(case.document()))
    assert Case.from_document(document, opened_at=case.opened_at) == case


def test_case_document_lists_each_step_with_its_attribute_and_both_values() -> None:
    steps = make_case(State.APPLIED).document()["steps"]
    assert steps == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]


def test_key_of_a_case_in_the_case_bucket_has_its_day_id_and_transition_number() -> None:
    case = replace(make_case(State.APPLIED), n=2)
    assert case.key() == f"cases/dt=2026-11-16/{case.case_id}-2.json"


def test_refused_case_is_repeated_by_any_other_refusal_whatever_its_code() -> None:
    """The refusals of a queue alternate, and people must not hear of each."""
    refused = make_case(State.REFUSED)
    assert refused.is_repeated_by(make_case(State.REFUSED, timedelta(hours=1)))
    assert refused.is_repeated_by(replace(refused, reason="41 queues", code="over_ceiling"))


def test_case_with_another_state_code_or_steps_is_no_repeat() -> None:
    observed = make_case(State.OBSERVED)
    assert observed.is_repeated_by(make_case(State.OBSERVED, timedelta(hours=1)))
    assert not observed.is_repeated_by(make_case(State.REFUSED))
    assert not observed.is_repeated_by(replace(observed, steps=()))
    assert not observed.is_repeated_by(replace(observed, code="over_ceiling"))


@pytest.mark.parametrize(
    "state", [State.PROPOSED, State.APPLIED, State.VERIFIED, State.WATCHING, State.INEFFECTIVE]
)
def test_case_counts_as_open_at_its_states_time_limit_and_as_closed_after_an_hour_of_grace(
    state: State,
) -> None:
    """Only for this does `verified` have a time limit: follow-up leaves that state at once."""
    time_limit = find_state_time_limit(state, Timing())
    assert time_limit is not None
    case = make_case(state)
    assert case.is_open(case.at + time_limit, Timing())
    assert not case.is_open(case.at + time_limit + timedelta(hours=1), Timing())
