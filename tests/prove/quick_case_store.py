"""moto's DynamoDB with a cost that does not grow with the table.

moto copies the whole table before every transaction, in case it is cancelled, and looks through
all of it at every query. Here only the partitions that a transaction names are copied, and only
the one that a query names is looked through: what is answered and kept is the same.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

_transact: Any = DynamoDBBackend.transact_write_items
_query: Any = Table.query
Partitions = dict[Any, Any]


@contextmanager
def quick_case_store() -> Iterator[None]:
    """For as long as it is entered, of every table."""
    with (
        patch.object(DynamoDBBackend, "transact_write_items", _transact_write_items),
        patch.object(Table, "query", _query_one_partition),
    ):
        yield


def _transact_write_items(backend: Any, transact_items: list[dict[str, Any]]) -> None:
    def copy_named_partitions(table: Any, _memo: dict[int, Any]) -> Any:
        retained = copy.copy(table)
        retained.items = _apart(table.items, _list_partitions(table, transact_items))
        return retained

    with patch.object(Table, "__deepcopy__", copy_named_partitions, create=True):
        _transact(backend, transact_items)


def _list_partitions(table: Any, transact_items: list[dict[str, Any]]) -> set[DynamoType]:
    """The partitions of this table that the transaction is about."""
    operations = [attribute for item in transact_items for attribute in item.values()]
    return {
        DynamoType(operation.get("Key", operation.get("Item"))[table.hash_key_attr])
        for operation in operations
        if operation["TableName"] == table.name
    }


def _apart(items: Partitions, named: set[DynamoType]) -> Partitions:
    """Shared with the table, but for the partitions that are about to change."""
    retained: Partitions = defaultdict(dict, items)
    for key in named & items.keys():
        retained[key] = copy.deepcopy(items[key])
    return retained


def _query_one_partition(table: Any, hash_key: DynamoType | None, *args: Any, **over: Any) -> Any:
    _, _, _, _, _, _, index_name, *_ = args
    if index_name or hash_key is None:
        return _query(table, hash_key, *args, **over)
    one = copy.copy(table)
    one.items = {hash_key: table.items[hash_key]} if hash_key in table.items else {}
    return _query(one, hash_key, *args, **over)
