"""The careful consumer beside the careless one: same orders, same trouble."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.consumer.idempotent import Careful, Once
from tests.local_account.queues import new_queue

pytestmark = pytest.mark.account
TIMEOUT_SECONDS = 2
ORDERS = [f"order-{at:02}" for at in range(8)]
PATIENCE_SECONDS = 60
WORKERS = 3


class Charges(list[str]):
    """What customers were charged; of a poison order there is no charge."""

    def __init__(self, poison: str) -> None:
        super().__init__()
        self.poison = poison

    def charge(self, order: Mapping[str, Any]) -> None:
        if order["order_id"] == self.poison:
            raise ValueError(order["order_id"])
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
        """Some workers consume orders carefully until so many messages are left."""
        once = Once(self.dynamodb, self.table, claim_seconds=10)
        sqs, url = self.queue.sqs, self.queue.url
        consumer = Careful(sqs, url, once, charges.charge, TIMEOUT_SECONDS)
        ends = monotonic() + PATIENCE_SECONDS

        def work() -> None:
            while self.left() > left:
                assert monotonic() < ends
                consumer.consume()

        with ThreadPoolExecutor(WORKERS) as workers:
            for each in [workers.submit(work) for _ in range(WORKERS)]:
                each.result()


def test_a_poison_order_takes_no_neighbour_along(account: LocalAccount) -> None:
    shop, charges = Shop(account), Charges(ORDERS[3])
    for body in ("no JSON", "[]", "{}"):
        shop.queue.send(body)
    shop.send(*ORDERS, ORDERS[0])  # one of them twice
    shop.careful(charges, left=4)
    assert sorted(charges) == [*ORDERS[:3], *ORDERS[4:]]
    assert shop.left() == 4


def test_what_stands_behind_a_failed_order_of_its_group_does_not_overtake_it(
    account: LocalAccount,
) -> None:
    shop, charges = Shop(account, fifo=True), Charges(ORDERS[1])
    shop.send(*ORDERS[:4], MessageGroupId="a")
    shop.send("other", MessageGroupId="b")
    shop.careful(charges, left=3)
    assert set(charges) == {ORDERS[0], "other"}
