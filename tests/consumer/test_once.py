"""A key is done once, whoever dies, is slow, or comes at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mendq.consumer.idempotent import REMEMBERED_SECONDS, Busy, Once

TABLE = "orders-done"


@dataclass
class CaseContext:
    """A table, and what was done."""

    dynamodb: Any
    now: float = 1_000_000.0
    done: list[str] = field(default_factory=list)

    @property
    def once(self) -> Once:
        return Once(self.dynamodb, TABLE, claim_seconds=60, clock=lambda: self.now)

    def run(self, key: str = "order-1") -> bool:
        return self.once.run(key, lambda: self.done.append(key))


@pytest.fixture
def context() -> Iterator[CaseContext]:
    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield CaseContext(dynamodb)


def test_the_second_time_nothing_is_done(context: CaseContext) -> None:
    assert context.run()
    assert not context.run()
    assert context.run("order-2")
    assert context.done == ["order-1", "order-2"]
    item = context.dynamodb.get_item(TableName=TABLE, Key={"key": {"S": "order-1"}})["Item"]
    assert int(item["expires_at"]["N"]) == context.now + REMEMBERED_SECONDS


def test_what_failed_is_free_at_once(context: CaseContext) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        context.once.run("order-1", fail)
    assert context.run()


class Killed(BaseException):
    """The process is gone."""


def test_what_a_dead_one_was_at_is_free_when_its_claim_is_over(context: CaseContext) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        context.once.run("order-1", die)
    context.now += 60
    with pytest.raises(Busy):
        context.run()
    context.now += 1
    assert context.run()


def test_one_that_was_slower_than_its_claim_takes_nobody_elses_away(context: CaseContext) -> None:
    def slow() -> None:
        context.now += 61
        context.once.run("order-1", lambda: context.done.append("another"))

    with pytest.raises(Busy):
        context.once.run("order-1", slow)
    assert not context.run()
    assert context.done == ["another"]
