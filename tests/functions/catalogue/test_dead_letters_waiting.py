"""Letters are told of where any of their causes is mended, with how long they still have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.catalogue.dead_letters_waiting import detect, plan
from functions.healing.causes import CAUSES
from functions.healing.examples import case
from functions.healing.limits import Limits
from functions.healing.plan import Plan
from functions.healing.states import State
from functions.healing.waiting_letters import time_left
from tests.functions.healing.dead_letters import WATCHED


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_that_is_mended_lets_letters_go_back(cause: str) -> None:
    facts = replace(WATCHED, source_cases=(case(cause, State.WATCHING),))
    assert detect(facts) is not None
    assert isinstance(plan(facts, Limits()), Plan)


def test_it_is_as_urgent_as_the_first_letter() -> None:
    found = detect(WATCHED)
    assert found is not None
    assert found.seconds_left == time_left(WATCHED).at_least.total_seconds() > 0
    assert f"expires {time_left(WATCHED)}" in found.because


def test_the_plan_begins_with_what_was_found() -> None:
    found = plan(replace(WATCHED, found="200 wait"), Limits())
    assert isinstance(found, Plan)
    assert found.reason.startswith("200 wait. ")
