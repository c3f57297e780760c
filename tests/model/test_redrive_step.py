"""The step that sends messages back: what it may say, and that nothing stands of it."""

from __future__ import annotations

import pytest

from mendq.model.steps import (
    HELD,
    STEPS,
    Owner,
    RedriveMessages,
    kind_of,
    leaves_a_value,
    stays,
)

SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"


def test_it_is_known_by_its_name_and_redrive_owns_it() -> None:
    assert kind_of("Dlq") is RedriveMessages
    assert RedriveMessages.owner is Owner.REDRIVE


@pytest.mark.parametrize(
    ("before", "after"),
    [(SOURCE, HELD), ("", SOURCE), (SOURCE, SOURCE), (HELD, ""), (HELD, HELD), (HELD, "orders")],
)
def test_messages_go_from_where_they_are_held_to_a_queue(before: str, after: str) -> None:
    assert RedriveMessages(before, after).out_of_bounds()


def test_back_to_a_queue_is_within_bounds() -> None:
    assert RedriveMessages(HELD, SOURCE).out_of_bounds() is None


@pytest.mark.parametrize("attributes", [{}, {"Dlq": SOURCE}, {"RedrivePolicy": "{}"}])
def test_nothing_ever_stands_in_the_queue(attributes: dict[str, str]) -> None:
    assert RedriveMessages.standing_in(attributes) == HELD


def test_it_alone_leaves_no_value_and_is_never_taken_back() -> None:
    assert [each for each in STEPS if not each.leaves_a_value] == [RedriveMessages]
    assert stays("Dlq")
    assert not leaves_a_value("Dlq")
    assert leaves_a_value("VisibilityTimeout")
    assert leaves_a_value("WhatAnOlderMendqKnew")
