"""Whose a write is: the Lambda that takes the steps of a plan or of a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from functions.healing.every_step import STEPS
from functions.healing.steps import AttributeStep, Owner


def owner_of_plan(steps: Sequence[AttributeStep]) -> Owner:
    """The owner of its first step: the catalogue's plans have one each."""
    return steps[0].owner if steps else Owner.HEAL


def owner_of_case(documents: Iterable[Mapping[str, str]]) -> Owner:
    """By the steps as transitions hold them; heal's, where an older Mendq's are not known."""
    owners = {step.attribute: step.owner for step in STEPS}
    named = (owners.get(each["attribute"]) for each in documents)
    return next((owner for owner in named if owner is not None), Owner.HEAL)
