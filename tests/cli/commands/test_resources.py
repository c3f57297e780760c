"""`mendq resources` with CloudFormation's answers; after a destroy: infra/test_deploying.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tests.cli.conftest import Operator

AT = datetime(2026, 11, 22, 4, tzinfo=UTC)
ACCOUNT_ID = "123456789012"
STACK_ID = f"arn:aws:cloudformation:us-east-1:{ACCOUNT_ID}:stack/Mendq/1"
QUEUE = {"Id": "Intake", "Type": "AWS::SQS::Queue", "Name": "https://queue"}
TABLE = {"Id": "CaseStore", "Type": "AWS::DynamoDB::Table", "Name": "kept-table"}
BUCKET = {"Id": "Cases", "Type": "AWS::S3::Bucket", "Name": "kept-bucket"}


@pytest.fixture(autouse=True)
def _there(operator: Operator) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET["Name"])
    boto3.client("dynamodb").create_table(
        TableName=TABLE["Name"],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def _answers(
    monkeypatch: pytest.MonkeyPatch,
    now: Sequence[dict[str, str]] | None,
    before: Sequence[tuple[dict[str, str], str]] = (),
) -> None:
    """A stack with these resources or none, and one destroyed that ended them so."""
    stub = _stubbed(monkeypatch, "cloudformation")
    if now is None:
        stub.add_client_error("list_stack_resources", "ValidationError")
    else:
        said = [_resource(each, "CREATE_COMPLETE") | {"LastUpdatedTimestamp": AT} for each in now]
        stub.add_response("list_stack_resources", {"StackResourceSummaries": said})
    gone = {"StackStatus": "DELETE_COMPLETE", "CreationTime": AT, "DeletionTime": AT}
    mine = [{"StackName": "Mendq", "StackId": STACK_ID, **gone}] if before else []
    others = [{"StackName": "Another", "StackId": "another", **gone}]
    stub.add_response("list_stacks", {"StackSummaries": [*others, *mine]})
    if before:
        of_ours = {"StackId": STACK_ID, "StackName": "Mendq", "Timestamp": AT, "EventId": "1"}
        events = [_resource(each, status) | of_ours for each, status in before]
        asked = {"StackName": STACK_ID}
        stub.add_response("describe_stack_events", {"StackEvents": events}, asked)


def _stubbed(monkeypatch: pytest.MonkeyPatch, service: str) -> Stubber:
    """What every session then makes for the service."""
    client, plain = boto3.client(service), boto3.Session.client

    def made(session: boto3.Session, asked: str, *rest: Any, **named: Any) -> Any:
        return client if asked == service else plain(session, asked, *rest, **named)

    monkeypatch.setattr(boto3.Session, "client", made)
    stub = Stubber(client)
    stub.activate()
    return stub


def _resource(each: dict[str, str], status: str) -> dict[str, Any]:
    named = {"LogicalResourceId": each["Id"], "PhysicalResourceId": each["Name"]}
    return {**named, "ResourceType": each["Type"], "ResourceStatus": status}


def test_that_nothing_is_left_is_said(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, None)
    said = operator.json("resources", code=4)
    where = f"in account {ACCOUNT_ID}, us-east-1: see --profile and --region"
    assert f"nothing is left of a stack Mendq {where}" in said["error"]["message"]


def test_of_the_stack_the_table_and_the_bucket_that_are_there_and_nothing_else(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3.client("dynamodb").delete_table(TableName=TABLE["Name"])
    _answers(monkeypatch, [QUEUE, TABLE, BUCKET])
    bucket = {"kind": "bucket", "name": "kept-bucket", "logical_id": "Cases"}
    assert operator.json("resources") == [{**bucket, "destroyed_at": None}]


def test_of_a_stack_that_is_gone_what_it_left_and_not_what_went_with_it(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, went = "DELETE_SKIPPED", "DELETE_COMPLETE"
    _answers(monkeypatch, [BUCKET], [(TABLE, left), (BUCKET, went), (QUEUE, left)])
    shown = operator.mendq("resources").output
    of_ours = f"Mendq in account {ACCOUNT_ID}, us-east-1"
    deployed, _, destroyed = shown.partition(f"{of_ours}, destroyed 2026-11-22T04:00:00.000Z")
    assert f"{of_ours}, deployed\n  bucket kept-bucket\n" in deployed
    assert destroyed.startswith("\n  table kept-table\nmake cdk ARGS=destroy leaves them")


@pytest.mark.parametrize(("listed", "named"), [(["kept-bucket"], True), (["kept-bucket-2"], False)])
def test_a_bucket_of_another_account_is_not_named(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, listed: Sequence[str], named: bool
) -> None:
    """Somebody else has taken the name; or it is ours, and we are kept out."""
    _answers(monkeypatch, [TABLE, BUCKET])
    buckets = [{"Name": each} for each in listed]
    stub = _stubbed(monkeypatch, "s3")
    stub.add_response("list_buckets", {"Buckets": buckets}, {"Prefix": "kept-bucket"})
    assert ("kept-bucket" in {each["name"] for each in operator.json("resources")}) is named
