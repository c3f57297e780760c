"""What an invocation works with: its clients, its settings, its time and its stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property

from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.recent_changes import RecentChanges
from mendq.cases.baselines import Baselines
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.outbox import Notifier
from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.transactions import Stored
from mendq.model.case import Severity
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.queue import parts_of
from mendq.model.settings import CaseSettings, CaseStoreSettings, ManagingSettings
from mendq.model.steps import AttributeStep

# Writes steps to the queue with these facts. Returns why nothing was written, None if all was.
Write = Callable[[Clients, Facts, Sequence[AttributeStep]], Refusal | None]


class StoreContext(Struct, frozen=True, kw_only=True):
    """An invocation that reads or writes the case store.

    `owner` is the invocation's own token: it tells the invocation's claims from those of others.
    """

    clients: Clients
    settings: CaseStoreSettings
    owner: str
    now: datetime

    def stored(self, kind: type[Stored]) -> Stored:
        """Return a table class of this kind that works on the case store."""
        return kind(self.clients.dynamodb, self.settings.case_table)

    @property
    def case_store(self) -> CaseStore:
        """The case store: cases, claims, evidence and budgets."""
        return self.stored(CaseStore)

    @property
    def open_cases(self) -> OpenCases:
        """The open cases and the transitions of cases."""
        return self.stored(OpenCases)

    @property
    def case_bucket(self) -> CaseBucket:
        """The case bucket."""
        return CaseBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def baselines(self) -> Baselines:
        """The stored configurations of queues from the time when they were healthy."""
        return self.stored(Baselines)


class CaseContext(StoreContext, frozen=True, kw_only=True, dict=True):
    """An invocation that moves cases and notifies people.

    Cases are judged by `now`. If that clock was put forward, `real_now` is the real time.
    """

    settings: CaseSettings
    real_now: datetime | None = None

    @property
    def claims_now(self) -> datetime:
        """The time that claims end by: other invocations go by the real clock."""
        return self.real_now or self.now

    def is_here(self, queue_arn: str) -> bool:
        """Return True if the queue is in this account and region.

        Raises ValueError if the text is no ARN of a queue.
        """
        queue = parts_of(queue_arn)
        return (queue.account, queue.region) == (self.settings.account, self.clients.region)

    @cached_property
    def recent_changes(self) -> RecentChanges:
        """The recent changes of queues, as CloudTrail records them."""
        return RecentChanges(self.clients)

    @property
    def notifier(self) -> Notifier:
        """The outbox of notifications."""
        topics = {
            Severity.URGENT: self.settings.urgent_topic_arn,
            Severity.INFO: self.settings.info_topic_arn,
        }
        return Notifier(
            client=self.clients.dynamodb,
            table=self.settings.case_table,
            clients=self.clients,
            topic_arns=topics,
            now=self.now,
            teams=self.settings.team_topic_arns,
            chat=self.settings.chat,
            docs_url=self.settings.docs_url,
        )


class ManagingContext(CaseContext, frozen=True, kw_only=True):
    """An invocation that moves cases without being asked: it must know which queues are managed."""

    settings: ManagingSettings


class WritingContext(CaseContext, frozen=True, kw_only=True):
    """An invocation that writes to queues.

    Args:
        remaining_seconds: Returns the time that is left. A write must be recorded within it.
        write: Writes steps to a queue.
        clock: Returns the current time. `now` stays the same during the invocation, so a write that
            is made late in a long run is recorded with the time of the clock.
    """

    remaining_seconds: Callable[[], float]
    write: Write
    clock: Callable[[], datetime] | None = None

    @property
    def just_now(self) -> datetime:
        """The time by the clock, or `now` if there is no clock."""
        return self.clock() if self.clock else self.now
