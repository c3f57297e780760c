from __future__ import annotations

import pytest

from functions.healing.steps import STEPS, AttributeStep, SetVisibilityTimeout, undo_command


@pytest.mark.parametrize(
    "step",
    [
        SetVisibilityTimeout(30, 30),
        SetVisibilityTimeout(30, 29),
        SetVisibilityTimeout(30, 43_201),
        SetVisibilityTimeout(-2, -1),
    ],
)
def test_a_step_that_does_not_rise_or_leaves_its_range_says_so(step: AttributeStep) -> None:
    assert step.out_of_bounds()


def test_a_step_within_its_range_has_no_fault() -> None:
    assert SetVisibilityTimeout(0, 1).out_of_bounds() is None
    assert SetVisibilityTimeout(30, 43_200).out_of_bounds() is None


@pytest.mark.parametrize("kind", STEPS)
def test_the_inverse_of_the_inverse_is_the_step(kind: type[AttributeStep]) -> None:
    step = kind(kind.minimum, kind.maximum)
    assert step.inverse() != step
    assert step.inverse().inverse() == step


def test_the_undo_command_sets_what_stood_there() -> None:
    command = undo_command(
        "https://q/1/orders", SetVisibilityTimeout(30, 45).document(), "eu-west-1"
    )
    assert command == (
        "aws sqs set-queue-attributes --region eu-west-1 --queue-url https://q/1/orders "
        "--attributes VisibilityTimeout=30"
    )
