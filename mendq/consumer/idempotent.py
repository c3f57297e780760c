"""A consumer that may be killed, slow or handed a message twice, and does each order once.

`Once` is for anybody's consumer; `Careful` is an example to copy, of a queue of orders.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from . import VisibilityHeartbeat

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef
    from mypy_boto3_sqs import SQSClient

Order = Mapping[str, Any]
_LOG = logging.getLogger(__name__)
# Longer than SQS keeps a message: 14 days in its queue, 14 as a DLQ message.
REMEMBERED_SECONDS = 30 * 86_400


class Busy(Exception):
    """Somebody else is at it, or was when it died: let the message come again."""


@dataclass(frozen=True)
class Once:
    """Does a thing once for each key, by a conditional write to DynamoDB.

    A table with the partition key `key` and the time to live `expires_at`.

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


@dataclass(frozen=True)
class Careful:
    """`work` does one order; `seconds` is how long a message stays hidden when this one dies."""

    sqs: SQSClient
    queue_url: str
    once: Once
    work: Callable[[Order], object]
    seconds: int = 30

    def consume(self) -> None:
        """Receive once, and do what came; a message is deleted when its order is done."""
        failed_groups: set[str] = set()
        # The last of ten is held while the first is worked on.
        with VisibilityHeartbeat(self.sqs, self.queue_url, seconds=self.seconds) as visibility:
            messages = visibility.receive(
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["MessageGroupId"],
            )
            for message in messages:
                group = message.get("Attributes", {}).get("MessageGroupId", "")
                # What stands behind a FIFO message that failed must not overtake it.
                if self.queue_url.endswith(".fifo") and group in failed_groups:
                    visibility.release(message["MessageId"])
                elif message["MessageId"] in visibility.held:
                    self._handle(message, visibility, failed_groups, group)

    def _handle(
        self,
        message: Mapping[str, Any],
        visibility: VisibilityHeartbeat,
        failed_groups: set[str],
        group: str,
    ) -> None:
        try:
            order = json.loads(message["Body"])
            # Never the message id: who sends again, and who redrives, makes a new one.
            self.once.run(order["order_id"], lambda: self.work(order))
        except Busy:
            failed_groups.add(group)
        except Exception:  # noqa: BLE001 - one order's failure is not its neighbours'
            # It stays, comes again, and after maxReceiveCount is a DLQ message: nothing is lost.
            _LOG.exception("an order failed", extra={"message_id": message["MessageId"]})
            failed_groups.add(group)
        else:
            visibility.delete(message["MessageId"])
