"""What Lambdas work with: the ledger, and whoever moves a case also its bucket and the pager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from functions.aws.case_bucket import CaseBucket
from functions.aws.clients import Clients
from functions.aws.ledger import Ledger
from functions.aws.ledger_pages import LedgerPages
from functions.aws.moves_by_name import MovesByName
from functions.aws.open_cases import OpenCases
from functions.aws.pager import Pager
from functions.healing.facts import Facts
from functions.healing.paging import Severity
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of
from functions.healing.steps import AttributeStep
from functions.settings import CaseSettings, LedgerSettings, ManagingSettings

# Takes steps of the queue as it was seen, or says why none was taken; see `write_steps.write`.
Write = Callable[[Clients, Facts, Sequence[AttributeStep]], Refusal | None]


@dataclass(frozen=True)
class LedgerDesk:
    """One invocation at the ledger; `owner` is its own token: whose claim a claim is."""

    clients: Clients
    settings: LedgerSettings
    owner: str
    now: datetime

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def open_cases(self) -> OpenCases:
        return OpenCases(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def moves_by_name(self) -> MovesByName:
        return MovesByName(self.clients.dynamodb, self.settings.ledger_table)


@dataclass(frozen=True)
class Desk(LedgerDesk):
    """By `now` cases are judged; where that clock was put forward, `real_now` is the time."""

    settings: CaseSettings
    real_now: datetime | None = field(default=None, kw_only=True)

    @property
    def claims_now(self) -> datetime:
        """What claims run out by: whoever holds one goes by the real clock."""
        return self.real_now or self.now

    def is_here(self, queue_arn: str) -> bool:
        """Whether the queue is in our own account and region; ValueError for what is no ARN."""
        queue = parts_of(queue_arn)
        return (queue.account, queue.region) == (self.settings.account, self.clients.region)

    @property
    def case_bucket(self) -> CaseBucket:
        return CaseBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def pager(self) -> Pager:
        topics = {
            Severity.URGENT: self.settings.urgent_topic_arn,
            Severity.INFO: self.settings.info_topic_arn,
        }
        pages = LedgerPages(self.clients.dynamodb, self.settings.ledger_table)
        return Pager(self.clients, pages, topics, self.now)


@dataclass(frozen=True)
class ManagingDesk(Desk):
    """Of who moves cases by itself, and so asks whether their queues are still to be managed."""

    settings: ManagingSettings


@dataclass(frozen=True)
class WritingDesk(Desk):
    """With a way to write, and the time that is left: what is written is to be written down too.

    `clock` goes on while `now` stands: what is written late in a long run stands since then.
    """

    remaining_seconds: Callable[[], float]
    write: Write
    clock: Callable[[], datetime] | None = field(default=None, kw_only=True)

    @property
    def just_now(self) -> datetime:
        """The time by the clock, as far as there is one."""
        return self.clock() if self.clock else self.now
