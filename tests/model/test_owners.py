"""Whose a write is."""

from __future__ import annotations

import pytest

from mendq.model.plan import owner_of_case, owner_of_plan
from mendq.model.steps import (
    STEPS,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    Owner,
    SetVisibilityTimeout,
)

ATTACH = (CreateDlq("", "arn"), AttachDlq("", "{}"))


@pytest.mark.parametrize(
    ("steps", "owner"),
    [
        ((), Owner.HEAL),
        ((SetVisibilityTimeout(30, 45),), Owner.HEAL),
        (ATTACH[:1], Owner.ATTACH_DLQ),
        (ATTACH, Owner.ATTACH_DLQ),
    ],
)
def test_a_plan_and_its_case_have_the_same_owner(
    steps: tuple[AttributeStep, ...], owner: Owner
) -> None:
    assert owner_of_plan(steps) is owner
    assert owner_of_case([step.document() for step in steps]) is owner


def test_a_step_that_only_an_older_mendq_knew_is_heals_to_decline() -> None:
    assert owner_of_case([{"attribute": "Gone", "before": "", "after": "1"}]) is Owner.HEAL


def test_every_owner_has_steps_of_its_own() -> None:
    assert {step.owner for step in STEPS} == set(Owner)
