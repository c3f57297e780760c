"""One owner takes a plan: no Lambda could carry out one of two."""

from __future__ import annotations

import pytest

from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Caught, Detected, Symptom


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
def test_an_entry_s_steps_have_one_owner(entry: Symptom) -> None:
    assert len({step.owner for step in entry.steps}) <= 1


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
def test_a_plan_sets_attributes_of_its_queue_beside_at_most_one_queue_that_it_makes(
    entry: Symptom,
) -> None:
    examples: tuple[Caught | Detected, ...] = (*entry.caught, *entry.detected)
    for example in examples:
        made = [step for step in example.plan if step.is_kept]
        assert len(made) <= 1, example.title
        assert {type(step) for step in example.plan} <= set(entry.steps), example.title
