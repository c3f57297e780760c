"""The step that sends letters back: what it may say, and that nothing stands of it."""

from __future__ import annotations

import pytest

from functions.healing.every_step import STEPS, is_kept, kind_of, leaves_a_value
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.steps import Owner

SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"


def test_it_is_known_by_its_name_and_redrive_owns_it() -> None:
    assert kind_of("DeadLetters") is RedriveDeadLetters
    assert RedriveDeadLetters.owner is Owner.REDRIVE


@pytest.mark.parametrize(
    ("before", "after"),
    [(SOURCE, HELD), ("", SOURCE), (SOURCE, SOURCE), (HELD, ""), (HELD, HELD), (HELD, "orders")],
)
def test_letters_go_from_where_they_are_held_to_a_queue(before: str, after: str) -> None:
    assert RedriveDeadLetters(before, after).out_of_bounds()


def test_back_to_a_queue_is_within_bounds() -> None:
    assert RedriveDeadLetters(HELD, SOURCE).out_of_bounds() is None


@pytest.mark.parametrize("attributes", [{}, {"DeadLetters": SOURCE}, {"RedrivePolicy": "{}"}])
def test_nothing_ever_stands_in_the_queue(attributes: dict[str, str]) -> None:
    assert RedriveDeadLetters.standing_in(attributes) == HELD


def test_it_alone_leaves_no_value_and_is_never_taken_back() -> None:
    assert [each for each in STEPS if not each.leaves_a_value] == [RedriveDeadLetters]
    assert is_kept("DeadLetters")
    assert not leaves_a_value("DeadLetters")
    assert leaves_a_value("VisibilityTimeout")
    assert leaves_a_value("WhatAnOlderMendqKnew")
