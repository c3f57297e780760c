"""heal, rehearsed: its own way with a queue, of which nothing is written, sent or called.

Whatever would change something is left out here by name; what was forgotten fails, because the
clients of a rehearsal only look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from mendq.aws.clients import Clients
from mendq.cases.archive import CaseBucket
from mendq.cases.open_cases import OpenCases
from mendq.cases.table import CaseStore
from mendq.cases.transactions import Claim, Entry
from mendq.cases.view import CaseStoreView
from mendq.heal.context import Run
from mendq.model.case import Case
from mendq.model.evidence import Evidence
from mendq.model.settings import HealSettings
from mendq.model.steps import Owner
from mendq.notifications.notification import NotificationRecord
from mendq.scan.store import ScanStore

if TYPE_CHECKING:
    import boto3
    from botocore.model import OperationModel

OWNER = "mendq scan --dry-run"
_READS = ("BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "TransactGet")


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
    if not model.name.startswith(_READS):
        raise WouldChange(f"{model.service_model.service_name} {model.name}")


class _AnnouncedAlready(NotificationRecord):
    """No page is written, for which CloudTrail would be asked."""

    def has_said(self, news: str, now: datetime) -> bool:  # noqa: ARG002 - as it is asked
        return True


class _CaseStore(CaseStore):
    """Every claim is had."""

    def look(self, queue_arn: str, symptom: str, attributes: Sequence[str]) -> CaseStoreView:
        view = super().look(queue_arn, symptom, attributes)
        announced = _AnnouncedAlready(datetime.fromtimestamp(0, UTC), urgent=False, announced={})
        return replace(view, page=announced)

    def claim(self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int) -> None:
        pass

    def release(self, intent: Case, owner: str, seen: CaseStoreView) -> None:
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
        retained = set(answer.get("Item", {}).get(name, {}).get("SS", []))
        return {name: {"SS": sorted(retained | set(texts) if verb == "ADD" else retained)}}


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


class RehearsedScanStore(ScanStore):
    """Says who would be admitted."""

    def change(self, *_: Any, **__: Any) -> bool:
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
    def case_store(self) -> CaseStore:
        return _CaseStore(self.clients.dynamodb, self.settings.case_table)

    @property
    def scan_store(self) -> ScanStore:
        return RehearsedScanStore(self.clients.dynamodb, self.settings.case_table, self.owner)

    @property
    def open_cases(self) -> OpenCases:
        return _OpenCases(self.clients.dynamodb, self.settings.case_table)

    @property
    def case_bucket(self) -> CaseBucket:
        return _CaseBucket(self.clients.s3, self.settings.case_bucket)
