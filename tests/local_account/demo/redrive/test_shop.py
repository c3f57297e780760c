"""Consumers that stop when they are told to, and a memory that says what it had known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local_account.demo.redrive.fleet import consuming
from local_account.demo.redrive.queue_counts import is_there, messages_in
from local_account.demo.redrive.shop import Shop


class Account:
    """AWS as moto has it."""

    def client(self, service: str, **_: Any) -> Any:
        return boto3.client(service, region_name="us-east-1")


@pytest.fixture
def shop() -> Iterator[Shop]:
    with mock_aws():
        account: Any = Account()
        yield Shop.open(account)


def test_what_hasty_consumers_did_careful_ones_know(shop: Shop) -> None:
    order = {"order_id": "order-001", "address": "1 Elm Street"}
    for memory in (shop.hasty, shop.careful, shop.careful):
        memory.run("order-001", lambda: shop.payments.charge(order))
    assert shop.payments.charged == {"order-001": 1}
    assert (shop.hasty.noted, shop.careful.noted) == ({"order-001": True}, {"order-001": False})


def test_what_failed_is_not_noted(shop: Shop) -> None:
    def work() -> None:
        raise ValueError("no address")

    with pytest.raises(ValueError, match="no address"):
        shop.careful.run("order-007", work)
    assert shop.careful.noted == {}


def test_a_queue_is_looked_for_without_a_call_that_fails(shop: Shop) -> None:
    url = shop.sqs.create_queue(QueueName="orders-quarantine-2")["QueueUrl"]
    assert is_there(shop.sqs, "orders-quarantine-2")
    assert not is_there(shop.sqs, "orders-quarantine")
    shop.sqs.send_message(QueueUrl=url, MessageBody="a")
    assert messages_in(shop.sqs, url) == 1
    shop.sqs.receive_message(QueueUrl=url)
    assert messages_in(shop.sqs, url) == 1


def test_consumers_go_on_for_as_long_as_the_block() -> None:
    rounds = threading.Semaphore(0)
    before = threading.active_count()
    with consuming(rounds.release, 3):
        assert all(rounds.acquire(timeout=5) for _ in range(9))
        assert threading.active_count() == before + 3
    assert threading.active_count() == before
