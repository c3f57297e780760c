"""The orders of the story, those that nobody can ever handle, and who was charged how often."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ORDERS = 200
POISON_EACH, POISON_AT = 10, 7
MOST_ENTRIES = 10
Order = Mapping[str, Any]


class NoAddress(Exception):
    """An order that no consumer can handle, however often it comes."""


@dataclass
class Payments:
    """Whoever charges, for several threads."""

    charged: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def charge(self, order: Order) -> None:
        """Raises NoAddress before anybody pays."""
        if order["address"] is None:
            raise NoAddress(order["order_id"])
        with self._lock:
            self.charged[order["order_id"]] += 1

    def at_least(self, times: int, of: Iterable[Order]) -> int:
        """For how many of these somebody was charged so often or more."""
        return sum(self.charged[each["order_id"]] >= times for each in of)


def orders(how_many: int, kind: str, *, with_poison: bool = False) -> list[Order]:
    """Every tenth has no address where some are to be poison."""
    return [
        {
            "order_id": f"{kind}-{n:03}",
            "address": None if with_poison and _is_poison(n) else f"{n + 1} Elm Street",
        }
        for n in range(how_many)
    ]


def updates(how_many: int) -> list[Order]:
    """What consumers of orders are told besides; it takes them no time."""
    return [{"update": n} for n in range(how_many)]


def send(sqs: SQSClient, queue_url: str, bodies: list[Order]) -> None:
    """As many to a call as SQS takes."""
    for first in range(0, len(bodies), MOST_ENTRIES):
        sqs.send_message_batch(
            QueueUrl=queue_url,
            Entries=[
                {"Id": f"{n}", "MessageBody": json.dumps(body)}
                for n, body in enumerate(bodies[first : first + MOST_ENTRIES])
            ],
        )


def _is_poison(number: int) -> bool:
    return number % POISON_EACH == POISON_AT
