"""One scan with an operator's credentials: nothing is noted, and nobody is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from mendq.aws import queue as aws
from mendq.aws.clients import Clients
from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
)
from mendq.aws.queue import ManagedQueue
from mendq.cases.finding import Finding, Scanned, fewer_of_many, together
from mendq.cli.account import Account
from mendq.cli.scan.price import Purse, dollars, dollars_per_month
from mendq.cli.scan.rehearsal import Rehearsal, looking
from mendq.cli.scan.would_do import BY_NAME, Judge, WouldDo
from mendq.scan.reader import ScanReader, open_about
from mendq.scan.scan import Allowance, scan

_CANNOT_SAY = (FactsUnavailable, CaseStoreUnavailable, CaseStoreUnreadable, QueueRefusesUs)


@dataclass(frozen=True)
class Round:
    """Every managed queue of an account, at one moment; `purse` pays for every metric."""

    account: Account
    now: datetime
    purse: Purse = field(default_factory=Purse)

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """Raises FactsUnavailable."""
        account = self.account
        return aws.managed_queues(self._clients, account.account_id, account.consent)

    @cached_property
    def _clients(self) -> Clients:
        return looking(self.account.session)

    @cached_property
    def _run(self) -> Rehearsal:
        return Rehearsal.of(self._clients, self.account.settings, self.now)

    @cached_property
    def _reader(self) -> ScanReader:
        run = self._run
        return ScanReader(
            run.clients,
            self.now,
            run.settings.timing,
            open_about(run.open_cases.by_due),
            noted_moves=lambda: run.moves_by_name.into(self.now),
            newest_about=run.open_cases.newest_about,
            consent=run.consent,
        )

    def stretches(self) -> Iterator[Scanned]:
        """How far it has come, again and again; the last is all of it."""
        so_far = Scanned()
        for each in scan(self.queues, self._reader, Allowance(may_measure=self.purse.take)):
            so_far = together(so_far, each)
            yield so_far

    def would_do(self, findings: Iterable[Finding]) -> Iterator[tuple[Finding, WouldDo]]:
        """What Mendq would do about each; it looks at the queues once more."""
        tags = {each.queue_arn: each.tags for each in self.queues}
        found = tuple(sorted(findings))
        judge = Judge(self._run, self._reader, found, tags, self.purse.take)
        for each in found:
            try:
                yield each, judge.would_do(each)
            except _CANNOT_SAY as error:
                yield each, WouldDo("cannot say", why=str(error))

    def metrics_an_hour(self, scanned: Scanned, would: Mapping[Finding, WouldDo]) -> int:
        """What the scan of an hour like this asks for, and heal again about what it is told."""
        announced = [
            each for each, what in would.items() if BY_NAME[each.symptom].plan and what.is_announced
        ]
        mass = {each.symptom for each, what in would.items() if what.is_of_many}
        return scanned.metrics + sum(
            self._reader.metrics_asked_again(each.queue_arn, BY_NAME[each.symptom].every_need)
            for each in fewer_of_many(announced, mass)
        )

    def document(self, scanned: Scanned, would: Mapping[Finding, WouldDo]) -> dict[str, Any]:
        """As a round in the case bucket, with what would come of it and what it cost."""
        findings = [
            {**each.document(), **would[each].document()} for each in sorted(scanned.findings)
        ]
        asked = self.purse.spent
        return {
            **scanned.document(self.now),
            "findings": findings,
            "not_looked_at": {arn: str(error) for arn, error in sorted(scanned.failed.items())},
            "metrics_asked": asked,
            "dollars": round(dollars(asked), 4),
            "metrics_an_hour": self.metrics_an_hour(scanned, would),
            "dollars_per_month": dollars_per_month(self.metrics_an_hour(scanned, would)),
        }
