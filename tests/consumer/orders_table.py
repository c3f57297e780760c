"""A DynamoDB table of done orders with a clock that the test sets, and faults for calls to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from threading import Lock
from time import monotonic, sleep
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

TABLE = "orders-done"
PATIENCE_SECONDS = 300
# A part of the UpdateExpression by which each kind of write is recognized.
CLAIM = "held_until = :seen"
CLAIM_OF_A_NEW_KEY = "attribute_not_exists(held_until)"
RENEWAL = "AND held_by = :owner"
DONE = "if_not_exists(is_done"
GIVE_BACK = "REMOVE held_by"


class ProcessKilled(BaseException):
    """The process was killed. No code may catch this."""


@dataclass
class OrdersTable:
    """The table in moto. `now` is the time of DynamoDB's Date header."""

    now: float = 1_800_000_000.0
    done: list[str] = field(default_factory=list)

    def client(self, **config: Any) -> Any:
        """Make a client whose answers have `now` as their Date."""
        made = boto3.client("dynamodb", region_name="us-east-1", config=Config(**config))
        made.meta.events.register("after-call.dynamodb", self._put_date)
        return made

    def _put_date(self, parsed: Any, **_: Any) -> None:
        headers = parsed.setdefault("ResponseMetadata", {}).setdefault("HTTPHeaders", {})
        headers["date"] = formatdate(self.now, usegmt=True)

    def work(self, key: str = "order-1") -> Callable[[], None]:
        return lambda: self.done.append(key)

    def item(self, key: str = "order-1") -> dict[str, Any]:
        answer = self.client().get_item(TableName=TABLE, Key={"key": {"S": key}})
        return dict(answer.get("Item", {}))

    def held_until(self, key: str = "order-1") -> float:
        return float(self.item(key).get("held_until", {"N": "0"})["N"])


@contextmanager
def open_orders_table() -> Iterator[OrdersTable]:
    with mock_aws():
        table = OrdersTable()
        table.client().create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield table


@dataclass
class LostAnswers:
    """Store the first `times` writes that contain `words`, but lose their answers."""

    client: Any
    words: str
    times: int = 1
    lost: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        # After moto, which has stored the write by then.
        self.client.meta.events.register_last("before-send", self._lose)

    def _lose(self, event_name: str, request: Any, **_: Any) -> None:
        is_meant = event_name.endswith("UpdateItem") and self.words in str(request.body)
        with self._lock:
            if is_meant and self.lost < self.times:
                self.lost += 1
                raise ReadTimeoutError(endpoint_url="dynamodb")


def wait_until(happened: Callable[[], object]) -> None:
    """Return as soon as `happened` returns true. Fail after PATIENCE_SECONDS."""
    ends = monotonic() + PATIENCE_SECONDS
    while not happened():
        assert monotonic() < ends, "it did not happen in time"
        sleep(0.01)
