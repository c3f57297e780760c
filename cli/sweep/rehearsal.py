"""heal, rehearsed: its own way with a queue, of which nothing is written, sent or called.

Whatever would change something is left out here by name; what was forgotten fails, because the
clients of a rehearsal only look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from functions.aws.case_bucket import CaseBucket
from functions.aws.clients import Clients
from functions.aws.ledger import Ledger
from functions.aws.ledger_claims import Claim
from functions.aws.ledger_writes import Entry
from functions.aws.open_cases import OpenCases
from functions.aws.run import Run
from functions.aws.sweep_ledger import SweepLedger
from functions.healing.case import Case
from functions.healing.evidence import Evidence
from functions.healing.ledger_view import LedgerView
from functions.healing.page_record import PageRecord
from functions.healing.steps import Owner
from functions.settings import HealSettings

if TYPE_CHECKING:
    import boto3
    from botocore.model import OperationModel

OWNER = "mendq sweep --dry-run"
_LOOKS = ("BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "TransactGet")


class WouldChange(AssertionError):
    """A rehearsal was about to change something: our own bug, and nothing was changed."""


@dataclass(frozen=True)
class LookingSession:
    """A session whose clients send nothing but requests that look."""

    session: boto3.Session

    def client(self, service_name: str, **named: Any) -> Any:
        client: Any = self.session.client(service_name, **named)
        client.meta.events.register_first("before-call", _only_look)
        return client

    @property
    def region_name(self) -> str:
        return self.session.region_name


def looking(session: boto3.Session) -> Clients:
    """Clients that raise WouldChange for every request that does not only look."""
    return Clients(cast("boto3.Session", LookingSession(session)))


def _only_look(model: OperationModel, **_: Any) -> None:
    if not model.name.startswith(_LOOKS):
        raise WouldChange(f"{model.service_model.service_name} {model.name}")


class _ToldAlready(PageRecord):
    """No page is written, for which CloudTrail would be asked."""

    def has_told(self, news: str, now: datetime) -> bool:  # noqa: ARG002 - as it is asked
        return True


class _Ledger(Ledger):
    """Every claim is had."""

    def look(self, queue_arn: str, symptom: str, attributes: Sequence[str]) -> LedgerView:
        view = super().look(queue_arn, symptom, attributes)
        told = _ToldAlready(datetime.fromtimestamp(0, UTC), urgent=False, told={})
        return replace(view, page=told)

    def claim(self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int) -> None:
        pass

    def release(self, intent: Case, owner: str, seen: LedgerView) -> None:
        pass

    def record(self, entry: Entry) -> None:
        pass

    def _change_set(
        self,
        key: Mapping[str, Any],
        verb: str,
        name: str,
        texts: Sequence[str],
        until: datetime,  # noqa: ARG002 - as it is asked
    ) -> Mapping[str, Any]:
        """The item as it would be, were nothing dropped from it."""
        answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        kept = set(answer.get("Item", {}).get(name, {}).get("SS", []))
        return {name: {"SS": sorted(kept | set(texts) if verb == "ADD" else kept)}}


class _OpenCases(OpenCases):
    def note_failures(self, *_: Case | Evidence | datetime | None) -> bool:
        return True

    def filed(self, *_: Any) -> None:
        pass

    def all_filed(self, *_: Any) -> None:
        pass


class _CaseBucket(CaseBucket):
    def put(self, case: Case) -> None:
        pass


class RehearsedSweepLedger(SweepLedger):
    """Says who would be admitted."""

    def _changed(self, **_: Any) -> bool:
        return True


class Rehearsal(Run):
    """An invocation of heal with all the time there is."""

    @classmethod
    def of(cls, clients: Clients, settings: HealSettings, now: datetime) -> Rehearsal:
        return cls(
            clients=clients,
            settings=settings,
            owner=OWNER,
            now=now,
            remaining_seconds=lambda: float("inf"),
            write=lambda *_: None,
            whose=Owner.HEAL,
        )

    @property
    def ledger(self) -> Ledger:
        return _Ledger(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def sweep_ledger(self) -> SweepLedger:
        return RehearsedSweepLedger(self.clients.dynamodb, self.settings.ledger_table, self.owner)

    @property
    def open_cases(self) -> OpenCases:
        return _OpenCases(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def case_bucket(self) -> CaseBucket:
        return _CaseBucket(self.clients.s3, self.settings.case_bucket)
