"""It answers and keeps what moto does, and its cost does not grow with the table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.heal.conftest import Account, moto_account
from tests.prove.quick_case_store import quick_case_store

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef


def _put(account: Account, pk: str, sk: str, n: str = "1") -> None:
    item = {"pk": {"S": pk}, "sk": {"S": sk}, "n": {"N": n}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)


def _updated(pk: str, sk: str, condition: str) -> TransactWriteItemTypeDef:
    return {
        "Update": {
            "TableName": "case_store",
            "Key": {"pk": {"S": pk}, "sk": {"S": sk}},
            "UpdateExpression": "SET n = :new",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {":new": {"N": "2"}},
        }
    }


def _lived(case_store: Callable[[], AbstractContextManager[None]]) -> list[Any]:
    """What is there after a transaction that is made, one that is cancelled, and a few queries."""
    there, absent = "attribute_exists(pk)", "attribute_not_exists(pk)"
    seen: list[Any] = []
    with moto_account() as account, case_store():
        client = account.clients.dynamodb
        for sk in "abc":
            _put(account, "one", sk)
        _put(account, "other", "a")
        client.transact_write_items(
            TransactItems=[_updated("one", "b", there), _updated("new", "a", absent)]
        )
        with pytest.raises(client.exceptions.TransactionCanceledException):
            client.transact_write_items(
                TransactItems=[
                    _updated("one", "a", there),
                    _updated("third", "a", absent),
                    _updated("other", "a", absent),
                ]
            )
        _put(account, "one", "d", "7")
        for pk in ("one", "none"):
            answer = client.query(
                TableName="case_store",
                KeyConditionExpression="pk = :pk AND sk > :sk",
                ExpressionAttributeValues={":pk": {"S": pk}, ":sk": {"S": "a"}},
                ScanIndexForward=False,
                Limit=2,
            )
            seen += [answer["Items"], answer["Count"], answer.get("LastEvaluatedKey")]
        return [*seen, account.case_store_items()]


def test_it_answers_and_keeps_what_moto_does() -> None:
    assert _lived(quick_case_store) == _lived(nullcontext)
