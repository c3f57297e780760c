"""A consumer that asks for more time too late charges nobody and deletes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from local_account.demo.consumers.once import Busy
from local_account.demo.redrive.hasty import Hasty
from local_account.demo.redrive.orders import Order, Payments, orders, updates
from local_account.demo.traffic import Caller

LATE = ClientError(
    {"Error": {"Code": "MessageNotInflight", "Message": "The message is not in flight."}},
    "ChangeMessageVisibility",
)


@dataclass
class Sqs:
    """One batch; what became of it."""

    bodies: list[Order]
    receives: int = 1
    is_late: bool = False
    asked: int = 0
    deleted: list[str] = field(default_factory=list)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {
            "Messages": [
                {
                    "Body": json.dumps(each),
                    "ReceiptHandle": f"{n}",
                    "Attributes": {"ApproximateReceiveCount": f"{self.receives}"},
                }
                for n, each in enumerate(self.bodies)
            ]
        }

    def change_message_visibility(self, **_: Any) -> None:
        self.asked += 1
        if self.is_late:
            raise LATE

    def delete_message_batch(self, *, Entries: list[dict[str, str]], **_: Any) -> None:  # noqa: N803
        self.deleted += [each["ReceiptHandle"] for each in Entries]


class Memory:
    """Remembers all it was told, but for what somebody else is at."""

    def __init__(self, busy: str = "") -> None:
        self.busy, self.keys = busy, list[str]()

    def run(self, key: str, work: Callable[[], object]) -> bool:
        if key == self.busy:
            raise Busy(key)
        if key not in self.keys:
            work()
            self.keys.append(key)
        return True


def _consumed(sqs: Sqs, busy: str = "") -> tuple[Payments, list[str | None]]:
    told: list[str | None] = []
    fakes: Any = (sqs, Memory(busy))
    payments = Payments()
    caller = Caller(fakes[0], "url", told.append)
    Hasty(caller, fakes[1], payments, asks_after_seconds=0, then_works_seconds=0).consume()
    return payments, told


def test_who_asks_in_time_charges_and_deletes() -> None:
    sqs = Sqs([*orders(3, "order"), *updates(2)])
    payments, told = _consumed(sqs)
    assert (told, len(sqs.deleted)) == ([None], 5)
    assert payments.charged == {"order-000": 1, "order-001": 1, "order-002": 1}


def test_who_asks_too_late_lets_all_of_it_go() -> None:
    sqs = Sqs(orders(3, "order"), is_late=True)
    payments, told = _consumed(sqs)
    assert (told, sqs.deleted) == (["The message is not in flight."], [])
    assert not payments.charged


def test_what_was_handed_out_before_is_not_asked_for() -> None:
    sqs = Sqs(orders(3, "order"), receives=2, is_late=True)
    payments, told = _consumed(sqs)
    assert (sqs.asked, told) == (0, [])
    assert len(payments.charged) == len(sqs.deleted) == 3


def test_updates_take_no_time_and_no_asking() -> None:
    sqs = Sqs(updates(10), is_late=True)
    _, told = _consumed(sqs)
    assert (sqs.asked, told, len(sqs.deleted)) == (0, [], 10)


def test_one_that_cannot_be_handled_takes_those_behind_it_along() -> None:
    sqs = Sqs(orders(10, "order", with_poison=True))
    payments, _ = _consumed(sqs)
    assert sorted(payments.charged) == [f"order-{n:03}" for n in range(7)]
    assert sqs.deleted == []


def test_one_that_somebody_else_is_at_is_left_to_them() -> None:
    sqs = Sqs(orders(3, "order"))
    payments, _ = _consumed(sqs, busy="order-001")
    assert sorted(payments.charged) == ["order-000"]
    assert sqs.deleted == []
