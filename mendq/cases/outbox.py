"""The outbox of notifications: stored first, then put as an event and published to SNS."""

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
from mendq.cases.items import ACCOUNT
from mendq.cases.transactions import Table
from mendq.model.case import (
    NOTIFICATION_EVENT,
    NOTIFICATIONS_PER_HOUR,
    RESERVED_FOR_NEW_CALLERS,
    Case,
    Severity,
)
from mendq.notifications.sent import NotificationRecord, NotificationText, for_sns
from mendq.notifications.text import linked, plain

# A page about the account whose news has changed is told again no sooner than this.
AGAIN_AFTER = timedelta(hours=1)
# What is held back is tried again, and said in sum, as often as this.
HELD_BACK = timedelta(minutes=10)


class Notifier(Table, frozen=True):
    """A page is in the case store before it is sent, so that one lost on the way is sent again.

    All methods raise CaseStoreUnavailable. `partition` is a queue's ARN, or the account; `teams`
    are the topics of those that a queue's tag may name, `chat` the severities that chat shows, and
    `docs_url` is where runbooks are read.
    """

    clients: Clients
    topic_arns: dict[Severity, str]
    now: datetime
    teams: Mapping[str, str] = {}
    chat: Sequence[Severity] = ()
    docs_url: str | None = None

    def send(
        self, partition: str, symptom: str, page: NotificationRecord, case: Case | None = None
    ) -> bool:
        """Publish, then note that it was; raises NotificationNotSent: then it stays to be sent.

        False where the hour has had its pages: it stays to be sent as well.
        """
        severity = Severity.URGENT if page.urgent else Severity.INFO
        hour = items.notifications_key(severity, self.now)
        callers = case.callers if case else (partition,)
        if not self._spend(hour, page, callers):
            return False
        try:
            self._publish(severity, partition, symptom, page)
        except EventNotPut:
            raise
        except NotificationNotSent:
            with suppress(CaseStoreUnavailable):  # a page fewer this hour, and the error is told
                back = "ADD pages :less DELETE callers :callers"
                self.change(hour, back, "pages > :none", less=-1, none=0, callers=callers)
            raise
        self._end(partition, symptom, page, page.sent())
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
            self._end(partition, symptom, page, page.dropped())
            return True
        taken = self.take(partition, symptom, page)
        return taken is None or self.send(partition, symptom, taken, case)

    def send_about_account(
        self, symptom: str, news: str, page: NotificationText, after: timedelta = AGAIN_AFTER
    ) -> None:
        """At most once a day for the same news, once an hour for any; no budget holds it back.

        Or one that was left unsent. Raises CaseStoreUnreadable where its item is none of ours, and
        NotificationNotSent.
        """
        key = items.notification_key(ACCOUNT, symptom)
        found = self.get(key)
        with items.reading(f"the item {key}"):
            last = items.page_of(found)
        if last and last.was_left_unsent(self.now):
            due = self.take(ACCOUNT, symptom, last)
        elif last and (last.has_said(news, self.now) or self.now - last.at < after):
            return
        else:
            record = NotificationRecord.after(last, news, page, urgent=True, at=self.now)
            due = record if self.put(key, record, last) else None
        if due is not None:
            self._publish(Severity.URGENT, ACCOUNT, symptom, due)
            self._end(ACCOUNT, symptom, due, due.sent())

    def put(
        self, key: items.Key, record: NotificationRecord, last: NotificationRecord | None
    ) -> bool:
        """To be sent by this run; False where another has put one behind `last` meanwhile."""
        me = uuid4().hex
        item = {**key, **items.page_fields(record), **items.fields(taken_by=me)}
        if last:
            return self.put_item(item, "#at = :seen OR taken_by = :me", seen=last.at, me=me)
        return self.put_item(item, "attribute_not_exists(pk) OR taken_by = :me", me=me)

    def take(
        self, partition: str, symptom: str, page: NotificationRecord
    ) -> NotificationRecord | None:
        """A page left unsent, for this run to send; None where another run has taken it.

        The token is this call's own: asked again after a lost answer, it has taken it.
        """
        taken = self.change(
            items.notification_key(partition, symptom),
            "SET #at = :now, taken_by = :me",
            "(#at = :at OR taken_by = :me) AND attribute_exists(body)",
            now=self.now,
            at=page.at,
            me=uuid4().hex,
        )
        return replace(page, at=self.now) if taken else None

    def _spend(self, hour: items.Key, page: NotificationRecord, callers: Sequence[str]) -> bool:
        """Take one of the hour's pages; False where they are spent.

        The last urgent ones are for what is new, of a caller who has had none in this hour.
        """
        named = {f"c{n}": each for n, each in enumerate(callers)}
        had_one = " AND ".join(f"contains(callers, :{each})" for each in named)
        return self.change(
            hour,
            "ADD pages :one, callers :callers SET expires_at = :expires",
            f"attribute_not_exists(pages) OR pages < :few OR (pages < :most AND NOT ({had_one}))",
            **{"one": 1, "callers": callers, **named},
            few=NOTIFICATIONS_PER_HOUR - page.urgent * RESERVED_FOR_NEW_CALLERS,
            most=0 if page.announced else NOTIFICATIONS_PER_HOUR,
            expires=self.now + timedelta(hours=2),
        )

    def _publish(
        self, severity: Severity, partition: str, symptom: str, page: NotificationRecord
    ) -> None:
        """Put an event, then publish; raises NotificationNotSent.

        Where no event can be put, people have the page all the same, but once: that they have it is
        noted, and each later try is of the event alone.
        """
        event = self._event(severity, partition, symptom, page)
        try:
            try:
                put_event(self.clients, NOTIFICATION_EVENT, event)
            except (ClientError, BotoCoreError) as error:
                if page.is_delivered:
                    raise
                self._tell(severity, event, page.team)
                with suppress(CaseStoreUnavailable):  # else people have it once more
                    had = replace(page, announced=page.sent().announced)
                    self._end(partition, symptom, page, had)
                raise EventNotPut(str(error)) from error
            if not page.is_delivered:
                self._tell(severity, event, page.team)
        except (ClientError, BotoCoreError) as error:
            raise NotificationNotSent(str(error)) from error

    def _event(
        self, severity: Severity, partition: str, symptom: str, page: NotificationRecord
    ) -> dict[str, Any]:
        """The event's detail; a page of no case is told apart by its place and what it is about."""
        *_, region, account, _ = self.topic_arns[severity].split(":")
        return {
            "schema": 1,
            "severity": severity,
            "case_id": page.case_id or None,
            "dedup_key": page.case_id or f"{account}/{region}/{symptom}",
            "symptom": symptom,
            "queue_arn": None if partition == ACCOUNT else partition,
            "account": account,
            "region": region,
            "subject": page.subject,
            "text": linked(page.body, self.docs_url),
        }

    def _tell(self, severity: Severity, event: Mapping[str, Any], team: str) -> None:
        """Publish to the team that the queue's tag names, where settings have it, then to all.

        What keeps the team's page back is said in everybody's: nobody else's page waits for it.
        """
        if topic_arn := self.teams.get(team):
            try:
                self._send(severity, topic_arn, event)
            except (ClientError, BotoCoreError) as error:
                said = f"The topic of team {team} did not take it: {plain(error)}"
                event = {**event, "text": f"{event['text']}\n{said}\n"}
        self._send(severity, self.topic_arns[severity], event)

    def _send(self, severity: Severity, topic_arn: str, event: Mapping[str, Any]) -> None:
        message = for_sns(event, chat=severity in self.chat)
        self.clients.sns.publish(TopicArn=topic_arn, **message)

    def _end(
        self, partition: str, symptom: str, page: NotificationRecord, ended: NotificationRecord
    ) -> None:
        """Put how a page ended: sent or dropped, without its text; or that people have it.

        Nothing happens where a newer page stands there by now: that one is still to be sent.
        """
        item = {**items.notification_key(partition, symptom), **items.page_fields(ended)}
        self.put_item(item, "#at = :at AND body = :body", at=page.at, body=page.body)
