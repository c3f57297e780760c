"""The case store's item of a redrive's course, kept as DynamoDB keeps one and as quick as a dict.

moto reads each expression anew, which takes longer than a whole tick; of a course's item there are
a handful. What is read of other items is read from moto's tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from tests.heal.conftest import ACCOUNT, REGION

COURSE = "redrive"
Item = dict[str, Any]
Condition = Callable[[Item, Mapping[str, Any]], bool]
_TOKENS = re.compile(r"attribute_not_exists\(\w+\)|[()]|<=|=|:?\w+")
_SET = re.compile(r"(\w+) = (:\w+)")


class ConditionFailed(Exception):
    """As DynamoDB answers."""


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
        if operation == "TransactGetItems":
            found = (_item(each["Get"]) for each in asked["TransactItems"])
            return {"Responses": [{"Item": each} if each else {} for each in found]}
        if operation == "Query" and "IndexName" not in asked:
            return {"Items": _begun_with(asked)}
        return None

    def _update(self, asked: Mapping[str, Any]) -> Item:
        item = self.items.setdefault(asked["Key"]["pk"]["S"], {})
        values = asked["ExpressionAttributeValues"]
        if not condition_of(asked["ConditionExpression"])(item, values):
            raise ConditionFailed
        kind, _, rest = asked["UpdateExpression"].partition(" ")
        if kind == "REMOVE":
            for name in rest.split(", "):
                item.pop(name, None)
        else:
            assert kind == "SET", asked["UpdateExpression"]
            assert _SET.sub("", rest).replace(", ", "") == "", rest
            item.update({name: values[value] for name, value in _SET.findall(rest)})
        return dict(item)


@cache
def condition_of(text: str) -> Condition:
    """Names, `=`, `<=`, attribute_not_exists, AND, OR and parentheses; ValueError beyond those."""
    if _TOKENS.sub("", text).strip():
        raise ValueError(text)
    tokens = _TOKENS.findall(text)
    condition = _either(tokens)
    if tokens:
        raise ValueError(text)
    return condition


def _either(tokens: list[str]) -> Condition:
    parts = [_both(tokens)]
    while tokens and tokens[0] == "OR":
        del tokens[0]
        parts.append(_both(tokens))
    return lambda item, values: any(each(item, values) for each in parts)


def _both(tokens: list[str]) -> Condition:
    parts = [_one(tokens)]
    while tokens and tokens[0] == "AND":
        del tokens[0]
        parts.append(_one(tokens))
    return lambda item, values: all(each(item, values) for each in parts)


def _one(tokens: list[str]) -> Condition:
    first = tokens.pop(0)
    if first == "(":
        inner = _either(tokens)
        if tokens.pop(0) != ")":
            raise ValueError(first)
        return inner
    if first.startswith("attribute_not_exists"):
        name = first.partition("(")[2][:-1]
        return lambda item, _: name not in item
    comparison, value = tokens.pop(0), tokens.pop(0)
    if comparison == "=":
        return lambda item, values: first in item and item[first] == values[value]
    return lambda item, values: (
        first in item and Decimal(item[first]["N"]) <= Decimal(values[value]["N"])
    )


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
