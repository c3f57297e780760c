"""The case store: one DynamoDB table of cases, claims, snapshots, evidence and budgets.

Items of a queue lie under its ARN, those of the account under `account`. Every write is a
transaction whose conditions name our own token, so that an answer lost on the way does not lock us
out of our own claim:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from mendq.aws.errors import CaseMoved, code_of
from mendq.cases import claims, items, view
from mendq.cases import transactions as writes
from mendq.cases.claims import Claim
from mendq.cases.transactions import (
    CANCELLED,
    Entry,
    case_store_errors,
    failed_condition,
    unconflicted,
)
from mendq.cases.view import CaseStoreView
from mendq.model.case import Case
from mendq.model.evidence import Evidence, Sighting, to_text
from mendq.model.plan import Refusal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What speaks for a case, or of how far a symptom has spread, is fresh for an hour.
RETAINED = timedelta(hours=2)


@dataclass(frozen=True)
class CaseStore:
    """All methods raise CaseStoreUnavailable: without the case store nothing is changed."""

    client: DynamoDBClient
    table: str

    def look(self, queue_arn: str, symptom: str, attributes: Sequence[str]) -> CaseStoreView:
        """One consistent look at everything that decides; CaseStoreUnreadable for bad items."""
        keys = items.look_keys(queue_arn, symptom, attributes)
        with case_store_errors():
            answer = unconflicted(
                lambda: self.client.transact_get_items(
                    TransactItems=[{"Get": {"TableName": self.table, "Key": key}} for key in keys]
                )
            )
        with items.reading(f"an item about {queue_arn}"):
            return items.view_of([each.get("Item", {}) for each in answer["Responses"]], attributes)

    def remember(
        self,
        queue_arn: str,
        symptom: str,
        *,
        add: Sequence[Sighting],
        drop: Sequence[Sighting],
        now: datetime,
    ) -> Evidence:
        """Keep what speaks for a case that has not opened yet; all that is kept now, others' too.

        A set, so repeats add nothing; dropped first, so that it never outgrows its item.
        """
        key = items.evidence_key(queue_arn, symptom)
        evidence, until = Evidence(tuple(add)), now + RETAINED
        with case_store_errors():
            if drop:
                self._change_set(
                    key, "DELETE", "sightings", [each.to_text() for each in drop], until
                )
            if add:
                texts = [each.to_text() for each in add]
                retained = self._change_set(key, "ADD", "sightings", texts, until)
                with items.reading(f"the evidence about {queue_arn}"):
                    evidence = items.evidence_of(retained)
        return evidence

    def spread_to(self, queue_arns: Iterable[str], symptom: str, now: datetime) -> frozenset[str]:
        """Note that these queues show a symptom; all queues that showed it within the hour."""
        key, until = items.spread_key(symptom), now + RETAINED
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
            with items.reading(f"the spread of {symptom}"):
                spread = items.spread_of(answer.get("Item", {}))
            if outdated := spread.outdated(now):
                self._change_set(key, "DELETE", "queues", outdated, until)
            if missing := spread.missing(queue_arns, now):
                spread = items.spread_of(self._change_set(key, "ADD", "queues", missing, until))
        return spread.queues(now)

    def note_change(
        self, queue_arn: str, symptom: str, changed_at: datetime, now: datetime
    ) -> list[datetime]:
        """Note a change that excuses failed calls; all those of the last day."""
        key, text = items.changes_key(queue_arn, symptom), to_text(changed_at)
        until = now + view.CHANGES_REMEMBERED
        with case_store_errors():
            retained = self._change_set(key, "ADD", "changes", [text], until)
            with items.reading(f"the changes of {queue_arn}"):
                changes = [datetime.fromisoformat(each) for each in retained["changes"]["SS"]]
                gone = view.outdated(changes, now)
            if gone:
                texts = [to_text(each) for each in gone]
                self._change_set(key, "DELETE", "changes", texts, until)
        return [each for each in changes if each not in gone]

    def _change_set(
        self,
        key: Mapping[str, Any],
        verb: str,
        name: str,
        texts: Sequence[str],
        until: datetime,
    ) -> Mapping[str, Any]:
        answer = self.client.update_item(
            TableName=self.table,
            Key=key,
            UpdateExpression=f"{verb} {name} :texts SET expires_at = :expires",
            ExpressionAttributeValues={
                ":texts": {"SS": list(texts)},
                ":expires": items.epoch(until),
            },
            ReturnValues="ALL_NEW",
        )
        return answer["Attributes"]

    def claim(
        self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int
    ) -> Refusal | None:
        """Take the claim, the snapshot and one write of the account's budget, all or none."""
        conditions = claims.claim_conditions(claim, snapshot, writes_per_minute)
        failed = self._transact([each.part for each in conditions])
        return conditions[failed].refusal if failed is not None else None

    def release(self, intent: Case, owner: str, seen: CaseStoreView) -> None:
        """Let go of a claim that nothing was written under."""
        self._transact(claims.release_parts(intent, owner, seen))

    def record(self, entry: Entry) -> None:
        """Move the case, and with `changes` the attributes' records; ends the evidence.

        Silently the same when this run has written it already; raises CaseMoved where another has.
        """
        if self._transact(writes.record_parts(entry)) is not None:
            raise CaseMoved(f"another run has moved case {entry.case.case_id}")

    def _transact(self, parts: Sequence[Mapping[str, Any]]) -> int | None:
        """None when all went through, else the index of the first condition that failed."""
        named = [
            {verb: {"TableName": self.table, **body} for verb, body in part.items()}
            for part in parts
        ]
        with case_store_errors():
            try:
                unconflicted(
                    lambda: self.client.transact_write_items(
                        TransactItems=named  # type: ignore[arg-type]
                    )
                )
            except ClientError as error:
                if code_of(error) != CANCELLED:
                    raise
                return failed_condition(error)
        return None
