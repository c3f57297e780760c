"""The demo's redrive reports every order that is not where the story says."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.demo.redrive import ORDERS, locate_orders

POISON = {order["order_id"] for order in ORDERS if order["address"] is None}
GOOD = {order["order_id"] for order in ORDERS} - POISON
ONCE = dict.fromkeys(GOOD, 1)


def test_demo_redrive_accounts_for_all_200_orders() -> None:
    counts, faults = locate_orders(GOOD | {"new-001"}, POISON | {"none"}, (), ONCE)
    assert (len(ORDERS), len(POISON), faults) == (200, 20, [])
    expected = {"messages": 200, "processed": 180, "quarantined": 20, "left": 0, "lost": 0}
    assert counts == expected


@pytest.mark.parametrize(
    ("handled", "quarantined", "dead", "charged", "faults"),
    [
        (GOOD - {"order-003"}, POISON, (), ONCE, ["lost", "good and not handled"]),
        (GOOD, POISON | {"order-003"}, (), ONCE, ["handled and in quarantine"]),
        (GOOD, POISON, {"order-017"}, ONCE, ["left in the DLQ"]),
        (GOOD, POISON, (), ONCE | {"order-000": 2}, ["not charged exactly once"]),
    ],
)
def test_demo_redrive_reports_orders_that_are_lost_misplaced_or_charged_twice(
    handled: set[str], quarantined: set[str], dead: Any, charged: Any, faults: list[str]
) -> None:
    found = locate_orders(handled, quarantined, dead, charged)[1]
    assert [fault.split(" messages ")[1].partition(":")[0] for fault in found] == faults
