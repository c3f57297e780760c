"""Sends pages: one SNS topic per severity.

https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import LedgerUnavailable, PageNotSent
from functions.aws.ledger_items import ACCOUNT
from functions.aws.ledger_pages import LedgerPages
from functions.healing.case import Case
from functions.healing.page import Page
from functions.healing.page_record import PageRecord
from functions.healing.paging import Severity


@dataclass(frozen=True)
class Pager:
    """A page is in the ledger before it is sent, so that one lost on the way is sent again."""

    clients: Clients
    pages: LedgerPages
    topic_arns: dict[Severity, str]
    now: datetime

    def send(self, partition: str, symptom: str, page: PageRecord) -> bool:
        """Publish, then note that it was; raises PageNotSent: then it stays to be sent.

        False where the hour has had its pages: it stays to be sent as well.
        """
        severity = Severity.URGENT if page.urgent else Severity.INFO
        if not self.pages.spend(severity, self.now):
            return False
        try:
            self._publish(severity, Page(page.subject, page.body))
        except PageNotSent:
            with suppress(LedgerUnavailable):  # a page fewer this hour, and the error is told
                self.pages.give_back(severity, self.now)
            raise
        self.pages.is_sent(partition, symptom, page)
        return True

    def send_left_unsent(
        self, partition: str, symptom: str, page: PageRecord | None, case: Case | None
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

    def send_about_account(self, symptom: str, news: str, page: Page) -> None:
        """At most once a day for the same news, once an hour for any; no budget holds it back."""
        due = self.pages.due_for_account(symptom, news, page, self.now)
        if due is not None:
            self._publish(Severity.URGENT, Page(due.subject, due.body))
            self.pages.is_sent(ACCOUNT, symptom, due)

    def _publish(self, severity: Severity, page: Page) -> None:
        try:
            self.clients.sns.publish(
                TopicArn=self.topic_arns[severity], Subject=page.subject, Message=page.body
            )
        except (ClientError, BotoCoreError) as error:
            raise PageNotSent(str(error)) from error
