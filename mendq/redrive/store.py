"""How far redrives have come, in the case store: one item per DLQ.

A run claims it before it looks, and writes down what it is about to do before it does it.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mendq.aws.errors import CaseMoved, CaseStoreUnreadable
from mendq.cases import items
from mendq.cases.transactions import case_store_errors
from mendq.redrive.progress import RedriveProgress

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Longer than a run may last, so that no two ever work on one queue's messages.
CLAIM_SECONDS = 90
_IS_FREE = "attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me"
_IS_NEXT = (
    "claim_owner = :me AND (attribute_not_exists(progress_n) OR progress_n = :before "
    "OR (progress_n = :n AND document = :document))"
)


class Claimed(Struct, frozen=True):
    """A claim: nobody else works on it. `progress` is None where there is none that can be read.

    `damage` says why not, where there is one; what is written in its place is to have its `n`.
    """

    progress: RedriveProgress | None
    damage: str = ""
    n: int = 0


class RedriveStore(Struct, frozen=True):
    """All methods raise CaseStoreUnavailable; `newest` raises CaseStoreUnreadable as well."""

    client: DynamoDBClient
    table: str

    def newest(self, dlq_arn: str) -> RedriveProgress | None:
        """The newest redrive of a DLQ, over or not."""
        with case_store_errors():
            answer = self.client.get_item(
                TableName=self.table, Key=redrive_key(dlq_arn), ConsistentRead=True
            )
        return _progress_in(answer.get("Item", {}), dlq_arn)

    def claim(self, dlq_arn: str, owner: str, now: datetime) -> Claimed | None:
        """Claim the DLQ; None where another run holds it."""
        until = items.epoch(now + timedelta(seconds=CLAIM_SECONDS))
        values = {":me": {"S": owner}, ":now": items.epoch(now), ":until": until}
        change = "SET claim_owner = :me, claim_until = :until"
        item = self._update(dlq_arn, change, _IS_FREE, values)
        if item is None:
            return None
        try:
            return Claimed(_progress_in(item, dlq_arn), n=_n_in(item))
        except CaseStoreUnreadable as error:
            return Claimed(None, str(error), _n_in(item))

    def save(self, progress: RedriveProgress, owner: str) -> RedriveProgress:
        """The progress as it stands there now, one `n` later; raises CaseMoved where it has moved.

        An answer lost on the way does no harm: sent again, it finds its own text.
        """
        saved = replace(progress, n=progress.n + 1)
        values = {
            ":me": {"S": owner},
            ":n": {"N": str(saved.n)},
            ":before": {"N": str(progress.n)},
            ":document": {"S": json.dumps(saved.document(), sort_keys=True)},
        }
        change = "SET progress_n = :n, document = :document"
        if self._update(progress.dlq_arn, change, _IS_NEXT, values) is None:
            raise CaseMoved(f"another run redrives {progress.dlq_arn}")
        return saved

    def release(self, dlq_arn: str, owner: str) -> None:
        """Let go of the claim; nothing happens where it is another's by now."""
        change, values = "REMOVE claim_owner, claim_until", {":me": {"S": owner}}
        self._update(dlq_arn, change, "claim_owner = :me", values)

    def _update(
        self, dlq_arn: str, change: str, condition: str, values: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The item as it is then; None where the condition does not hold."""
        with case_store_errors():
            try:
                answer = self.client.update_item(
                    TableName=self.table,
                    Key=redrive_key(dlq_arn),
                    UpdateExpression=change,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                )
            except self.client.exceptions.ConditionalCheckFailedException:
                return None
        return answer["Attributes"]


def redrive_key(dlq_arn: str) -> items.Key:
    return items.key(dlq_arn, "redrive")


def _progress_in(item: Mapping[str, Any], dlq_arn: str) -> RedriveProgress | None:
    if "document" not in item:
        return None
    with items.reading(f"the redrive of {dlq_arn}"):
        progress = RedriveProgress.from_document(json.loads(item["document"]["S"]))
        if progress.dlq_arn != dlq_arn:
            raise ValueError(f"it is of {progress.dlq_arn:.200}")
        return progress


def _n_in(item: Mapping[str, Any]) -> int:
    with items.reading("the redrive's number"):
        return int(item["progress_n"]["N"]) if "progress_n" in item else 0
