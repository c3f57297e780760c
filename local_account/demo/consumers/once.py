"""Does a thing once for each key, by a conditional write to DynamoDB.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

# Longer than SQS keeps a message: 14 days in its queue, 14 as a DLQ message.
REMEMBERED_SECONDS = 30 * 86_400


class Busy(Exception):
    """Somebody else is at it, or was when it died: let the message come again."""


@dataclass(frozen=True)
class Once:
    """A table with the partition key `key` and the time to live `expires_at`.

    `claim_seconds` is longer than the work can take: after a crash nobody begins anew before that.
    """

    dynamodb: DynamoDBClient
    table: str
    claim_seconds: int = 900
    clock: Callable[[], float] = time.time

    def run(self, key: str, work: Callable[[], object]) -> bool:
        """Whether the work was done now; False where it had been. Raises Busy, or as `work`."""
        owner = uuid4().hex
        if not self._claim(key, owner):
            return False
        try:
            work()
        except Exception:
            self._end(key, owner, "REMOVE held_until", {})
            raise
        expires: AttributeValueTypeDef = {"N": str(int(self.clock()) + REMEMBERED_SECONDS)}
        done = "SET is_done = :owner, expires_at = :expires"
        self._end(key, owner, done, {":expires": expires})
        return True

    def _claim(self, key: str, owner: str) -> bool:
        now = int(self.clock())
        try:
            self.dynamodb.update_item(
                TableName=self.table,
                Key={"key": {"S": key}},
                UpdateExpression="SET held_by = :owner, held_until = :until",
                ConditionExpression="attribute_not_exists(is_done) AND "
                "(attribute_not_exists(held_until) OR held_until < :now)",
                ExpressionAttributeValues={
                    ":owner": {"S": owner},
                    ":until": {"N": str(now + self.claim_seconds)},
                    ":now": {"N": str(now)},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException as refused:
            if "is_done" in dict(refused.response).get("Item", {}):  # type: ignore[operator]
                return False
            raise Busy(key) from refused
        return True

    def _end(
        self, key: str, owner: str, update: str, more: dict[str, AttributeValueTypeDef]
    ) -> None:
        """Where the claim ran out meanwhile somebody else may have it: theirs is left alone."""
        try:
            self.dynamodb.update_item(
                TableName=self.table,
                Key={"key": {"S": key}},
                UpdateExpression=update,
                ConditionExpression="held_by = :owner",
                ExpressionAttributeValues={":owner": {"S": owner}, **more},
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException as lost:
            raise Busy(key) from lost
