"""The context of an invocation: clients, settings, case store, archive and outbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.recent_changes import RecentChanges
from mendq.cases import items
from mendq.cases.finding import round_of
from mendq.cases.outbox import Notifier
from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.transactions import Stored, Table
from mendq.model.case import Severity
from mendq.model.evidence import to_text
from mendq.model.facts import Facts
from mendq.model.json_text import to_json
from mendq.model.plan import Refusal
from mendq.model.queue import parts_of
from mendq.model.settings import CaseSettings, CaseStoreSettings, ManagingSettings
from mendq.model.steps import AttributeStep
from mendq.notifications.configuration import Known

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Takes steps of the queue as it was seen, or says why none was taken; see `apply.write`.
Write = Callable[[Clients, Facts, Sequence[AttributeStep]], Refusal | None]


class CaseBucket(Struct, frozen=True):
    """Transitions, and the findings of each round, one object each: writing twice leaves one.

    All methods raise botocore's errors as they come.
    """

    client: S3Client
    name: str

    def put(self, key: str, document: Mapping[str, Any]) -> None:
        body, kind = to_json(document, sort_keys=True).encode(), "application/json"
        self.client.put_object(Bucket=self.name, Key=key, Body=body, ContentType=kind)


class StoreContext(Struct, frozen=True, kw_only=True):
    """One invocation at the case store; `owner` is its own token: whose claim a claim is."""

    clients: Clients
    settings: CaseStoreSettings
    owner: str
    now: datetime

    def stored(self, kind: type[Stored]) -> Stored:
        """The case store, as what of it is asked for reads and writes it."""
        return kind(self.clients.dynamodb, self.settings.case_table)

    @property
    def case_store(self) -> CaseStore:
        return self.stored(CaseStore)

    @property
    def open_cases(self) -> OpenCases:
        return self.stored(OpenCases)

    @property
    def case_bucket(self) -> CaseBucket:
        return CaseBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def baselines(self) -> Baselines:
        return self.stored(Baselines)


class CaseContext(StoreContext, frozen=True, kw_only=True, dict=True):
    """By `now` cases are judged; where that clock was put forward, `real_now` is the time."""

    settings: CaseSettings
    real_now: datetime | None = None

    @property
    def claims_now(self) -> datetime:
        """What claims run out by: whoever holds one goes by the real clock."""
        return self.real_now or self.now

    def is_here(self, queue_arn: str) -> bool:
        """Whether the queue is in our own account and region; ValueError for what is no ARN."""
        queue = parts_of(queue_arn)
        return (queue.account, queue.region) == (self.settings.account, self.clients.region)

    @cached_property
    def recent_changes(self) -> RecentChanges:
        return RecentChanges(self.clients)

    @property
    def notifier(self) -> Notifier:
        topics = {
            Severity.URGENT: self.settings.urgent_topic_arn,
            Severity.INFO: self.settings.info_topic_arn,
        }
        table, settings = self.settings.case_table, self.settings
        tables = (self.clients.dynamodb, table, self.clients, topics, self.now)
        return Notifier(*tables, settings.team_topic_arns, settings.chat, settings.docs_url)


class ManagingContext(CaseContext, frozen=True, kw_only=True):
    """Of who moves cases by itself, and so asks whether their queues are still to be managed."""

    settings: ManagingSettings


class WritingContext(CaseContext, frozen=True, kw_only=True):
    """With a way to write, and the time that is left: what is written is to be written down too.

    `clock` goes on while `now` stands: what is written late in a long run stands since then.
    """

    remaining_seconds: Callable[[], float]
    write: Write
    clock: Callable[[], datetime] | None = None

    @property
    def just_now(self) -> datetime:
        """The time by the clock, as far as there is one."""
        return self.clock() if self.clock else self.now


# A scan keeps what has not changed anew each year, so that only what is gone expires.
BASELINES_LAST = timedelta(days=400)
# Some fifty of a usual queue; an item holds 400 KB.
MOST_BASELINE_BYTES = 100_000


class Baselines(Table, frozen=True):
    """How queues were when a scan found them well; methods raise CaseStoreUnavailable."""

    def of(self, queue_arn: str) -> tuple[Known, ...]:
        """Newest first, one of a day; none where what is there is none of ours."""
        found = self.get(_baselines_key(queue_arn))
        with suppress(CaseStoreUnreadable), items.reading(f"the baselines of {queue_arn}"):
            known = items.json_in(found, "baselines", list[Known], "[]")
            return tuple(replace(each, at=each.at.astimezone(UTC)) for each in known)
        return ()

    def put(self, queue_arn: str, configuration: Mapping[str, str], now: datetime) -> None:
        """Keep how the queue is, unless that is what was put last; the oldest make room."""
        baselines = [*self.of(queue_arn)]
        if not baselines or baselines[0].attributes != configuration:
            earlier = [each for each in baselines if each.at.date() != now.date()]
            baselines = [Known(now, configuration), *earlier]
        while len(text := items.as_json(baselines)) > MOST_BASELINE_BYTES and len(baselines) > 1:
            baselines.pop()
        update, until = "SET baselines = :baselines, expires_at = :expires", now + BASELINES_LAST
        self.change(_baselines_key(queue_arn), update, baselines=text, expires=until)


def _baselines_key(queue_arn: str) -> items.Key:
    return items.key(queue_arn, "baselines")


A_ROUND = timedelta(hours=1)
RETAINED = timedelta(days=1)


class MovesByName(Table, frozen=True):
    """The queues that rounds saw messages being moved into; methods raise CaseStoreUnavailable."""

    def note(self, queue_arns: Iterable[str], now: datetime) -> None:
        """Beside what this hour's round has seen so far."""
        found = sorted(queue_arns)
        self.change_set(_moves_key(now), "into_queues", now + RETAINED, (), found)

    def into(self, now: datetime) -> frozenset[str]:
        """What this hour's round and the last one saw."""
        noted = [self.get(_moves_key(each)) for each in (now, now - A_ROUND)]
        with items.reading("the moves that a scan saw"):
            return frozenset(arn for each in noted for arn in items.texts_in(each, "into_queues"))


def _moves_key(now: datetime) -> items.Key:
    return items.key(items.ACCOUNT, f"moves#{to_text(round_of(now))}")
