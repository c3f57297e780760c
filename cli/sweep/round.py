"""One sweep with an operator's credentials: nothing is noted, and nobody is called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from cli.account import Account
from cli.queues import managed_queues
from cli.sweep.price import dollars, dollars_per_month
from cli.sweep.would_do import Judge, WouldDo
from functions.aws.errors import FactsUnavailable, QueueRefusesUs
from functions.aws.managed_queues import ManagedQueue
from functions.aws.sweep import Allowance, sweep
from functions.aws.sweep_looks import SweepLooks, open_about
from functions.healing.sweeping import Finding, Swept, together


@dataclass(frozen=True)
class Round:
    """Every managed queue of an account, at one moment; at most so many metrics are asked for."""

    account: Account
    now: datetime
    most_metrics: int

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """Raises FactsUnavailable."""
        return managed_queues(self.account)

    @cached_property
    def _looks(self) -> SweepLooks:
        return SweepLooks(
            self.account.clients,
            self.now,
            self.account.settings.timing,
            open_about(self.account.open_cases.by_due),
        )

    def stretches(self) -> Iterator[Swept]:
        """How far it has come, again and again; the last is all of it."""
        so_far = Swept()
        left = self.most_metrics

        def may_measure(metrics: int) -> bool:
            nonlocal left
            left -= metrics
            return left >= 0

        for each in sweep(self.queues, self._looks, Allowance(may_measure=may_measure)):
            so_far = together(so_far, each)
            yield so_far

    def would_do(self, finding: Finding) -> WouldDo:
        """What Mendq would do about it; it looks at the queue once more."""
        judge = Judge(self.account.settings, self.account.consent, self._looks)
        queue = next(each for each in self.queues if each.queue_arn == finding.queue_arn)
        try:
            return judge.would_do(finding, queue)
        except (FactsUnavailable, QueueRefusesUs) as error:
            return WouldDo(f"cannot say: {error}")

    def document(self, swept: Swept, would: dict[Finding, WouldDo]) -> dict[str, Any]:
        """As a round in the case bucket, with what would come of it and what it cost."""
        findings = [
            {**each.document(), **would[each].document()} for each in sorted(swept.findings)
        ]
        return {
            **swept.document(self.now),
            "findings": findings,
            "not_looked_at": {arn: str(error) for arn, error in sorted(swept.failed.items())},
            "metrics_asked": swept.metrics,
            "dollars": round(dollars(swept.metrics), 4),
            "dollars_per_month": dollars_per_month(swept.metrics),
        }
