"""`mendq resources`: the table and the buckets that outlive the stack, and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.errors import code_of
from mendq.cli.account import Account
from mendq.cli.commands import Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.model.evidence import to_text

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

KINDS = {"AWS::DynamoDB::Table": "table", "AWS::S3::Bucket": "bucket"}


_ASKED = {
    "cloudformation:DescribeStackEvents",
    "cloudformation:ListStackResources",
    "cloudformation:ListStacks",
    "dynamodb:DescribeTable",
    "s3:ListAllMyBuckets",
}


class Resource(Struct, frozen=True):
    """One of them; `destroyed_at` is when its stack went, None while it is there."""

    kind: str
    name: str
    logical_id: str
    destroyed_at: str | None = None


@command(9, Kind.LOOKING, _ASKED)
def resources(call: Invocation) -> None:
    """Where the table and the buckets are that outlive the stack.

    Of the stack that is there, and of those destroyed in the last 90 days.

    Examples:
      mendq resources
      mendq resources --stack Mendq --json
    """
    client: CloudFormationClient = call.account.session.client("cloudformation")
    every = (*_of_the_stack(client, call.stack), *_of_those_before(client, call.stack))
    found = [each for each in every if _is_there(call.account, each)]
    place = f"account {call.account.account_id}, {call.account.region}"
    if not found:
        line = f"nothing is left of a stack {call.stack} in {place}: see --profile and --region"
        raise CommandError(line, Exit.NOT_FOUND)
    call.out.print_json([asdict(each) for each in found])
    for destroyed_at in dict.fromkeys(each.destroyed_at for each in found):
        since = f"destroyed {destroyed_at}" if destroyed_at else "deployed"
        call.out.say_heading(f"{call.stack} in {place}, {since}")
        for each in found:
            if each.destroyed_at == destroyed_at:
                call.out.say_unwrapped(f"{each.kind} {each.name}", "", indent=2)
    call.out.say("make cdk ARGS=destroy leaves them; to delete them for good: docs/leaving.md")


def _of_the_stack(client: CloudFormationClient, stack: str) -> Iterator[Resource]:
    pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
    try:
        for each in (each for page in pages for each in page["StackResourceSummaries"]):
            if kind := KINDS.get(each["ResourceType"]):
                yield Resource(kind, each.get("PhysicalResourceId", ""), each["LogicalResourceId"])
    except ClientError as error:
        if code_of(error) != "ValidationError":  # there is none
            raise


def _of_those_before(client: CloudFormationClient, stack: str) -> Iterator[Resource]:
    """CloudFormation tells of a deleted stack for 90 days, by its id alone."""
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
    for gone in (each for page in pages for each in page["StackSummaries"]):
        if gone["StackName"] != stack:
            continue
        at = to_text(gone.get("DeletionTime", gone["CreationTime"]))
        events = client.get_paginator("describe_stack_events").paginate(StackName=gone["StackId"])
        for event in (each for page in events for each in page["StackEvents"]):
            kind = KINDS.get(event.get("ResourceType", ""))
            if kind and event.get("ResourceStatus") == "DELETE_SKIPPED":
                yield Resource(kind, event["PhysicalResourceId"], event["LogicalResourceId"], at)


def _is_there(account: Account, each: Resource) -> bool:
    """Unless it is certain that it is not.

    A bucket's name that was given up may be another account's by now: S3 lists ours alone.
    """
    try:
        if each.kind == "table":
            account.clients.dynamodb.describe_table(TableName=each.name)
            return True
        s3: S3Client = account.session.client("s3")
        listed = s3.list_buckets(Prefix=each.name)["Buckets"]
        return any(bucket["Name"] == each.name for bucket in listed)
    except ClientError as error:
        return code_of(error) != "ResourceNotFoundException"
