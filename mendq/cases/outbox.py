"""Send notifications: store each one, put an event about it on the bus, publish it to SNS.

`mendq.notifications.announcements` decides what to announce and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from mendq.aws.clients import Clients, put_event
from mendq.aws.errors import CaseStoreUnavailable, EventNotPut, NotificationNotSent
from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table
from mendq.model.case import NOTIFICATION_EVENT, Case, Severity
from mendq.notifications.announcements import (
    ACCOUNT_NEWS_PAUSE,
    Announcement,
    Announcements,
    HourlyBudget,
)
from mendq.notifications.sent import NotificationRecord, NotificationText, make_publish_arguments
from mendq.notifications.text import link_runbooks, to_plain_text


class Notifier(Table, frozen=True):
    """Sends notifications. Each one is stored in the case store until it is sent.

    The `partition` of a notification is the queue's ARN, or `ACCOUNT_PARTITION` if it is about the
    account. All methods raise CaseStoreUnavailable.

    Args:
        clients: The clients of the invocation.
        topic_arn_by_severity: The ARN of the SNS topic of each severity.
        now: The time of the invocation.
        topic_arn_by_team: The ARN of the SNS topic of each team that a queue's tag may name.
        chat_severities: The severities whose topics send to chat.
        docs_url: The URL of the runbooks, with `*` in place of the page's name. None to link to the
            runbooks in Mendq's repository.
    """

    clients: Clients
    topic_arn_by_severity: dict[Severity, str]
    now: datetime
    topic_arn_by_team: Mapping[str, str] = {}
    chat_severities: Sequence[Severity] = ()
    docs_url: str | None = None

    def send(
        self,
        partition: str,
        symptom: str,
        notification: NotificationRecord,
        case: Case | None = None,
    ) -> bool:
        """Publish a stored notification, then store that it was sent.

        Args:
            partition: The queue's ARN, or `ACCOUNT_PARTITION`.
            symptom: The symptom's name, or another subject.
            notification: The stored notification.
            case: The case that the notification is about. The hour's budget counts its callers.

        Returns:
            True if the notification was sent. False if this hour's budget is spent; then it stays
            stored.

        Raises:
            EventNotPut: People have the notification, but its event could not be put on the bus.
            NotificationNotSent: SNS or EventBridge did not accept it. It stays stored.
        """
        severity = Severity.URGENT if notification.urgent else Severity.INFO
        budget_key = items.notification_budget_key(severity, self.now)
        callers = case.callers if case else (partition,)
        if not self._spend_budget(budget_key, notification, callers):
            return False
        try:
            self._publish_notification(severity, partition, symptom, notification)
        except EventNotPut:
            raise
        except NotificationNotSent:
            # If this fails too, this hour can send one notification less. Raise the error anyway.
            with suppress(CaseStoreUnavailable):
                self._return_to_budget(budget_key, callers)
            raise
        self._store_sending_outcome(partition, symptom, notification, notification.mark_sent())
        return True

    def send_left_unsent(
        self,
        partition: str,
        symptom: str,
        notification: NotificationRecord | None,
        case: Case | None,
    ) -> Announcement:
        """Send or drop a notification that another run has stored and left unsent.

        `case` is the case as it is now, or None if there is no case.

        Returns:
            HELD_BACK if this hour's budget is spent. BEING_SENT if another run may be sending the
            notification at this moment. Any other value: nothing is left to do.

        Raises:
            EventNotPut: People have the notification, but its event could not be put on the bus.
            NotificationNotSent: SNS or EventBridge did not accept it. It stays stored.
        """
        announcement = Announcements(notification, self.now).decide_stored_notification(case)
        if notification is None:
            return announcement
        if announcement is Announcement.DROP_STORED:
            self._store_sending_outcome(
                partition, symptom, notification, notification.mark_dropped()
            )
            return announcement
        if announcement is not Announcement.SEND_STORED:
            return announcement
        taken_notification = self.take_over(partition, symptom, notification)
        if taken_notification is None:
            return Announcement.ALREADY_ANNOUNCED  # another run has taken it, and sends it
        is_sent = self.send(partition, symptom, taken_notification, case)
        return Announcement.ALREADY_ANNOUNCED if is_sent else Announcement.HELD_BACK

    def send_about_account(
        self,
        symptom: str,
        news_key: str,
        notification_text: NotificationText,
        minimum_pause: timedelta = ACCOUNT_NEWS_PAUSE,
    ) -> None:
        """Send an urgent notification about the account, unless a recent one had the same subject.

        If an earlier notification about the subject is stored and was not sent in time, send that
        one instead. The hourly budget of notifications does not apply here.

        Args:
            symptom: A symptom's name, or another subject.
            news_key: The key of the news. The same key is announced once within 24 hours.
            notification_text: The notification's subject and text.
            minimum_pause: The shortest time between two different news about one subject.

        Raises:
            CaseStoreUnreadable: Mendq cannot read the stored notification.
            EventNotPut: People have the notification, but its event could not be put on the bus.
            NotificationNotSent: SNS or EventBridge did not accept it.
        """
        item_key = items.notification_key(ACCOUNT_PARTITION, symptom)
        notification_item = self.get(item_key)
        with items.convert_decode_errors(f"the item {item_key}"):
            last_record = items.read_notification(notification_item)
        announcement = Announcements(last_record, self.now).decide_account_news(
            news_key, minimum_pause
        )
        record_to_send: NotificationRecord | None = None
        if announcement is Announcement.SEND_STORED and last_record is not None:
            record_to_send = self.take_over(ACCOUNT_PARTITION, symptom, last_record)
        elif announcement is Announcement.ANNOUNCE_NOW:
            new_record = NotificationRecord.create(
                last_record, news_key, notification_text, urgent=True, at=self.now
            )
            is_stored = self.store(item_key, new_record, last_record)
            record_to_send = new_record if is_stored else None
        if record_to_send is not None:
            self._publish_notification(Severity.URGENT, ACCOUNT_PARTITION, symptom, record_to_send)
            self._store_sending_outcome(
                ACCOUNT_PARTITION, symptom, record_to_send, record_to_send.mark_sent()
            )

    def store(
        self,
        item_key: items.Key,
        record: NotificationRecord,
        last_record: NotificationRecord | None,
    ) -> bool:
        """Store a notification that this run will send.

        `last_record` is the stored notification that this run has read, or None if there was none.
        If another run has stored a notification since then, store nothing and return False.
        """
        taker_token = uuid4().hex
        notification_item = {
            **item_key,
            **items.make_notification_attributes(record),
            **items.to_item_attributes(taken_by=taker_token),
        }
        if last_record:
            return self.put_item(
                notification_item,
                "#at = :seen OR taken_by = :me",
                seen=last_record.at,
                me=taker_token,
            )
        return self.put_item(
            notification_item, "attribute_not_exists(pk) OR taken_by = :me", me=taker_token
        )

    def take_over(
        self, partition: str, symptom: str, notification: NotificationRecord
    ) -> NotificationRecord | None:
        """Take over a notification that another run left unsent, so that this run sends it.

        Return None if another run has taken it over, or if it was sent or dropped. Each call stores
        a token of its own. So if DynamoDB's answer is lost, the SDK's retry still succeeds.
        """
        is_taken = self.change(
            items.notification_key(partition, symptom),
            "SET #at = :now, taken_by = :me",
            "(#at = :at OR taken_by = :me) AND attribute_exists(body)",
            now=self.now,
            at=notification.at,
            me=uuid4().hex,
        )
        return replace(notification, at=self.now) if is_taken else None

    def _spend_budget(
        self, budget_key: items.Key, notification: NotificationRecord, callers: Sequence[str]
    ) -> bool:
        """Take one notification from the hour's budget. Return False if `callers` have none left.

        The budget has a higher limit for a notification that names a new caller.
        """
        hourly_budget = HourlyBudget.of(notification)
        caller_by_placeholder = {
            f"c{caller_number}": caller for caller_number, caller in enumerate(callers)
        }
        all_callers_condition = " AND ".join(
            f"contains(callers, :{placeholder})" for placeholder in caller_by_placeholder
        )
        return self.change(
            budget_key,
            "ADD pages :one, callers :callers SET expires_at = :expires",
            "attribute_not_exists(pages) OR pages < :few "
            f"OR (pages < :most AND NOT ({all_callers_condition}))",
            **{"one": 1, "callers": callers, **caller_by_placeholder},
            few=hourly_budget.most_for_all_callers,
            most=hourly_budget.most_for_new_callers,
            expires=self.now + timedelta(hours=2),
        )

    def _return_to_budget(self, budget_key: items.Key, callers: Sequence[str]) -> None:
        """Give a notification that was not sent back to the hour's budget."""
        update_expression = "ADD pages :less DELETE callers :callers"
        self.change(
            budget_key, update_expression, "pages > :none", less=-1, none=0, callers=callers
        )

    def _publish_notification(
        self, severity: Severity, partition: str, symptom: str, notification: NotificationRecord
    ) -> None:
        """Put an event of the notification on the bus, then publish the notification to SNS.

        If the event cannot be put, SNS gets the notification anyway. The stored record then says
        that people have the notification, so that later runs only put the event.

        Raises:
            EventNotPut: People have the notification, but its event could not be put on the bus.
            NotificationNotSent: SNS did not accept the notification. Or an earlier try has already
                delivered it, and its event could not be put this time either.
        """
        event = self._make_event(severity, partition, symptom, notification)
        try:
            try:
                put_event(self.clients, NOTIFICATION_EVENT, event)
            except (ClientError, BotoCoreError) as error:
                if notification.is_delivered:
                    raise
                self._publish_to_team_and_all(severity, event, notification.team)
                delivered_record = replace(
                    notification, announced=notification.mark_sent().announced
                )
                # If this cannot be stored, people get the notification a second time.
                with suppress(CaseStoreUnavailable):
                    self._store_sending_outcome(partition, symptom, notification, delivered_record)
                raise EventNotPut(str(error)) from error
            if not notification.is_delivered:
                self._publish_to_team_and_all(severity, event, notification.team)
        except (ClientError, BotoCoreError) as error:
            raise NotificationNotSent(str(error)) from error

    def _make_event(
        self, severity: Severity, partition: str, symptom: str, notification: NotificationRecord
    ) -> dict[str, Any]:
        """Return the detail of the notification's event.

        `dedup_key` is the case's id. Without a case it is the account, the region and the symptom.
        """
        topic_arn_parts = self.topic_arn_by_severity[severity].split(":")
        region = topic_arn_parts[3]
        account = topic_arn_parts[4]
        case_id = notification.case_id
        return {
            "schema": 1,
            "severity": severity,
            "case_id": case_id or None,
            "dedup_key": case_id or f"{account}/{region}/{symptom}",
            "symptom": symptom,
            "queue_arn": None if partition == ACCOUNT_PARTITION else partition,
            "account": account,
            "region": region,
            "subject": notification.subject,
            "text": link_runbooks(notification.body, self.docs_url),
        }

    def _publish_to_team_and_all(
        self, severity: Severity, event: Mapping[str, Any], team: str
    ) -> None:
        """Publish to the topic of the queue's team, if it has one, then to the severity's topic.

        If the team's topic does not accept it, the notification to the severity's topic says so.
        """
        if topic_arn := self.topic_arn_by_team.get(team):
            try:
                self._publish_to_topic(topic_arn, severity, event)
            except (ClientError, BotoCoreError) as error:
                failure_text = f"The topic of team {team} did not take it: {to_plain_text(error)}"
                event = {**event, "text": f"{event['text']}\n{failure_text}\n"}
        self._publish_to_topic(self.topic_arn_by_severity[severity], severity, event)

    def _publish_to_topic(
        self, topic_arn: str, severity: Severity, event: Mapping[str, Any]
    ) -> None:
        """Publish the text of a notification's event to one topic."""
        publish_arguments = make_publish_arguments(
            event, is_for_chat=severity in self.chat_severities
        )
        self.clients.sns.publish(TopicArn=topic_arn, **publish_arguments)

    def _store_sending_outcome(
        self,
        partition: str,
        symptom: str,
        notification: NotificationRecord,
        outcome_record: NotificationRecord,
    ) -> None:
        """Store the outcome of a notification: sent, dropped, or delivered without its event.

        If a newer notification is stored by now, change nothing: it must still be sent.
        """
        notification_item = {
            **items.notification_key(partition, symptom),
            **items.make_notification_attributes(outcome_record),
        }
        self.put_item(
            notification_item,
            "#at = :at AND body = :body",
            at=notification.at,
            body=notification.body,
        )
