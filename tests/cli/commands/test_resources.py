"""Test `mendq resources` if some resources of the stack do not exist any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber

from tests.cli.builders import Operator, stub_service

AT = datetime(2026, 11, 22, 4, tzinfo=UTC)
KINDS = {"queue": "AWS::SQS::Queue", "table": "AWS::DynamoDB::Table", "bucket": "AWS::S3::Bucket"}
ANOTHER = {"StackName": "Another", "StackStatus": "DELETE_COMPLETE", "CreationTime": AT}


@pytest.fixture(autouse=True)
def stack(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Stubber:
    """A stack of a queue, a table and a bucket, of which only the bucket exists."""
    boto3.client("s3").create_bucket(Bucket="kept-bucket")
    stub = stub_service(monkeypatch, "cloudformation")
    made = {"LastUpdatedTimestamp": AT, "ResourceStatus": "CREATE_COMPLETE"}
    summaries = [
        {
            **made,
            "LogicalResourceId": kind,
            "PhysicalResourceId": f"kept-{kind}",
            "ResourceType": resource_type,
        }
        for kind, resource_type in KINDS.items()
    ]
    stub.add_response("list_stack_resources", {"StackResourceSummaries": summaries})
    stub.add_response("list_stacks", {"StackSummaries": [ANOTHER]})
    return stub


def test_resources_lists_only_the_stack_resources_that_still_exist(operator: Operator) -> None:
    output = operator.run("resources").output
    place = "Mendq in account 123456789012, us-east-1, deployed"
    assert output.startswith(f"\n{place}\n  bucket kept-bucket\nmake cdk ARGS=destroy leaves them")


@pytest.mark.parametrize("listed", [(), ("kept-bucket-2",)], ids=["no bucket", "another bucket"])
def test_resources_does_not_list_a_bucket_that_now_belongs_to_another_account(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, listed: Sequence[str]
) -> None:
    answer = {"Buckets": [{"Name": bucket} for bucket in listed]}
    stub_service(monkeypatch, "s3").add_response("list_buckets", answer, {"Prefix": "kept-bucket"})
    message = operator.read_refusal("resources", code=4)
    where = "in account 123456789012, us-east-1: see --profile and --region"
    assert message == f"nothing is left of a stack Mendq {where}"
