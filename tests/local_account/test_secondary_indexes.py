"""Global secondary indexes of DynamoDB, as the ledger's due cases need them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import user
from tests.local_account.queues import error_of
from tests.local_account.roles import allow

pytestmark = pytest.mark.account
OPEN = {":open": {"S": "open"}}


@dataclass(frozen=True)
class Table:
    """A table with an index on `due` and `at` that holds `state` as well."""

    dynamodb: Any
    name: str

    def put(self, number: int, **more: dict[str, str]) -> None:
        item = {"pk": {"S": "case"}, "sk": {"S": f"{number}"}, "facts": {"S": "long"}, **more}
        self.dynamodb.put_item(TableName=self.name, Item=item)

    @property
    def asked(self) -> dict[str, Any]:
        return {
            "TableName": self.name,
            "IndexName": "due",
            "KeyConditionExpression": "due = :open",
            "ExpressionAttributeValues": OPEN,
        }

    def query(self, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.dynamodb.query(**{**self.asked, **more})
        return answer

    def pages(self, **more: Any) -> list[list[str]]:
        paginator = self.dynamodb.get_paginator("query")
        pages = paginator.paginate(**self.asked, **more, PaginationConfig={"PageSize": 2})
        return [[each["at"]["N"] for each in page["Items"]] for page in pages]


@pytest.fixture(scope="module")
def table(account: LocalAccount) -> Iterator[Table]:
    dynamodb, name = account.client("dynamodb"), f"test-{uuid.uuid4()}"
    types = {"pk": "S", "sk": "S", "due": "S", "at": "N"}
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": each, "AttributeType": kind} for each, kind in types.items()
        ],
        KeySchema=_keys("pk", "sk"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": "due",
                "KeySchema": _keys("due", "at"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["state"]},
            }
        ],
    )
    made = Table(dynamodb, name)
    for number in range(5):
        made.put(number, due={"S": "open"}, at={"N": f"{9 - number}"}, state={"S": "applied"})
    made.put(5, due={"S": "closed"}, at={"N": "1"})
    made.put(6, due={"S": "open"})  # sparse: an item that lacks one of the keys
    made.put(7, at={"N": "1"})
    yield made
    dynamodb.delete_table(TableName=name)


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def test_what_an_index_cannot_do_is_refused(table: Table) -> None:
    for wrong in ({"ConsistentRead": True}, {"IndexName": "nobody"}):
        assert error_of(partial(table.query, **wrong))[0] == "ValidationException"
    wrong_type = partial(table.put, 8, due={"N": "1"}, at={"N": "1"})
    assert error_of(wrong_type)[0] == "ValidationException"
    assert table.query(Select="COUNT")["Count"] == 5


def test_permission_on_the_table_is_none_on_its_index(account: LocalAccount, table: Table) -> None:
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table.name}"
    for resource, may in ((arn, False), (f"{arn}/index/other", False), (f"{arn}/index/due", True)):
        _, identity = user(account, allow("dynamodb:Query", resource))
        asking = Table(account.client("dynamodb", **identity), table.name)
        if may:
            assert asking.query()["Count"] == 5
        else:
            assert error_of(asking.query)[0] == "AccessDeniedException"


def test_only_what_has_both_keys_is_there_with_what_is_projected(table: Table) -> None:
    items = table.query()["Items"]
    assert [each["at"]["N"] for each in items] == ["5", "6", "7", "8", "9"]
    assert all(each.keys() == {"pk", "sk", "due", "at", "state"} for each in items)


def test_pages_in_either_order(table: Table) -> None:
    assert table.pages() == [["5", "6"], ["7", "8"], ["9"]]
    assert table.pages(ScanIndexForward=False) == [["9", "8"], ["7", "6"], ["5"]]


def test_a_count_gives_no_items(table: Table) -> None:
    due = table.query(
        KeyConditionExpression="due = :open AND #at <= :now",
        ExpressionAttributeNames={"#at": "at"},
        ExpressionAttributeValues={**OPEN, ":now": {"N": "7"}},
        Select="COUNT",
    )
    assert (due["Count"], "Items" in due) == (3, False)


def test_a_case_that_ends_leaves_the_index(account: LocalAccount, table: Table) -> None:
    table.put(9, due={"S": "ending"}, at={"N": "1"})
    ending = partial(table.query, ExpressionAttributeValues={":open": {"S": "ending"}})
    assert ending()["Count"] == 1
    table.dynamodb.update_item(
        TableName=table.name,
        Key={"pk": {"S": "case"}, "sk": {"S": "9"}},
        UpdateExpression="REMOVE due",
    )
    assert ending()["Count"] == 0
