"""The scan's last round: when it was, and what it left out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from mendq.cases import items
from mendq.cases.archive import FindingsBucket
from mendq.cases.finding import Scanned
from mendq.cases.transactions import case_store_errors
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Status
from mendq.cli.output import age

# One is made each hour, in stretches; the bucket has it once its first stretch has ended.
AN_HOUR = timedelta(hours=1)
ROUNDS_WITHIN = 2 * AN_HOUR
_NUMBERS = ("queues_scanned", "suspects", "measured", "skipped_for_budget")


@dataclass(frozen=True)
class LastRound:
    """Numbers of queues, as the case bucket holds them; `skipped` were beyond the day's metrics.

    At `failed` something could not be looked at, in queues or the listing of them; `unseen` are
    those of which nothing was seen, and not because they are `gone`.
    """

    at: datetime
    queues: int
    suspects: int
    measured: int
    skipped: int
    findings: int
    gone: int = 0
    unseen: int = 0
    failed: int = 0

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Raise KeyError, TypeError or ValueError where it is none of ours."""
        queues, suspects, measured, skipped = (int(document[each]) for each in _NUMBERS)
        # A version before did not write these.
        gone, unseen, failed = (int(document.get(each, 0)) for each in ("gone", "unseen", "failed"))
        at, findings = datetime.fromisoformat(document["at"]), len(document["findings"])
        return cls(at, queues, suspects, measured, skipped, findings, gone, unseen, failed)

    def document(self) -> dict[str, Any]:
        return {**vars(self), "at": self.at.isoformat()}

    @property
    def is_blind(self) -> bool:
        """Whether there were queues, and it saw nothing of any."""
        return Scanned(queues=self.queues, gone=self.gone, unseen=self.unseen).is_blind

    @property
    def says(self) -> str:
        """In one line, without how long ago it was."""
        left_out = f"{self.skipped:,} skipped for the budget" if self.skipped else "none skipped"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return (
            f"{self.at:%Y-%m-%d %H:%M} UTC, {self.queues:,} queues, {self.suspects:,} suspects, "
            f"{self.measured:,} measured, {left_out}{failed}, {self.findings:,} findings"
        )


def last_round(account: Account) -> LastRound | None:
    """None where none was made, or none can be read; raises ClientError or CaseStoreUnavailable."""
    client, table = account.clients.dynamodb, account.output("CaseTable")
    key = items.key(items.ACCOUNT, "scan")
    with case_store_errors():
        item = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
    if "round" not in item:
        return None
    bucket = FindingsBucket(account.clients.s3, account.output("CaseBucket"))
    begun = datetime.fromisoformat(item["round"]["S"])
    for hour in (begun, begun - AN_HOUR):
        # The first stretch of the newest may be under way.
        with suppress(account.clients.s3.exceptions.NoSuchKey, KeyError, TypeError, ValueError):
            return LastRound.from_document(bucket.get(hour))
    return None


def check_of(found: LastRound | None, account: Account, now: datetime) -> Check:
    """Whether what only the scan finds is found at all."""
    remedy = f"see the log of {account.output('ScanFunction')}"
    if found is None:
        is_new = now - account.created_at < ROUNDS_WITHIN
        says = "no round was made yet: the first comes within the hour after a deployment"
        if is_new:
            return Check("scan", Status.WARN, says, "ask again in an hour")
        return Check("scan", Status.FAIL, says, remedy)
    says = f"the last round was {age(found.at, now)} ago: {found.says}"
    if found.is_blind:
        says = f"{says}; nothing could be seen of any queue"
    if found.is_blind or now - found.at >= ROUNDS_WITHIN:
        return Check("scan", Status.FAIL, says, remedy)
    if found.failed:
        return Check("scan", Status.WARN, says, remedy)
    if found.skipped:
        return Check("scan", Status.WARN, says, "raise limits.scanMetricsPerDay, and deploy")
    return Check("scan", Status.OK, says)
