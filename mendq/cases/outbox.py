"""The outbox of notifications: stored first, then published to SNS."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnavailable, NotificationNotSent
from mendq.cases import items
from mendq.cases.items import ACCOUNT
from mendq.cases.transactions import case_store_errors, notification_item
from mendq.model.case import NOTIFICATIONS_PER_HOUR, Case, Severity
from mendq.notifications.notification import NotificationRecord, NotificationText

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# A page about the account whose news has changed is told again no sooner than this.
ACCOUNT_NOTIFICATIONS_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class NotificationItems:
    """All methods raise CaseStoreUnavailable. `partition` is a queue's ARN, or the account."""

    client: DynamoDBClient
    table: str

    def spend(self, severity: Severity, now: datetime) -> bool:
        """Take one of the hour's pages; False where they are spent."""
        return self._changed(
            Key=items.notifications_key(severity, now),
            UpdateExpression="ADD pages :one SET expires_at = :expires",
            ConditionExpression="attribute_not_exists(pages) OR pages < :most",
            ExpressionAttributeValues={
                ":one": {"N": "1"},
                ":most": {"N": str(NOTIFICATIONS_PER_HOUR)},
                ":expires": items.epoch(now + timedelta(hours=2)),
            },
        )

    def give_back(self, severity: Severity, now: datetime) -> None:
        """One of the hour's pages that came to nobody."""
        self._changed(
            Key=items.notifications_key(severity, now),
            UpdateExpression="ADD pages :less",
            ConditionExpression="pages > :none",
            ExpressionAttributeValues={":less": {"N": "-1"}, ":none": {"N": "0"}},
        )

    def take(
        self, partition: str, symptom: str, page: NotificationRecord, now: datetime
    ) -> NotificationRecord | None:
        """A page left unsent, for this run to send; None where another run has taken it.

        The token is this call's own: asked again after a lost answer, it has taken it.
        """
        taken = self._changed(
            Key=items.notification_key(partition, symptom),
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

    def is_sent(self, partition: str, symptom: str, page: NotificationRecord) -> None:
        """Keep what it said, drop its text."""
        self._ended(partition, symptom, page, page.sent())

    def drop(self, partition: str, symptom: str, page: NotificationRecord) -> None:
        """Of what is not to be sent any more."""
        self._ended(partition, symptom, page, page.dropped())

    def _ended(
        self, partition: str, symptom: str, page: NotificationRecord, end: NotificationRecord
    ) -> None:
        """Nothing happens where a newer page stands there by now: that one is still to be sent."""
        with (
            case_store_errors(),
            suppress(self.client.exceptions.ConditionalCheckFailedException),
        ):
            self.client.put_item(
                TableName=self.table,
                Item={**items.notification_key(partition, symptom), **notification_item(end)},
                ConditionExpression="#at = :at AND body = :body",
                ExpressionAttributeNames={"#at": "at"},
                ExpressionAttributeValues={
                    ":at": items.epoch(page.at),
                    ":body": {"S": page.body},
                },
            )

    def due_for_account(
        self, symptom: str, news: str, page: NotificationText, now: datetime
    ) -> NotificationRecord | None:
        """The page about the account that this run is to send: this one, or one left unsent.

        Raises CaseStoreUnreadable where its item is none of ours.
        """
        key = items.notification_key(items.ACCOUNT, symptom)
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        with items.reading(f"the item {key}"):
            last = items.page_of(answer.get("Item", {}))
        if last and last.was_left_unsent(now):
            return self.take(items.ACCOUNT, symptom, last, now)
        if last and (last.has_said(news, now) or now - last.at < ACCOUNT_NOTIFICATIONS_EVERY):
            return None
        record = NotificationRecord.after(last, news, page, urgent=True, at=now)
        return record if self.put(key, record, last) else None

    def put(
        self, key: Mapping[str, Any], record: NotificationRecord, last: NotificationRecord | None
    ) -> bool:
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
        item = {**key, **notification_item(record), "taken_by": taken_by}
        with case_store_errors():
            try:
                self.client.put_item(TableName=self.table, Item=item, **condition)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def _changed(self, **update: Any) -> bool:
        with case_store_errors():
            try:
                self.client.update_item(TableName=self.table, **update)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True


@dataclass(frozen=True)
class Notifier:
    """A page is in the case store before it is sent, so that one lost on the way is sent again."""

    clients: Clients
    pages: NotificationItems
    topic_arns: dict[Severity, str]
    now: datetime

    def send(self, partition: str, symptom: str, page: NotificationRecord) -> bool:
        """Publish, then note that it was; raises NotificationNotSent: then it stays to be sent.

        False where the hour has had its pages: it stays to be sent as well.
        """
        severity = Severity.URGENT if page.urgent else Severity.INFO
        if not self.pages.spend(severity, self.now):
            return False
        try:
            self._publish(severity, NotificationText(page.subject, page.body))
        except NotificationNotSent:
            with suppress(CaseStoreUnavailable):  # a page fewer this hour, and the error is told
                self.pages.give_back(severity, self.now)
            raise
        self.pages.is_sent(partition, symptom, page)
        return True

    def send_left_unsent(
        self, partition: str, symptom: str, page: NotificationRecord | None, case: Case | None
    ) -> bool:
        """Send what a run that died, or an hour full of pages, has left; False: it stays again.

        What was to be said of a case that has moved on is dropped: `case` is how it stands.
        """
        if page is None or not page.was_left_unsent(self.now):
            return True
        if page.is_outdated(case):
            self.pages.drop(partition, symptom, page)
            return True
        taken = self.pages.take(partition, symptom, page, self.now)
        return taken is None or self.send(partition, symptom, taken)

    def send_about_account(self, symptom: str, news: str, page: NotificationText) -> None:
        """At most once a day for the same news, once an hour for any; no budget holds it back."""
        due = self.pages.due_for_account(symptom, news, page, self.now)
        if due is not None:
            self._publish(Severity.URGENT, NotificationText(due.subject, due.body))
            self.pages.is_sent(ACCOUNT, symptom, due)

    def _publish(self, severity: Severity, page: NotificationText) -> None:
        try:
            self.clients.sns.publish(
                TopicArn=self.topic_arns[severity], Subject=page.subject, Message=page.body
            )
        except (ClientError, BotoCoreError) as error:
            raise NotificationNotSent(str(error)) from error
