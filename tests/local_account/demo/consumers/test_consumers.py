"""The careful consumer beside the careless one: same orders, same trouble."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any

import pytest

from local_account.demo.consumers.careful import Careful
from local_account.demo.consumers.careless import Careless
from local_account.demo.consumers.once import Once
from local_account.process import LocalAccount
from tests.local_account.queues import new_queue

pytestmark = pytest.mark.account
TIMEOUT_SECONDS = 2
ORDERS = [f"order-{at:02}" for at in range(12)]
PATIENCE_SECONDS = 60
WORKERS = 3


class Charges(list[str]):
    """What customers were charged; a charge is slow, and of a poison order there is none."""

    def __init__(self, poison: str = "", seconds: float = 0.3) -> None:
        super().__init__()
        self.poison, self.seconds = poison, seconds

    def charge(self, order: Mapping[str, Any]) -> None:
        if order["order_id"] == self.poison:
            raise ValueError(order["order_id"])
        sleep(self.seconds)
        self.append(order["order_id"])


class Shop:
    """A queue of orders, and the table of those that are done."""

    def __init__(self, account: LocalAccount, *, fifo: bool = False) -> None:
        self.queue = new_queue(account, fifo=fifo, VisibilityTimeout=str(TIMEOUT_SECONDS))
        self.dynamodb, self.table = account.client("dynamodb"), f"shop-{uuid.uuid4().hex[:8]}"
        self.dynamodb.create_table(
            TableName=self.table,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def send(self, *order_ids: str, **more: str) -> None:
        for each in order_ids:
            fifo = more and {**more, "MessageDeduplicationId": uuid.uuid4().hex}
            body = json.dumps({"order_id": each})
            self.queue.sqs.send_message(QueueUrl=self.queue.url, MessageBody=body, **fifo)

    def left(self) -> int:
        kinds = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(map(int, self.queue.attributes(*kinds).values()))

    def careful(self, charges: Charges, left: int) -> None:
        """Orders are consumed carefully until so many messages are left."""
        once = Once(self.dynamodb, self.table, claim_seconds=10)
        sqs, url = self.queue.sqs, self.queue.url
        consumer = Careful(sqs, url, once, charges.charge, TIMEOUT_SECONDS)
        _consume(consumer.consume, lambda: self.left() <= left)


def _consume(consume: Callable[[], None], is_over: Callable[[], bool]) -> None:
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
    shops, careful, careless = (Shop(account), Shop(account)), Charges(), Charges()
    for shop in shops:
        shop.send(*ORDERS)
    shops[0].careful(careful, left=0)
    assert sorted(careful) == ORDERS
    # Its late deletes are answered with success and delete nothing: it would never end.
    queue = shops[1].queue
    consumer = Careless(queue.sqs, queue.url, careless.charge)
    _consume(consumer.consume, lambda: len(careless) > len(ORDERS))
    assert max(Counter(careless).values()) > 1


def test_a_poison_order_takes_no_neighbour_along(account: LocalAccount) -> None:
    shop, charges = Shop(account), Charges(ORDERS[3], seconds=0)
    for body in ("no JSON", "[]", "{}"):
        shop.queue.send(body)
    shop.send(*ORDERS[:8], ORDERS[0])  # one of them twice
    shop.careful(charges, left=4)
    assert sorted(charges) == [*ORDERS[:3], *ORDERS[4:8]]
    assert shop.left() == 4


def test_what_stands_behind_a_failed_order_of_its_group_does_not_overtake_it(
    account: LocalAccount,
) -> None:
    shop, charges = Shop(account, fifo=True), Charges(ORDERS[1], seconds=0)
    shop.send(*ORDERS[:4], MessageGroupId="a")
    shop.send("other", MessageGroupId="b")
    shop.careful(charges, left=3)
    assert set(charges) == {ORDERS[0], "other"}
