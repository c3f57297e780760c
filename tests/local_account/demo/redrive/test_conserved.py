"""A letter that is not where the story says is a fault, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.healing.redrive_course import begun
from local_account.demo.redrive.conserved import Conserved, conserved, order_ids_in
from local_account.demo.redrive.orders import NoAddress, Payments, orders, send

LETTERS = orders(20, "order", with_poison=True)
POISON = {"order-007", "order-017"}
GOOD = {each["order_id"] for each in LETTERS} - POISON


def _ended(**over: Any) -> Conserved:
    """As claimed, but for `over`."""
    payments = Payments()
    for each in LETTERS:
        if each["address"]:
            payments.charge(each)
    return replace(
        conserved(LETTERS, GOOD | {"new-001"}, payments, quarantined=POISON, dead=()), **over
    )


def test_every_letter_is_somewhere() -> None:
    ended = _ended()
    assert ended.faults() == []
    assert (set(ended.handled), set(ended.poison), set(ended.lost)) == (GOOD, POISON, set())
    now = datetime.fromisoformat("2026-11-21T21:00:00+00:00")
    course = begun("case-1", dead_letter_arn="d", source_arn="s", canary=5, now=now)
    assert ended.document(replace(course, moved=21, returned=2)) == {
        "letters": 20,
        "processed": 18,
        "quarantined": 2,
        "left": 0,
        "lost": 0,
        "went_back": 21,
        "came_back": 2,
    }


@pytest.mark.parametrize(
    ("over", "faults"),
    [
        (
            {"handled": frozenset(GOOD - {"order-003"})},
            ["1 letters lost: order-003", "1 letters good and not handled: order-003"],
        ),
        (
            {"quarantined": frozenset({"order-007"})},
            ["1 letters lost: order-017", "1 letters poison and not in quarantine: order-017"],
        ),
        (
            {"quarantined": frozenset(POISON | {"order-003"})},
            ["1 letters handled and in quarantine: order-003"],
        ),
        (
            {"dead": frozenset({"order-017"}), "quarantined": frozenset({"order-007"})},
            [
                "1 letters left in the dead-letter queue: order-017",
                "1 letters poison and not in quarantine: order-017",
            ],
        ),
    ],
)
def test_what_is_elsewhere_is_named(over: dict[str, Any], faults: list[str]) -> None:
    assert _ended(**over).faults() == faults


@pytest.mark.parametrize("times", [0, 2])
def test_a_customer_is_charged_once(times: int) -> None:
    payments = Payments()
    for each in LETTERS:
        for _ in range(times if each["order_id"] == "order-000" else 1):
            if each["address"]:
                payments.charge(each)
    ended = conserved(LETTERS, GOOD, payments, quarantined=POISON, dead=())
    assert ended.faults() == ["1 letters not charged exactly once: order-000"]
    assert payments.at_least(2, LETTERS) == (1 if times else 0)


def test_nobody_pays_for_an_order_without_an_address() -> None:
    payments = Payments()
    with pytest.raises(NoAddress):
        payments.charge(LETTERS[7])
    assert payments.at_least(1, LETTERS) == 0


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


def test_letters_are_counted_and_left_where_they_are(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="orders-quarantine")["QueueUrl"]
    send(sqs, url, LETTERS)
    for _ in range(2):
        assert sorted(order_ids_in(sqs, url)) == [each["order_id"] for each in LETTERS]
