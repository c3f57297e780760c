"""The ledger's pages: which are still to be sent, and how many an hour may be."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from functions.aws import ledger_items as items
from functions.aws.ledger_writes import page_item
from functions.aws.transactions import ledger_errors
from functions.healing.page import Page
from functions.healing.page_record import PageRecord
from functions.healing.paging import PAGES_PER_HOUR, Severity

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# A page about the account whose news has changed is told again no sooner than this.
ACCOUNT_PAGES_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class LedgerPages:
    """All methods raise LedgerUnavailable. `partition` is a queue's ARN, or the account."""

    client: DynamoDBClient
    table: str

    def spend(self, severity: Severity, now: datetime) -> bool:
        """Take one of the hour's pages; False where they are spent."""
        return self._changed(
            Key=items.pages_key(severity, now),
            UpdateExpression="ADD pages :one SET expires_at = :expires",
            ConditionExpression="attribute_not_exists(pages) OR pages < :most",
            ExpressionAttributeValues={
                ":one": {"N": "1"},
                ":most": {"N": str(PAGES_PER_HOUR)},
                ":expires": items.epoch(now + timedelta(hours=2)),
            },
        )

    def give_back(self, severity: Severity, now: datetime) -> None:
        """One of the hour's pages that came to nobody."""
        self._changed(
            Key=items.pages_key(severity, now),
            UpdateExpression="ADD pages :less",
            ConditionExpression="pages > :none",
            ExpressionAttributeValues={":less": {"N": "-1"}, ":none": {"N": "0"}},
        )

    def take(
        self, partition: str, symptom: str, page: PageRecord, now: datetime
    ) -> PageRecord | None:
        """A page left unsent, for this run to send; None where another run has taken it.

        The token is this call's own: asked again after a lost answer, it has taken it.
        """
        taken = self._changed(
            Key=items.page_key(partition, symptom),
            UpdateExpression="SET #at = :now, taken_by = :me",
            ConditionExpression="(#at = :at OR taken_by = :me) AND attribute_exists(body)",
            ExpressionAttributeNames={"#at": "at"},
            ExpressionAttributeValues={
                ":now": items.epoch(now),
                ":at": items.epoch(page.at),
                ":me": {"S": uuid4().hex},
            },
        )
        return replace(page, at=now) if taken else None

    def is_sent(self, partition: str, symptom: str, page: PageRecord) -> None:
        """Keep what it said, drop its text."""
        self._ended(partition, symptom, page, page.sent())

    def drop(self, partition: str, symptom: str, page: PageRecord) -> None:
        """Of what is not to be sent any more."""
        self._ended(partition, symptom, page, page.dropped())

    def _ended(self, partition: str, symptom: str, page: PageRecord, end: PageRecord) -> None:
        """Nothing happens where a newer page stands there by now: that one is still to be sent."""
        with (
            ledger_errors(),
            suppress(self.client.exceptions.ConditionalCheckFailedException),
        ):
            self.client.put_item(
                TableName=self.table,
                Item={**items.page_key(partition, symptom), **page_item(end)},
                ConditionExpression="#at = :at AND body = :body",
                ExpressionAttributeNames={"#at": "at"},
                ExpressionAttributeValues={
                    ":at": items.epoch(page.at),
                    ":body": {"S": page.body},
                },
            )

    def due_for_account(
        self, symptom: str, news: str, page: Page, now: datetime
    ) -> PageRecord | None:
        """The page about the account that this run is to send: this one, or one left unsent.

        Raises LedgerUnreadable where its item is none of ours.
        """
        key = items.page_key(items.ACCOUNT, symptom)
        with ledger_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        with items.reading(f"the item {key}"):
            last = items.page_of(answer.get("Item", {}))
        if last and last.was_left_unsent(now):
            return self.take(items.ACCOUNT, symptom, last, now)
        if last and (last.has_told(news, now) or now - last.at < ACCOUNT_PAGES_EVERY):
            return None
        record = PageRecord.after(last, news, page, urgent=True, at=now)
        return record if self.put(key, record, last) else None

    def put(self, key: Mapping[str, Any], record: PageRecord, last: PageRecord | None) -> bool:
        """To be sent by this run; False where another has put one behind `last` meanwhile."""
        taken_by = {"S": uuid4().hex}
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(pk) OR taken_by = :me",
            "ExpressionAttributeValues": {":me": taken_by},
        }
        if last:
            condition = {
                "ConditionExpression": "#at = :seen OR taken_by = :me",
                "ExpressionAttributeNames": {"#at": "at"},
                "ExpressionAttributeValues": {":seen": items.epoch(last.at), ":me": taken_by},
            }
        item = {**key, **page_item(record), "taken_by": taken_by}
        with ledger_errors():
            try:
                self.client.put_item(TableName=self.table, Item=item, **condition)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def _changed(self, **update: Any) -> bool:
        with ledger_errors():
            try:
                self.client.update_item(TableName=self.table, **update)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True
