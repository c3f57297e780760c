"""The case store's item of a redrive, kept as DynamoDB keeps one and as quick as a dict.

moto reads each expression anew, which takes longer than a whole tick; of a redrive's item there are
three. What is read of other items is read from moto's tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from mendq.redrive import store
from tests.heal.conftest import ACCOUNT, REGION

COURSE = "redrive"
Item = dict[str, Any]
_SET = re.compile(r"(\w+) = (if_not_exists\(\w+, )?(:\w+)")


class ConditionFailed(Exception):
    """As DynamoDB answers."""


def _is_ours(item: Item, values: Mapping[str, Any]) -> bool:
    return bool(item.get("claim_owner") == values[":me"])


def _is_free(item: Item, values: Mapping[str, Any]) -> bool:
    until = item.get("claim_until", {"N": "0"})
    return int(until["N"]) <= int(values[":now"]["N"]) or _is_ours(item, values)


def _is_next(item: Item, values: Mapping[str, Any]) -> bool:
    n, is_same = item.get("progress_n"), item.get("document") == values.get(":document")
    is_next = n in (None, values[":before"]) or (n == values[":n"] and is_same)
    return _is_ours(item, values) and is_next


# The store's own, each in Python; another is a KeyError.
_CONDITIONS: Mapping[str, Callable[[Item, Mapping[str, Any]], bool]] = {
    store._IS_FREE: _is_free,
    store._IS_NEXT: _is_next,
    "claim_owner = :me": _is_ours,
}


@dataclass
class RedriveTable:
    """Answers what it can by operation; None where moto is to answer."""

    items: dict[str, Item] = field(default_factory=dict)

    def answer(self, operation: str, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Raises ConditionFailed."""
        if operation == "UpdateItem" and asked["Key"]["sk"]["S"] == COURSE:
            return {"Attributes": self._update(asked)}
        if operation == "GetItem" and asked["Key"]["sk"]["S"] == COURSE:
            return {"Item": self.items.get(asked["Key"]["pk"]["S"], {})}
        if operation == "GetItem":
            return {"Item": _item(asked) or {}}
        if operation == "TransactGetItems":
            found = (_item(each["Get"]) for each in asked["TransactItems"])
            return {"Responses": [{"Item": each} if each else {} for each in found]}
        if operation == "Query" and "IndexName" not in asked:
            return {"Items": _begun_with(asked)}
        return None

    def _update(self, asked: Mapping[str, Any]) -> Item:
        item = self.items.setdefault(asked["Key"]["pk"]["S"], {})
        values = asked["ExpressionAttributeValues"]
        if not _CONDITIONS[asked["ConditionExpression"]](item, values):
            raise ConditionFailed
        kind, _, rest = asked["UpdateExpression"].partition(" ")
        if kind == "REMOVE":
            for name in rest.split(", "):
                item.pop(name, None)
        else:
            for name, keeps, value in _SET.findall(rest):
                item[name] = item.get(name, values[value]) if keeps else values[value]
        return dict(item)


def _item(asked: Mapping[str, Any]) -> Item | None:
    found = dynamodb_backends[ACCOUNT][REGION].get_item(asked["TableName"], asked["Key"])
    return found.to_json()["Attributes"] if found else None


def _begun_with(asked: Mapping[str, Any]) -> list[Item]:
    assert asked["KeyConditionExpression"] == "pk = :queue AND begins_with(sk, :case)"
    values = asked["ExpressionAttributeValues"]
    table = dynamodb_backends[ACCOUNT][REGION].get_table(asked["TableName"])
    items: Any = table.items.get(DynamoType(values[":queue"]), {})
    prefix = values[":case"]["S"]
    return [
        each.to_json()["Attributes"] for sk, each in items.items() if sk.value.startswith(prefix)
    ]
