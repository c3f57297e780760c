"""Test `mendq resources` if the stack was deleted or CloudFormation denies the call."""

from __future__ import annotations

from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber

from tests.cli.builders import Operator, stub_service

AT = datetime(2026, 11, 22, 4, tzinfo=UTC)
BUCKET = "AWS::S3::Bucket"


def _left_behind(stub: Stubber) -> None:
    """Answer that the stack was deleted and its bucket was left."""
    stack_id = "arn:aws:cloudformation:us-east-1:123456789012:stack/Mendq/1"
    deleted = {"StackName": "Mendq", "StackId": stack_id, "StackStatus": "DELETE_COMPLETE"}
    times = {"CreationTime": AT, "DeletionTime": AT}
    stub.add_response("list_stacks", {"StackSummaries": [{**deleted, **times}]})
    event = {
        "StackId": stack_id,
        "StackName": "Mendq",
        "EventId": "1",
        "Timestamp": AT,
        "ResourceType": BUCKET,
        "ResourceStatus": "DELETE_SKIPPED",
        "LogicalResourceId": "bucket",
        "PhysicalResourceId": "kept-bucket",
    }
    stub.add_response("describe_stack_events", {"StackEvents": [event]})


def test_resources_of_a_destroyed_stack_are_found_if_there_is_no_stack_any_more(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3.client("s3").create_bucket(Bucket="kept-bucket")
    stub = stub_service(monkeypatch, "cloudformation")
    stub.add_client_error("list_stack_resources", "ValidationError", "Mendq does not exist")
    _left_behind(stub)
    (resource,) = operator.run_json("resources")
    assert (resource["kind"], resource["name"]) == ("bucket", "kept-bucket")
    assert resource["destroyed_at"]


def test_resources_without_cloudformation_rights_reports_the_denial(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3.client("s3").create_bucket(Bucket="kept-bucket")
    stub = stub_service(monkeypatch, "cloudformation")
    stub.add_client_error("list_stack_resources", "AccessDenied", "not authorized", 403)
    _left_behind(stub)
    result = operator.run("resources")
    assert result.exit_code not in {0, 4}
    assert "AccessDenied" in result.output
    assert "nothing is left" not in result.output
