"""The local account checks dynamodb:LeadingKeys, also in the conditions of the deployed roles."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.cli.permissions import make_look_policy, make_steer_policy
from tests.local_account.callers import user
from tests.local_account.queues import error_of

pytestmark = pytest.mark.account

OWN, THEIRS = "own", "theirs"
KEY = {name: {"pk": {"S": name}, "sk": {"S": "1"}} for name in (OWN, THEIRS)}
ONLY_OWN_KEYS = {
    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["own", "own#*"]},
    "Null": {"dynamodb:LeadingKeys": "false"},
}
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"


@pytest.fixture(name="table", scope="module")
def make_table(account: LocalAccount) -> Iterator[str]:
    """A table with an index whose partition key is the attribute `open`."""
    client = account.client("dynamodb")
    name = f"table-{uuid.uuid4().hex[:8]}"
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "sk", "open")
        ],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [{"AttributeName": "open", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    yield name
    client.delete_table(TableName=name)


def make_client(account: LocalAccount, conditions: Mapping[str, Any]) -> Any:
    """A client that may do everything with items of any table if the conditions hold."""
    statement = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}
    _, credentials = user(account, {**statement, "Condition": conditions})
    return account.client("dynamodb", **credentials)


def query(client: Any, table: str, attribute: str, value: str, **options: str) -> Any:
    return client.query(
        TableName=table,
        KeyConditionExpression="#p = :p",
        ExpressionAttributeNames={"#p": attribute},
        ExpressionAttributeValues={":p": {"S": value}},
        **options,
    )


CALLS: Mapping[str, Callable[[Any, str, str], Any]] = {
    "get": lambda client, table, key: client.get_item(TableName=table, Key=KEY[key]),
    "put": lambda client, table, key: client.put_item(TableName=table, Item=KEY[key]),
    "update": lambda client, table, key: client.update_item(
        TableName=table,
        Key=KEY[key],
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": {"S": "1"}},
    ),
    "delete": lambda client, table, key: client.delete_item(TableName=table, Key=KEY[key]),
    "query": lambda client, table, key: query(client, table, "pk", key),
    "query index": lambda client, table, key: query(client, table, "open", key, IndexName="open"),
    "batch get": lambda client, table, key: client.batch_get_item(
        RequestItems={table: {"Keys": [KEY[OWN], KEY[key]] if key != OWN else [KEY[OWN]]}}
    ),
    "batch write": lambda client, table, key: client.batch_write_item(
        RequestItems={table: [{"DeleteRequest": {"Key": KEY[key]}}]}
    ),
    "transact write": lambda client, table, key: client.transact_write_items(
        TransactItems=[
            {"ConditionCheck": make_check(table, OWN)},
            {"Delete": {"TableName": table, "Key": KEY[key]}},
        ]
        if key != OWN
        else [{"Delete": {"TableName": table, "Key": KEY[OWN]}}]
    ),
    "transact get": lambda client, table, key: client.transact_get_items(
        TransactItems=[{"Get": {"TableName": table, "Key": KEY[key]}}]
    ),
}


def make_check(table: str, key: str) -> dict[str, Any]:
    """A part of a transaction that checks an item and always holds."""
    condition = "attribute_not_exists(never)"
    return {"TableName": table, "Key": KEY[key], "ConditionExpression": condition}


@pytest.mark.parametrize("name", CALLS)
def test_leading_keys_condition_allows_calls_for_its_partition_and_denies_all_others(
    account: LocalAccount, table: str, name: str
) -> None:
    client = make_client(account, ONLY_OWN_KEYS)
    CALLS[name](client, table, OWN)
    code, _ = error_of(lambda: CALLS[name](client, table, THEIRS))
    assert code == "AccessDeniedException"


def test_leading_keys_condition_denies_a_scan_only_together_with_a_null_condition(
    account: LocalAccount, table: str
) -> None:
    client = make_client(account, ONLY_OWN_KEYS)
    code, _ = error_of(lambda: client.scan(TableName=table))
    assert code == "AccessDeniedException"
    lenient = {key: value for key, value in ONLY_OWN_KEYS.items() if key != "Null"}
    # As on AWS, ForAllValues alone allows a call that has no such key.
    make_client(account, lenient).scan(TableName=table)


def read_statements(account: LocalAccount, role: str) -> list[dict[str, Any]]:
    """The statements of a deployed role about DynamoDB."""
    iam = account.client("iam")
    name = f"mendq-{role}-{REGION}"
    return [
        statement
        for policy_name in iam.list_role_policies(RoleName=name)["PolicyNames"]
        for statement in iam.get_role_policy(RoleName=name, PolicyName=policy_name)[
            "PolicyDocument"
        ]["Statement"]
        if "dynamodb" in json.dumps(statement["Action"])
    ]


@pytest.mark.parametrize("role", ["probe", "scan"])
def test_deployed_probe_and_scan_roles_can_write_the_account_partition_and_no_other(
    account: LocalAccount, role: str
) -> None:
    _, credentials = user(account, *read_statements(account, role))
    client = account.client("dynamodb", **credentials)
    (table,) = (
        name
        for name in account.client("dynamodb").list_tables()["TableNames"]
        if name.startswith("Mendq-CaseStore")
    )

    def write(partition: str) -> Any:
        return client.update_item(
            TableName=table,
            Key={"pk": {"S": partition}, "sk": {"S": "test_partition_keys"}},
            UpdateExpression="SET x = :x",
            ExpressionAttributeValues={":x": {"S": "1"}},
        )

    write("account")
    for partition in (QUEUE_ARN, "case#1a2b", "accounts"):
        code, _ = error_of(partial(write, partition))
        assert code == "AccessDeniedException", partition
    account.client("dynamodb").delete_item(
        TableName=table, Key={"pk": {"S": "account"}, "sk": {"S": "test_partition_keys"}}
    )


@pytest.mark.parametrize("role", ["heal", "redrive", "follow-up", "rollback"])
def test_deployed_role_that_writes_cases_cannot_delete_the_freeze(
    account: LocalAccount, role: str
) -> None:
    _, credentials = user(account, *read_statements(account, role))
    client = account.client("dynamodb", **credentials)
    (table,) = (
        name
        for name in account.client("dynamodb").list_tables()["TableNames"]
        if name.startswith("Mendq-CaseStore")
    )
    freeze = {"pk": {"S": "account"}, "sk": {"S": "freeze"}}
    evidence = {"pk": {"S": QUEUE_ARN}, "sk": {"S": "evidence#test_partition_keys"}}
    client.delete_item(TableName=table, Key=evidence)
    code, _ = error_of(lambda: client.delete_item(TableName=table, Key=freeze))
    assert code == "AccessDeniedException"
    transaction = [{"Delete": {"TableName": table, "Key": key}} for key in (evidence, freeze)]
    code, _ = error_of(lambda: client.transact_write_items(TransactItems=transaction))
    assert code == "AccessDeniedException"


SEAL_KEY = {"pk": {"S": QUEUE_ARN}, "sk": {"S": "test_partition_keys"}}
SEAL_CALLS: Mapping[str, Callable[[Any, str], Any]] = {
    "get": lambda client, table: client.get_item(TableName=table, Key=SEAL_KEY),
    "update": lambda client, table: client.update_item(
        TableName=table,
        Key=SEAL_KEY,
        UpdateExpression="SET x = :x",
        ExpressionAttributeValues={":x": {"S": "1"}},
    ),
    "scan": lambda client, table: client.scan(TableName=table),
    "query": lambda client, table: query(client, table, "pk", QUEUE_ARN),
}


def list_denied_seal_calls(account: LocalAccount, *statements: dict[str, Any]) -> set[str]:
    """Return the calls on the table of seal keys that IAM denies to a user with these rights."""
    _, credentials = user(account, *statements)
    client = account.client("dynamodb", **credentials)
    table = account.outputs["SealTable"]
    return {name for name, call in SEAL_CALLS.items() if is_denied(partial(call, client, table))}


def is_denied(call: Callable[[], Any]) -> bool:
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] == "AccessDeniedException"
    return False


ROLES_WITHOUT_SEALS = ("heal", "attach-dlq", "restore-policy", "follow-up", "approve", "rollback")


@pytest.mark.parametrize("role", [*ROLES_WITHOUT_SEALS, "scan", "probe"])
def test_deployed_role_cannot_read_or_make_keys_of_seals(account: LocalAccount, role: str) -> None:
    statements = read_statements(account, role)
    assert statements
    assert list_denied_seal_calls(account, *statements) == SEAL_CALLS.keys()


def test_deployed_redrive_role_can_read_and_make_single_keys_of_seals(
    account: LocalAccount,
) -> None:
    assert list_denied_seal_calls(account, *read_statements(account, "redrive")) == {
        "scan",
        "query",
    }
    account.client("dynamodb").delete_item(TableName=account.outputs["SealTable"], Key=SEAL_KEY)


@pytest.mark.parametrize("make_policy", [make_look_policy, make_steer_policy])
def test_operators_policies_cannot_read_or_make_keys_of_seals(
    account: LocalAccount, make_policy: Callable[[], Mapping[str, Any]]
) -> None:
    policy_text = json.dumps(make_policy())
    policy_text = policy_text.replace("REGION", REGION).replace("ACCOUNT", ACCOUNT)
    statements = json.loads(policy_text)["Statement"]
    assert list_denied_seal_calls(account, *statements) == SEAL_CALLS.keys()
    _, credentials = user(account, *statements)
    client = account.client("dynamodb", **credentials)
    if make_policy is make_look_policy:
        client.scan(TableName=account.outputs["CaseTable"])
