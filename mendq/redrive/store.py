"""How far redrives have come, in the case store: one item per DLQ.

A run claims it before it looks, and writes down what it is about to do before it does it.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mendq.aws.errors import CaseMoved, CaseStoreUnreadable
from mendq.cases import items
from mendq.cases.transactions import case_store_errors
from mendq.redrive.progress import RedriveProgress

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Longer than a run may last, so that no two ever work on one queue's messages.
CLAIM_SECONDS = 90


@dataclass(frozen=True)
class Claimed:
    """A claim: nobody else works on it. `course` is None where there is none that can be read.

    `damage` says why not, where there is one; what is written in its place is to have its `n`.
    """

    course: RedriveProgress | None
    damage: str = ""
    n: int = 0


@dataclass(frozen=True)
class CourseStore:
    """All methods raise CaseStoreUnavailable; `course_of` raises CaseStoreUnreadable as well."""

    client: DynamoDBClient
    table: str

    def course_of(self, dlq_arn: str) -> RedriveProgress | None:
        """The newest redrive of a DLQ, over or not."""
        with case_store_errors():
            answer = self.client.get_item(
                TableName=self.table, Key=course_key(dlq_arn), ConsistentRead=True
            )
        return _course_in(answer.get("Item", {}), dlq_arn)

    def claim(self, dlq_arn: str, owner: str, now: datetime) -> Claimed | None:
        """Claim the DLQ; None where another run holds it."""
        values = {
            ":me": {"S": owner},
            ":now": items.epoch(now),
            ":until": items.epoch(now + timedelta(seconds=CLAIM_SECONDS)),
        }
        free = "attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me"
        change = "SET claim_owner = :me, claim_until = :until"
        with case_store_errors():
            try:
                answer = self.client.update_item(
                    TableName=self.table,
                    Key=course_key(dlq_arn),
                    UpdateExpression=change,
                    ConditionExpression=free,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                )
            except self.client.exceptions.ConditionalCheckFailedException:
                return None
        item = answer["Attributes"]
        try:
            return Claimed(_course_in(item, dlq_arn), n=_n_in(item))
        except CaseStoreUnreadable as error:
            return Claimed(None, str(error), _n_in(item))

    def save(self, course: RedriveProgress, owner: str) -> RedriveProgress:
        """The course as it stands there now, one `n` later; raises CaseMoved where it has moved.

        An answer lost on the way does no harm: sent again, it finds its own text.
        """
        saved = replace(course, n=course.n + 1)
        text = json.dumps(saved.document(), sort_keys=True)
        values = {
            ":me": {"S": owner},
            ":n": {"N": str(saved.n)},
            ":before": {"N": str(course.n)},
            ":document": {"S": text},
        }
        condition = (
            "claim_owner = :me AND (attribute_not_exists(course_n) OR course_n = :before "
            "OR (course_n = :n AND document = :document))"
        )
        with case_store_errors():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=course_key(course.dlq_arn),
                    UpdateExpression="SET course_n = :n, document = :document",
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
            except self.client.exceptions.ConditionalCheckFailedException as error:
                raise CaseMoved(f"another run redrives {course.dlq_arn}") from error
        return saved

    def release(self, dlq_arn: str, owner: str) -> None:
        """Let go of the claim; nothing happens where it is another's by now."""
        with case_store_errors():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=course_key(dlq_arn),
                    UpdateExpression="REMOVE claim_owner, claim_until",
                    ConditionExpression="claim_owner = :me",
                    ExpressionAttributeValues={":me": {"S": owner}},
                )
            except self.client.exceptions.ConditionalCheckFailedException:
                return


def course_key(dlq_arn: str) -> items.Key:
    return items.key(dlq_arn, "redrive")


def _course_in(item: Mapping[str, Any], dlq_arn: str) -> RedriveProgress | None:
    if "document" not in item:
        return None
    with items.reading(f"the redrive of {dlq_arn}"):
        course = RedriveProgress.from_document(json.loads(item["document"]["S"]))
        if course.dlq_arn != dlq_arn:
            raise ValueError(f"it is of {course.dlq_arn:.200}")
        return replace(course, n=_n_in(item))


def _n_in(item: Mapping[str, Any]) -> int:
    with items.reading("the redrive's number"):
        return int(item["course_n"]["N"]) if "course_n" in item else 0
