"""One owner takes a plan: no Lambda could carry out one of two."""

from __future__ import annotations

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Caught, Detected, Symptom
from mendq.model.plan import owner_of_case, owner_of_plan
from mendq.model.steps import Owner, SetMessageRetention

# It raises the retention of the queue whose messages it sends back.
TAKES_WITH_ITS_OWN = {Owner.REDRIVE: {SetMessageRetention}}


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
def test_an_entry_s_steps_have_one_owner(entry: Symptom) -> None:
    for owner in {step.owner for step in entry.steps[:1]}:
        others = {step for step in entry.steps if step.owner is not owner}
        assert others <= TAKES_WITH_ITS_OWN.get(owner, set())


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
def test_the_owner_of_an_entry_s_first_step_takes_every_plan_and_case_of_it(entry: Symptom) -> None:
    examples: tuple[Caught | Detected, ...] = (*entry.caught, *entry.detected)
    for example in (each for each in examples if each.plan):
        assert owner_of_plan(example.plan) is entry.steps[0].owner
        assert owner_of_case([step.document() for step in example.plan]) is entry.steps[0].owner


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
def test_a_plan_sets_attributes_of_its_queue_beside_at_most_one_queue_that_it_makes(
    entry: Symptom,
) -> None:
    examples: tuple[Caught | Detected, ...] = (*entry.caught, *entry.detected)
    for example in examples:
        made = [step for step in example.plan if step.stays]
        assert len(made) <= 1, example.title
        assert {type(step) for step in example.plan} <= set(entry.steps), example.title
