"""The ledger: one DynamoDB table of cases, claims, snapshots, evidence and budgets.

Items of a queue lie under its ARN, those of the account under `account`. Every write is a
transaction whose conditions name our own token, so that an answer lost on the way does not lock us
out of our own claim:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws import ledger_items as items
from functions.aws.errors import LedgerUnavailable, code_of
from functions.healing.case import Case
from functions.healing.evidence import Sighting
from functions.healing.ledger_view import AttributeRecord, LedgerView, Spread, spread_slot
from functions.healing.plan import Refusal
from functions.healing.steps import AttributeStep

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Longer than the heal Lambda may run, shorter than the intake queue waits before it gives up.
CLAIM_SECONDS = 90
# An item holds 400 KB; so many queues are a mass symptom in any account.
MOST_QUEUES_NOTED = 2_000


@dataclass(frozen=True)
class Claim:
    """An exclusive hold on one attribute of one queue, for one case."""

    queue_arn: str
    step: AttributeStep
    intent: Case
    owner: str
    seen: LedgerView


@dataclass(frozen=True)
class Ledger:
    """All methods raise LedgerUnavailable: without the ledger nothing is changed."""

    client: DynamoDBClient
    table: str

    def look(self, queue_arn: str, symptom: str, attribute: str) -> LedgerView:
        """One consistent look at everything that decides."""
        keys = (
            items.freeze_key(),
            items.case_key(queue_arn, symptom),
            items.evidence_key(queue_arn, symptom),
            items.attribute_key(queue_arn, attribute),
            items.spread_key(symptom),
        )
        with _ledger_errors():
            answer = self.client.transact_get_items(
                TransactItems=[{"Get": {"TableName": self.table, "Key": key}} for key in keys]
            )
        return items.view_of(*(each.get("Item", {}) for each in answer["Responses"]))

    def remember(
        self,
        queue_arn: str,
        symptom: str,
        *,
        add: Sequence[Sighting],
        drop: Sequence[Sighting],
        now: datetime,
    ) -> None:
        """Keep what speaks for a case that has not opened yet; a set, so repeats add nothing."""
        key = items.evidence_key(queue_arn, symptom)
        with _ledger_errors():
            if add:
                self.client.update_item(
                    TableName=self.table,
                    Key=key,
                    UpdateExpression="ADD sightings :new SET expires_at = :expires",
                    ExpressionAttributeValues={
                        ":new": {"SS": [each.to_text() for each in add]},
                        ":expires": items.epoch(now + timedelta(hours=1)),
                    },
                )
            if drop:
                self.client.update_item(
                    TableName=self.table,
                    Key=key,
                    UpdateExpression="DELETE sightings :old",
                    ExpressionAttributeValues={":old": {"SS": [each.to_text() for each in drop]}},
                )

    def spread_to(self, queue_arn: str, symptom: str, seen: Spread, now: datetime) -> Spread:
        """Note that this queue shows the symptom; a set, written once a queue and ten minutes."""
        if queue_arn in seen.queues(now) or len(seen.queues(now)) >= MOST_QUEUES_NOTED:
            return seen
        key = items.spread_key(symptom)
        with _ledger_errors():
            answer = self.client.update_item(
                TableName=self.table,
                Key=key,
                UpdateExpression="ADD queues :new",
                ExpressionAttributeValues={
                    ":new": {"SS": [items.spread_text(spread_slot(now), queue_arn)]}
                },
                ReturnValues="ALL_NEW",
            )
            spread = items.spread_of(answer["Attributes"])
            outdated = [items.spread_text(*each) for each in spread.outdated(now)]
            if outdated:
                self.client.update_item(
                    TableName=self.table,
                    Key=key,
                    UpdateExpression="DELETE queues :old",
                    ExpressionAttributeValues={":old": {"SS": outdated}},
                )
        return spread

    def claim(
        self, claim: Claim, snapshot: Mapping[str, Any], *, writes_per_minute: int
    ) -> Refusal | None:
        """Take the claim, the snapshot and one write of the account's budget, all or none."""
        parts = items.claim_parts(claim, snapshot, writes_per_minute, CLAIM_SECONDS)
        refusals = (
            Refusal("claimed", "another run is at work on it", becomes=None, again=True),
            Refusal("claimed", "its snapshot is being written", becomes=None, again=True),
            Refusal(
                "account_budget",
                f"{writes_per_minute} writes were made in this minute",
                becomes=None,
                again=True,
            ),
            Refusal("claimed", "another run has just moved its case", becomes=None, again=True),
            Refusal("frozen", "changes were frozen just now", becomes=None, again=True),
        )
        failed = self._transact(parts)
        return refusals[failed] if failed is not None else None

    def release(self, claim: Claim) -> None:
        """Let go of a claim that nothing was written under."""
        self._transact([items.release_part(claim)])

    def record(
        self,
        case: Case,
        seen: LedgerView,
        attribute: str,
        *,
        change: AttributeRecord | None = None,
        owner: str,
    ) -> None:
        """Move the case, and with `change` the attribute's record; ends the evidence.

        Silently the same when this very transition is already there.
        """
        parts = items.record_parts(case, seen, attribute, change, owner)
        if self._transact(parts) is not None:
            raise LedgerUnavailable(f"another run has moved case {case.case_id}")

    def _transact(self, parts: Sequence[Mapping[str, Any]]) -> int | None:
        """None when all went through, else the index of the first condition that failed."""
        named = [
            {verb: {"TableName": self.table, **body} for verb, body in part.items()}
            for part in parts
        ]
        with _ledger_errors():
            try:
                self.client.transact_write_items(TransactItems=named)  # type: ignore[arg-type]
            except ClientError as error:
                if code_of(error) != "TransactionCanceledException":
                    raise
                return _failed_condition(error)
        return None


def _failed_condition(error: ClientError) -> int:
    reasons: list[Any] = error.response.get("CancellationReasons", [])
    for index, reason in enumerate(reasons):
        if reason.get("Code") == "ConditionalCheckFailed":
            return index
    raise LedgerUnavailable(f"the ledger was busy: {json.dumps(reasons, default=str)}") from error


@contextmanager
def _ledger_errors() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise LedgerUnavailable(str(error)) from error
