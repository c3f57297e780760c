"""The queues that an hour's round saw messages being moved into although they came from others.

A queue does not say what is moved into it: only its dead-letter queue, and every other one, does. A
sweep has asked all that it knows; heal, which looks at one queue, takes it from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from functions.aws import ledger_items as items
from functions.aws.transactions import ledger_errors
from functions.healing.evidence import to_text
from functions.healing.sweeping import round_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

A_ROUND = timedelta(hours=1)
KEPT = timedelta(days=1)


@dataclass(frozen=True)
class MovesByName:
    """All methods raise LedgerUnavailable."""

    client: DynamoDBClient
    table: str

    def note(self, queue_arns: Iterable[str], now: datetime) -> None:
        """Beside what this hour's round has seen so far."""
        found = sorted(queue_arns)
        if not found:
            return
        with ledger_errors():
            self.client.update_item(
                TableName=self.table,
                Key=_key(now),
                UpdateExpression="ADD into_queues :found SET expires_at = :expires",
                ExpressionAttributeValues={
                    ":found": {"SS": found},
                    ":expires": items.epoch(now + KEPT),
                },
            )

    def into(self, now: datetime) -> frozenset[str]:
        """What this hour's round and the last one saw."""
        return frozenset(self._noted(now)) | frozenset(self._noted(now - A_ROUND))

    def _noted(self, now: datetime) -> list[str]:
        with ledger_errors():
            answer = self.client.get_item(TableName=self.table, Key=_key(now), ConsistentRead=True)
        with items.reading("the moves that a sweep saw"):
            noted = answer.get("Item", {}).get("into_queues", {}).get("SS", [])
        return list(noted)


def _key(now: datetime) -> items.Key:
    return items.key(items.ACCOUNT, f"moves#{to_text(round_of(now))}")
