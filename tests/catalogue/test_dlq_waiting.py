"""Messages are told of where any of their causes is fixed, with how long they still have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue._redrive import time_left
from mendq.catalogue._redrive_causes import CAUSES
from mendq.catalogue.dlq_messages_waiting import detect, plan
from mendq.catalogue.examples import case
from mendq.model.case import State
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from tests.model.dlq import WATCHED


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_that_is_fixed_lets_messages_go_back(cause: str) -> None:
    facts = replace(WATCHED, source_cases=(case(cause, State.WATCHING),))
    assert detect(facts) is not None
    assert isinstance(plan(facts, Limits()), Plan)


def test_it_is_as_urgent_as_the_first_message() -> None:
    found = detect(WATCHED)
    assert found is not None
    assert found.seconds_left == time_left(WATCHED).at_least.total_seconds() > 0
    assert f"expires {time_left(WATCHED)}" in found.because


def test_the_plan_begins_with_what_was_found() -> None:
    found = plan(replace(WATCHED, found="200 wait"), Limits())
    assert isinstance(found, Plan)
    assert found.reason.startswith("200 wait. ")
