"""The table of seal keys: the secret keys with which Mendq seals its marks on messages.

The keys have a table of their own, because many people and Lambdas read the case store, and IAM
cannot hide one item of a table from a `dynamodb:Scan`. Only the redrive Lambda, and people who
look at a quarantine's messages or return them, may read this table.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from os import urandom
from typing import TYPE_CHECKING

from msgspec import Struct

from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.model.seal import SealKey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The stack's output that names the table.
SEAL_TABLE_OUTPUT = "SealTable"
_KEY_BYTES = 32
_CREATE_KEY_UPDATE = (
    "SET seal_key = if_not_exists(seal_key, :new), "
    "former_key = if_not_exists(former_key, :former), "
    "created_at = if_not_exists(created_at, :now)"
)


class SealUse(StrEnum):
    """The marks that a key seals.

    The value is the sort key of the key's item. Earlier versions kept the key in the case store's
    item with the same partition key and sort key.
    """

    # Marks on messages of a DLQ that were sent back, so that a redrive recognizes them.
    REDRIVE = "redrive"
    # Marks on messages in a quarantine.
    QUARANTINE = "receiver"


class SealKeys(Struct, frozen=True):
    """Reads and makes seal keys. The methods raise CaseStoreUnavailable.

    Attributes:
        client: The client of DynamoDB.
        case_table: The case store's table, which held the keys of earlier versions.
        seal_table: The table of seal keys. Empty if the deployed stack is too old to have one.
    """

    client: DynamoDBClient
    case_table: str
    seal_table: str

    def load(self, queue_arn: str, use: SealUse) -> SealKey | None:
        """Return a queue's key, also one that only earlier versions made; None without any."""
        if self.seal_table:
            item = Table(self.client, self.seal_table).get(items.item_key(queue_arn, use))
            if item:
                return _read_seal_key(item, queue_arn)
        former_key = self._load_former_key(queue_arn, use)
        return SealKey(b"", former_key.encode()) if former_key else None

    def provide(self, queue_arn: str, use: SealUse, now: datetime) -> SealKey:
        """Return a queue's key. The first call makes it; later calls return the same key."""
        table = Table(self.client, self.seal_table)
        key = items.item_key(queue_arn, use)
        item = table.get(key) or table.change_and_read(
            key,
            _CREATE_KEY_UPDATE,
            new=urandom(_KEY_BYTES).hex(),
            former=self._load_former_key(queue_arn, use),
            now=now,
        )
        # Without a condition the change always succeeds.
        return _read_seal_key(item or {}, queue_arn)

    def _load_former_key(self, queue_arn: str, use: SealUse) -> str:
        """Return the key that earlier versions stored in the case store; empty without one."""
        item = Table(self.client, self.case_table).get(items.item_key(queue_arn, use))
        return items.read_text(item, "seal_key")


def _read_seal_key(item: items.Item, queue_arn: str) -> SealKey:
    with items.convert_decode_errors(f"the seal key of {queue_arn}"):
        return SealKey(
            item["seal_key"]["S"].encode(),
            item["former_key"]["S"].encode(),
            items.read_time(item["created_at"]),
        )
