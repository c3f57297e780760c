"""What every entry of the catalogue has to keep; the cases come from the entries themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

import functions.catalogue
from functions.catalogue import CATALOGUE, match
from functions.catalogue.symptom import Caught, NearMiss, Symptom
from functions.healing.limits import Limits
from functions.healing.plan import Plan, Refusal
from functions.healing.steps import STEPS

ROOT = Path(__file__).parents[3]
CAUGHT = [(entry, each) for entry in CATALOGUE for each in entry.caught]
NEAR_MISSES = [(entry, each) for entry in CATALOGUE for each in entry.near_misses]


def _title(value: object) -> str:
    return value.title if isinstance(value, Caught | NearMiss) else str(getattr(value, "name", ""))


def test_every_file_is_an_entry_and_every_entry_a_file() -> None:
    folder = Path(functions.catalogue.__file__).parent
    files = {each.stem for each in folder.glob("*.py")} - {"__init__", "symptom"}
    assert files == {entry.name for entry in CATALOGUE}


@pytest.mark.parametrize("entry", CATALOGUE, ids=_title)
def test_an_entry_has_examples_of_both_kinds_and_a_runbook(entry: Symptom) -> None:
    assert entry.caught
    assert entry.near_misses
    assert (ROOT / entry.runbook).exists()
    assert entry.aws_page.startswith("https://docs.aws.amazon.com/")


@pytest.mark.parametrize(("entry", "near_miss"), NEAR_MISSES, ids=_title)
def test_a_near_miss_is_not_touched(entry: Symptom, near_miss: NearMiss) -> None:
    assert near_miss.call or near_miss.facts
    if near_miss.call:
        assert match(near_miss.call) is not entry
    if near_miss.facts:
        refusal = entry.plan(near_miss.facts, Limits())
        assert isinstance(refusal, Refusal)
        assert refusal.code == near_miss.code


@pytest.mark.parametrize(("entry", "caught"), CAUGHT, ids=_title)
def test_a_caught_example_gets_the_plan_it_states(entry: Symptom, caught: Caught) -> None:
    assert match(caught.call) is entry
    plan = entry.plan(caught.facts, Limits())
    assert isinstance(plan, Plan)
    assert plan.steps == caught.plan
    for step in plan.steps:
        assert isinstance(step, entry.steps)
        assert step.out_of_bounds() is None


def test_no_two_entries_claim_the_same_example() -> None:
    for entry, caught in CAUGHT:
        assert [each for each in CATALOGUE if each.matches(caught.call)] == [entry]


def test_every_step_has_an_iam_action() -> None:
    assert {step for entry in CATALOGUE for step in entry.steps} <= set(STEPS)
    assert all(step.iam_action.partition(":")[2] for step in STEPS)
