"""The careful consumer beside the careless one: same orders, same trouble."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic, sleep
from typing import Any

import pytest

from local_account.demo.consumers.careful import Careful
from local_account.demo.consumers.careless import Careless
from local_account.demo.consumers.once import Once
from local_account.process import LocalAccount

pytestmark = pytest.mark.account
LEASE_SECONDS = 2
SECONDS_AN_ORDER = 0.3
ORDERS = [f"order-{at:02}" for at in range(12)]
PATIENCE_SECONDS = 60
WORKERS = 3


@dataclass
class Charges:
    """What customers were charged; a charge is slow, and of a poison order there is none."""

    poison: frozenset[str] = frozenset()
    seconds: float = SECONDS_AN_ORDER
    made: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def charge(self, order: Mapping[str, Any]) -> None:
        if order["order_id"] in self.poison:
            raise ValueError(order["order_id"])
        sleep(self.seconds)
        with self._lock:
            self.made[order["order_id"]] += 1


class Shop:
    """A queue of orders, some sent twice, and the table of those that are done."""

    def __init__(self, account: LocalAccount, ending: str = "", **attributes: str) -> None:
        name = f"shop-{uuid.uuid4().hex[:8]}"
        self.sqs, self.dynamodb = account.client("sqs"), account.client("dynamodb")
        self.dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.url = self.sqs.create_queue(
            QueueName=f"{name}{ending}",
            Attributes={"VisibilityTimeout": str(LEASE_SECONDS), **attributes},
        )["QueueUrl"]
        self.once = Once(self.dynamodb, name, claim_seconds=10)

    def send(self, *order_ids: str, **more: str) -> None:
        for each in order_ids:
            fifo = more and {**more, "MessageDeduplicationId": uuid.uuid4().hex}
            self.sqs.send_message(
                QueueUrl=self.url, MessageBody=json.dumps({"order_id": each}), **fifo
            )

    def left(self) -> int:
        kinds = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(kinds))
        return sum(int(answer["Attributes"][each]) for each in kinds)

    def consume(self, consume: Callable[[], None], is_over: Callable[[], bool]) -> None:
        """By three workers: one is idle while two have ten messages each."""
        ends = monotonic() + PATIENCE_SECONDS

        def work() -> None:
            while not is_over():
                assert monotonic() < ends
                consume()

        with ThreadPoolExecutor(WORKERS) as workers:
            for each in [workers.submit(work) for _ in range(WORKERS)]:
                each.result()


def test_ten_slow_orders_outlast_the_visibility_and_only_one_consumer_minds(
    account: LocalAccount,
) -> None:
    """Ten orders take 3 s, the visibility timeout 2 s: the last of ten are handed out again
    meanwhile.
    """
    shops = Shop(account), Shop(account)
    for shop in shops:
        shop.send(*ORDERS)
    careful, careless = Charges(), Charges()
    shops[0].consume(
        Careful(shops[0].sqs, shops[0].url, shops[0].once, careful.charge, LEASE_SECONDS).consume,
        lambda: shops[0].left() == 0,
    )
    assert careful.made == Counter(ORDERS)
    # Its late deletes are answered with success and delete nothing: it would never end.
    shops[1].consume(
        Careless(shops[1].sqs, shops[1].url, careless.charge).consume,
        lambda: careless.made.total() > len(ORDERS),
    )
    assert max(careless.made.values()) > 1


def test_a_poison_order_takes_no_neighbour_along(account: LocalAccount) -> None:
    poison = frozenset(ORDERS[3:4])
    shop, charges = Shop(account), Charges(poison, seconds=0)
    for body in ("no JSON", "[]", "{}"):
        shop.sqs.send_message(QueueUrl=shop.url, MessageBody=body)
    shop.send(*ORDERS[:8], ORDERS[0])  # one of them twice
    careful = Careful(shop.sqs, shop.url, shop.once, charges.charge, LEASE_SECONDS)
    shop.consume(careful.consume, lambda: shop.left() <= 4)
    assert charges.made == Counter(set(ORDERS[:8]) - poison)
    assert shop.left() == 4


def test_what_stands_behind_a_failed_order_of_its_group_does_not_overtake_it(
    account: LocalAccount,
) -> None:
    poison = frozenset(ORDERS[1:2])
    shop = Shop(account, ".fifo", FifoQueue="true")
    charges = Charges(poison, seconds=0)
    shop.send(*ORDERS[:4], MessageGroupId="a")
    shop.send("other", MessageGroupId="b")
    consumer = Careful(shop.sqs, shop.url, shop.once, charges.charge, LEASE_SECONDS)
    shop.consume(consumer.consume, lambda: shop.left() <= 3)
    assert set(charges.made) == {ORDERS[0], "other"}
