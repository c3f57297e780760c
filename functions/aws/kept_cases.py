"""What the ledger keeps of cases, open or over: their transitions, and the snapshots beside them.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from functions.aws import ledger_items as items
from functions.aws.transactions import ledger_errors
from functions.healing.case import Case

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class KeptCases:
    """All methods raise LedgerUnavailable."""

    client: DynamoDBClient
    table: str

    def transitions(self, case_id: str) -> tuple[Case, ...]:
        """A case's transitions in order, those of the last 400 days; LedgerUnreadable."""
        with ledger_errors():
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="pk = :case",
                ExpressionAttributeValues={":case": items.transition_key(case_id, 0)["pk"]},
                ConsistentRead=True,
            )
            return tuple(cases_in(item for page in pages for item in page["Items"]))

    def transition(self, case_id: str, n: int) -> Case | None:
        """One of a case's transitions, or None where it is kept no more; LedgerUnreadable."""
        return next(cases_in(iter([self._item(items.transition_key(case_id, n))])), None)

    def snapshot_of(self, case: Case) -> Mapping[str, str] | None:
        """The queue's attributes from before this transition wrote; None where none were kept."""
        found = self._item(items.snapshot_key(case))
        if not found:
            return None
        with items.reading(f"the snapshot of {case.case_id}"):
            attributes: Mapping[str, str] = json.loads(found["configuration"]["S"])["attributes"]
        return attributes

    def _item(self, key: items.Key) -> Mapping[str, Any]:
        with ledger_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return answer.get("Item", {})

    def all_transitions(self) -> Iterator[Case]:
        """Every transition that the ledger keeps, in no order: it reads the whole table."""
        with ledger_errors():
            pages = self.client.get_paginator("scan").paginate(
                TableName=self.table,
                FilterExpression="begins_with(pk, :case)",
                ExpressionAttributeValues={":case": {"S": "case#"}},
            )
            yield from cases_in(item for page in pages for item in page["Items"])


def cases_in(found: Iterator[Mapping[str, Any]]) -> Iterator[Case]:
    """Those that are among items of the ledger; raises LedgerUnreadable at one that is none."""
    for item in found:
        with items.reading(f"a transition in {item.get('pk')}"):
            case = items.case_of(item)
        if case is not None:
            yield case
