"""The case store's side of a scan: how far a round has come, what measuring has cost, who was told.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mendq.cases import items
from mendq.cases.finding import round_of
from mendq.cases.transactions import case_store_errors
from mendq.heal.repeats import REMEMBERED, DailyPace
from mendq.model.evidence import to_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# As long as the Lambda may run: a scan that dies holds up the next two at most.
CLAIM = timedelta(minutes=15)


@dataclass(frozen=True)
class Stretch:
    """What is left of an hour's round: the queues behind `after`.

    `is_first`: nothing of this round's findings has been put down yet.
    """

    hour: datetime
    after: str = ""
    is_first: bool = True


@dataclass(frozen=True)
class ScanStore:
    """All methods raise CaseStoreUnavailable. `owner` is this invocation's own token."""

    client: DynamoDBClient
    table: str
    owner: str

    def begin(self, now: datetime) -> Stretch | None:
        """Claim the rest of the hour's round; None where it is done or another scan is at it."""
        key, hour = items.key(items.ACCOUNT, "scan"), round_of(now)
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        known = answer.get("Item", {})
        same = known.get("round", {}).get("S") == to_text(hour)
        if same and "done" in known:
            return None
        free = "attribute_not_exists(#until) OR #until < :now OR #owner = :me"
        used = ("round", "owner", "until") if same else ("round", "owner", "until", "after")
        claimed = self._changed(
            Key=key,
            UpdateExpression="SET #round = :round, #owner = :me, #until = :until"
            + ("" if same else " REMOVE done, #after"),
            ConditionExpression=f"({free}) AND {_unmoved(known)}",
            ExpressionAttributeNames=_named(*used),
            ExpressionAttributeValues={
                ":round": {"S": to_text(hour)},
                ":me": {"S": self.owner},
                ":now": items.epoch(now),
                ":until": items.epoch(now + CLAIM),
                **({":seen": known["round"]} if "round" in known else {}),
            },
        )
        after = known.get("after", {}).get("S", "") if same else ""
        return Stretch(hour, after, not after) if claimed else None

    def end(self, stretch: Stretch, after: str, *, done: bool) -> None:
        """Note how far it came and let go; nothing happens where another scan has taken over."""
        self._changed(
            Key=items.key(items.ACCOUNT, "scan"),
            UpdateExpression=f"SET #after = :after{', done = :done' * done} REMOVE #owner, #until",
            ConditionExpression="#owner = :me AND #round = :round",
            ExpressionAttributeNames=_named("after", "owner", "until", "round"),
            ExpressionAttributeValues={
                ":after": {"S": after},
                ":me": {"S": self.owner},
                ":round": {"S": to_text(stretch.hour)},
                **({":done": {"BOOL": True}} if done else {}),
            },
        )

    def spend(self, metrics: int, most: int, now: datetime) -> bool:
        """Take so many of the day's metrics; False where they are more than are left."""
        if metrics > most:
            return False
        counting = self._counting(metrics, now)
        counting["ExpressionAttributeValues"][":left"] = {"N": str(most - metrics)}
        condition = "attribute_not_exists(asked) OR asked <= :left"
        return self._changed(**counting, ConditionExpression=condition)

    def note_spent(self, metrics: int, now: datetime) -> None:
        """Count metrics that are asked for whether they fit or not."""
        if metrics:
            self._changed(**self._counting(metrics, now))

    def _counting(self, metrics: int, now: datetime) -> dict[str, Any]:
        return {
            "Key": items.key(items.ACCOUNT, f"metrics#{now:%Y-%m-%d}"),
            "UpdateExpression": "ADD asked :n SET expires_at = :expires",
            "ExpressionAttributeValues": {
                ":n": {"N": str(metrics)},
                ":expires": items.epoch(now + timedelta(days=2)),
            },
        }

    def admit(self, topics: Sequence[str], now: datetime) -> frozenset[str]:
        """Those faults in configurations that people may be told of now, noted as told of."""
        key = items.key(items.ACCOUNT, "said_of_configuration")
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        pace = DailyPace.from_texts(answer.get("Item", {}).get("queues", {}).get("SS", []))
        admitted = pace.admitted(topics, now)
        changes = {"DELETE": pace.outdated(now), "ADD": pace.missing(admitted, now)}
        for verb, texts in changes.items():
            if texts:
                self._changed(
                    Key=key,
                    UpdateExpression=f"{verb} queues :texts SET expires_at = :expires",
                    ExpressionAttributeValues={
                        ":texts": {"SS": texts},
                        ":expires": items.epoch(now + REMEMBERED),
                    },
                )
        return frozenset(admitted)

    def _changed(self, **update: Any) -> bool:
        with case_store_errors():
            try:
                self.client.update_item(TableName=self.table, **update)
            except self.client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _unmoved(known: items.Item) -> str:
    """Where another scan has begun meanwhile, it has claimed or moved on."""
    return "#round = :seen" if "round" in known else "attribute_not_exists(#round)"


def _named(*attributes: str) -> dict[str, str]:
    return {f"#{each}": each for each in attributes}
