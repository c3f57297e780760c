"""Contexts: the clients, settings, stores and time with which one invocation works.

An invocation is one run of a Lambda, or of a command that does a Lambda's work. Each class inherits
from an earlier one and can do more: `TableContext` works with the case table, `StoreContext` also
with the case bucket, `CaseContext` moves cases and notifies people, `ManagingContext` knows which
queues are managed, `WritingContext` writes to queues, and `FixContext` also decides what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from msgspec import Struct

from mendq.aws.clients import Clients, explain_closed_calendars
from mendq.aws.queue import list_managed_queues
from mendq.aws.recent_changes import RecentQueueChanges
from mendq.cases.baselines import Baselines
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.outbox import Notifier
from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.transactions import CaseStoreTable
from mendq.model.case import Severity
from mendq.model.facts import Facts
from mendq.model.mode import Mode
from mendq.model.plan import Refusal
from mendq.model.queue import parse_queue_arn
from mendq.model.settings import (
    CaseSettings,
    CaseStoreSettings,
    CaseTableSettings,
    ManagedCaseSettings,
    OwnerSettings,
)
from mendq.model.steps import AttributeStep, Owner

# A function that writes steps to the queue with these facts. It returns None if all steps were
# written, or the refusal if none was.
WriteSteps = Callable[[Clients, Facts, Sequence[AttributeStep]], Refusal | None]


class TableContext(Struct, frozen=True, kw_only=True):
    """An invocation that reads or writes the case table, and has no case bucket.

    `owner` is the invocation's id, which its claims in the case store have. `now` is the time at
    which the invocation began.
    """

    clients: Clients
    settings: CaseTableSettings
    owner: str
    now: datetime

    def open_store(self, table_class: type[CaseStoreTable]) -> CaseStoreTable:
        """Return an object of `table_class` that reads and writes the case store's table."""
        return table_class(self.clients.dynamodb, self.settings.case_table)

    @property
    def case_store(self) -> CaseStore:
        """The case store's cases, claims, evidence and write budgets."""
        return self.open_store(CaseStore)

    @property
    def open_cases(self) -> OpenCases:
        """The case store's index of open cases, and the transitions of each case."""
        return self.open_store(OpenCases)

    @property
    def baselines(self) -> Baselines:
        """The stored configurations that queues had while they were healthy."""
        return self.open_store(Baselines)


class StoreContext(TableContext, frozen=True, kw_only=True):
    """An invocation that reads or writes the case store: its table and its bucket."""

    settings: CaseStoreSettings

    @property
    def case_bucket(self) -> CaseBucket:
        """The S3 bucket with a copy of each transition of a case."""
        return CaseBucket(self.clients.s3, self.settings.case_bucket)


class CaseContext(StoreContext, frozen=True, kw_only=True, dict=True):
    """An invocation that moves cases and notifies people.

    Decisions about cases use `now`. `real_now` is the real time if the local account has set `now`
    to a later time; None means that `now` is the real time.
    """

    settings: CaseSettings
    real_now: datetime | None = None

    @property
    def now_for_claims(self) -> datetime:
        """The real time. All invocations use it to check if a claim has ended."""
        return self.real_now or self.now

    def is_here(self, queue_arn: str) -> bool:
        """Return True if the queue is in this account and region.

        Raises:
            ValueError: `queue_arn` is not the ARN of a queue.
        """
        queue = parse_queue_arn(queue_arn)
        return (queue.account, queue.region) == (self.settings.account, self.clients.region)

    @cached_property
    def recent_change_reader(self) -> RecentQueueChanges:
        """A reader of recent changes to queues, as CloudTrail recorded them."""
        return RecentQueueChanges(self.clients)

    @property
    def notifier(self) -> Notifier:
        """The sender of notifications.

        It keeps each notification in the case store until SNS has accepted it.
        """
        topic_arn_by_severity = {
            Severity.URGENT: self.settings.urgent_topic_arn,
            Severity.INFO: self.settings.info_topic_arn,
        }
        return Notifier(
            client=self.clients.dynamodb,
            table=self.settings.case_table,
            clients=self.clients,
            topic_arn_by_severity=topic_arn_by_severity,
            now=self.now,
            topic_arn_by_team=self.settings.team_topic_arns,
            chat_severities=self.settings.chat,
            docs_url=self.settings.docs_url,
        )


class ManagingContext(CaseContext, frozen=True, kw_only=True):
    """An invocation that moves cases automatically. Its settings say which queues are managed."""

    settings: ManagedCaseSettings


class WritingContext(CaseContext, frozen=True, kw_only=True):
    """An invocation that writes to queues.

    Args:
        remaining_seconds: Returns the seconds until the invocation must end. A write must be made
            and recorded before then.
        write_steps: Writes steps to a queue.
        clock: Returns the current time, with which writes are recorded. `now` is too early for a
            write late in a long run, because it stays the same during the invocation.
    """

    remaining_seconds: Callable[[], float]
    write_steps: WriteSteps
    clock: Callable[[], datetime] | None = None

    @property
    def clock_time(self) -> datetime:
        """The clock's time, or `now` if there is no clock."""
        return self.clock() if self.clock else self.now


class FixContext(WritingContext, frozen=True, kw_only=True, dict=True):
    """An invocation of a Lambda that decides about queues and fixes them.

    `writer` is that Lambda. It writes only the steps that it owns (`mendq/model/steps.py`).
    """

    settings: OwnerSettings
    writer: Owner

    @cached_property
    def calendar_freeze_reason(self) -> str | None:
        """Why a change calendar forbids changes; None if none does. Read once per invocation."""
        return explain_closed_calendars(self.clients, self.settings.freeze_calendars)

    @cached_property
    def mode_by_managed_arn(self) -> Mapping[str, Mode]:
        """The mode of each managed queue by ARN. Listed on first use, once per invocation."""
        queues = list_managed_queues(self.clients, self.settings.account, self.settings.consent)
        return {queue.queue_arn: queue.mode for queue in queues}
