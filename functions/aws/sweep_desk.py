"""What the sweep works with: the ledger, what it has found, and how much it may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.aws.desk import LedgerDesk
from functions.aws.findings_bucket import FindingsBucket
from functions.aws.sweep import Allowance
from functions.aws.sweep_ledger import SweepLedger
from functions.aws.sweep_looks import Paces, SweepLooks, open_about
from functions.healing.managed import Consent
from functions.healing.sweeping import share_of_the_day
from functions.settings import SweepSettings

# What measuring the suspects and handing over may take; by then no further queue is begun with.
SECONDS_TO_MEASURE = 300
SECONDS_TO_HAND_OVER = 60


@dataclass(frozen=True)
class SweepDesk(LedgerDesk):
    """One invocation of the sweep, and how far it may go."""

    settings: SweepSettings
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def consent(self) -> Consent:
        return self.settings.consent

    @property
    def sweep_ledger(self) -> SweepLedger:
        return SweepLedger(self.clients.dynamodb, self.settings.ledger_table, self.owner)

    @property
    def findings(self) -> FindingsBucket:
        return FindingsBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def looks(self) -> SweepLooks:
        about = open_about(self.open_cases.by_due)
        return SweepLooks(
            self.clients,
            self.now,
            self.settings.timing,
            about,
            noted_moves=lambda: self.moves_by_name.into(self.now),
            newest_about=self.open_cases.newest_about,
            consent=self.consent,
            paces=self.paces,
        )

    @property
    def allowance(self) -> Allowance:
        most = share_of_the_day(self.settings.limits.sweep_metrics_per_day, self.now)
        return Allowance(
            may_look=lambda: self.remaining_seconds() > SECONDS_TO_MEASURE,
            may_measure=lambda metrics: (
                self.remaining_seconds() > SECONDS_TO_HAND_OVER
                and self.sweep_ledger.spend(metrics, most, self.now)
            ),
        )
