"""Who sells in the story: its consumers' memory, its payments, and its queues at AWS."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from botocore.config import Config

from local_account.demo.consumers.once import Once
from local_account.demo.redrive.orders import Payments
from local_account.process import LocalAccount

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

TABLE = "demo-orders-done"
# A client would ask again by itself: then one failure is several records.
MANY = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)


@dataclass(frozen=True)
class Noting(Once):
    """Remembers as Once does, and tells of each key whether the work was done only now."""

    noted: dict[str, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, key: str, work: Callable[[], object]) -> bool:
        is_new = super().run(key, work)
        with self._lock:
            self.noted[key] = self.noted.get(key, False) or is_new
        return is_new


@dataclass(frozen=True)
class Shop:
    """`hasty` and `careful` are the same memory; each notes its own consumers' orders."""

    sqs: SQSClient
    payments: Payments
    hasty: Noting
    careful: Noting

    @classmethod
    def open(cls, account: LocalAccount) -> Self:
        """Make the table that remembers."""
        dynamodb = account.client("dynamodb", config=MANY)
        dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        sqs = account.client("sqs", config=MANY)
        return cls(sqs, Payments(), Noting(dynamodb, TABLE), Noting(dynamodb, TABLE))
