"""The ledger's pins: which policy a person called good, one a queue.

A generation is never given twice: a pin that is taken away leaves its number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.aws import ledger_items as items
from functions.aws.errors import LedgerUnreadable
from functions.aws.transactions import ledger_errors
from functions.healing.pin import Pin

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class UnreadablePin:
    """What stands where a queue's pin would, and is none of ours; nothing is put back by it."""

    queue_arn: str
    item: items.Item
    why: str


@dataclass(frozen=True)
class Pins:
    """All methods raise LedgerUnavailable."""

    client: DynamoDBClient
    table: str

    def of(self, queue_arn: str) -> Pin | None:
        """The queue's pin, good or not. Raises LedgerUnreadable for one that is none of ours."""
        found = self.look(queue_arn)
        if isinstance(found, UnreadablePin):
            raise LedgerUnreadable(f"the pin of {queue_arn}: {found.why}")
        return found

    def look(self, queue_arn: str) -> Pin | UnreadablePin | None:
        """The same, for whoever can do something about one that is none of ours."""
        item = self._item(queue_arn)
        if not item:
            return None
        try:
            int(item["generation"]["N"])
            return Pin.from_document(json.loads(item["pin"]["S"])) if "pin" in item else None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            return UnreadablePin(queue_arn, item, repr(error))

    def last_generation(self, queue_arn: str) -> int:
        """The number of the newest pin, also of one that was taken away; 0 where there was none.

        Raises LedgerUnreadable.
        """
        try:
            return int(self._item(queue_arn).get("generation", {"N": "0"})["N"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LedgerUnreadable(f"the pin of {queue_arn}: {error!r}") from error

    def put(self, pin: Pin) -> bool:
        """Keep it in place of the one before; False where another was pinned meanwhile."""
        text = {"S": json.dumps(pin.document(), sort_keys=True)}
        return self._put(
            {
                "Item": {
                    **_key(pin.queue_arn),
                    "pin": text,
                    "generation": {"N": str(pin.generation)},
                },
                "ConditionExpression": "attribute_not_exists(pk) OR generation = :before "
                "OR pin = :mine",
                "ExpressionAttributeValues": {
                    ":before": {"N": str(pin.generation - 1)},
                    ":mine": text,
                },
            }
        )

    def clear(self, unreadable: UnreadablePin) -> bool:
        """Take it away; False where something else stands there by now.

        Its number stays taken where it can be read, and else is lost with it.
        """
        names = [name for name in ("pin", "generation") if name in unreadable.item]
        number = unreadable.item.get("generation", {}).get("N", "")
        kept = {"generation": {"N": number if number.isdecimal() else "0"}}
        absent = {"pin", "generation"}.difference(names)
        conditions = [
            *(f"{name} = :{name}" for name in names),
            *(f"attribute_not_exists({name})" for name in sorted(absent)),
        ]
        return self._put(
            {
                "Item": {**_key(unreadable.queue_arn), **kept},
                "ConditionExpression": " AND ".join(conditions),
                **(
                    {"ExpressionAttributeValues": {f":{e}": unreadable.item[e] for e in names}}
                    if names
                    else {}
                ),
            }
        )

    def remove(self, pin: Pin) -> bool:
        """Take it away; False where another was pinned meanwhile."""
        generation = {"N": str(pin.generation)}
        return self._put(
            {
                "Item": {**_key(pin.queue_arn), "generation": generation},
                "ConditionExpression": "generation = :this",
                "ExpressionAttributeValues": {":this": generation},
            }
        )

    def _put(self, request: dict[str, Any]) -> bool:
        with ledger_errors():
            try:
                self.client.put_item(TableName=self.table, **request)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def _item(self, queue_arn: str) -> items.Item:
        with ledger_errors():
            answer = self.client.get_item(
                TableName=self.table, Key=_key(queue_arn), ConsistentRead=True
            )
        return answer.get("Item", {})


def _key(queue_arn: str) -> items.Key:
    return items.key(queue_arn, "pin")
