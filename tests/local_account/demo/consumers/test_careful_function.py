"""The careful Lambda function answers what failed, and does each order once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import boto3
import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from moto import mock_aws

from local_account.demo.consumers.careful_function import handler_of

TABLE = "orders-done"


@dataclass
class Context:
    """What Powertools asks of one."""

    function_name: str = "orders"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


CONTEXT = cast("LambdaContext", Context())


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ORDERS_DONE_TABLE", TABLE)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "orders")
    with mock_aws():
        boto3.client("dynamodb", region_name="us-east-1").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield


def event(*bodies: object, group: str = "") -> dict[str, Any]:
    records = [
        {
            "messageId": f"message-{at}",
            "receiptHandle": "handle",
            "body": json.dumps(each),
            "attributes": {"MessageGroupId": group} if group else {},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
        }
        for at, each in enumerate(bodies)
    ]
    return {"Records": records}


def failed(answer: Mapping[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def order(order_id: str) -> dict[str, str]:
    return {"order_id": order_id}


def test_only_what_failed_comes_again_and_what_was_done_is_not_done_again() -> None:
    done: Counter[str] = Counter()
    broken = {"b"}

    def work(each: Mapping[str, Any]) -> None:
        if each["order_id"] in broken:
            raise ValueError(each)
        done[each["order_id"]] += 1

    handler = handler_of(work)
    assert failed(handler(event(order("a"), order("b"), order("c")), CONTEXT)) == ["message-1"]
    broken.clear()
    assert failed(handler(event(order("b"), order("a"), order("b")), CONTEXT)) == []
    unknown = event({"amount": 7}, order("a"))
    assert failed(handler(unknown, CONTEXT)) == ["message-0"], "it could not be known again"
    assert done == {"a": 1, "b": 1, "c": 1}


def test_behind_a_failure_of_a_group_nothing_is_done() -> None:
    done: list[str] = []

    def work(each: Mapping[str, Any]) -> None:
        if each["order_id"] == "b":
            raise ValueError(each)
        done.append(each["order_id"])

    handler = handler_of(work, is_fifo=True)
    answer = handler(event(order("a"), order("b"), order("c"), group="g"), CONTEXT)
    assert failed(answer) == ["message-1", "message-2"]
    assert done == ["a"]
