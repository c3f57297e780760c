"""`mendq resources`: list the table and buckets that stay when the stack is destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.errors import code_of
from mendq.cli.account import Account
from mendq.cli.commands import CommandKind, command
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
    """A table or bucket that outlives its stack."""

    kind: str
    name: str
    logical_id: str
    # When the stack was destroyed (ISO 8601). None while the stack exists.
    destroyed_at: str | None = None


@command(9, CommandKind.LOOKING, _ASKED)
def resources(call: Invocation) -> None:
    """Where the table and the buckets are that outlive the stack.

    Of the stack that is there, and of those destroyed in the last 90 days.

    Examples:
      mendq resources
      mendq resources --stack Mendq --json
    """
    client: CloudFormationClient = call.account.session.client("cloudformation")
    listed = [
        *_list_of_stack(client, call.stack),
        *_list_of_destroyed_stacks(client, call.stack),
    ]
    existing = [resource for resource in listed if _may_exist(call.account, resource)]
    place = f"account {call.account.account_id}, {call.account.region}"
    if not existing:
        line = f"nothing is left of a stack {call.stack} in {place}: see --profile and --region"
        raise CommandError(line, Exit.NOT_FOUND)
    call.out.print_json([asdict(resource) for resource in existing])
    for destroyed_at in dict.fromkeys(resource.destroyed_at for resource in existing):
        since = f"destroyed {destroyed_at}" if destroyed_at else "deployed"
        call.out.say_heading(f"{call.stack} in {place}, {since}")
        for resource in existing:
            if resource.destroyed_at == destroyed_at:
                call.out.say_unwrapped(f"{resource.kind} {resource.name}", "", indent=2)
    call.out.say("make cdk ARGS=destroy leaves them; to delete them for good: docs/leaving.md")


def _list_of_stack(client: CloudFormationClient, stack: str) -> Iterator[Resource]:
    """Yield the resources of the deployed stack. Nothing if there is no such stack."""
    pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
    try:
        for page in pages:
            for item in page["StackResourceSummaries"]:
                kind = KINDS.get(item["ResourceType"])
                if kind:
                    name = item.get("PhysicalResourceId", "")
                    yield Resource(kind, name, item["LogicalResourceId"])
    except ClientError as error:
        if code_of(error) != "ValidationError":  # there is no such stack
            raise


def _list_of_destroyed_stacks(client: CloudFormationClient, stack: str) -> Iterator[Resource]:
    """Yield the resources that stayed when stacks of that name were destroyed.

    CloudFormation keeps a deleted stack for 90 days and finds it by its id only.
    """
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
    for page in pages:
        for summary in page["StackSummaries"]:
            if summary["StackName"] == stack:
                destroyed_at = to_text(summary.get("DeletionTime", summary["CreationTime"]))
                yield from _list_retained(client, summary["StackId"], destroyed_at)


def _list_retained(
    client: CloudFormationClient, stack_id: str, destroyed_at: str
) -> Iterator[Resource]:
    """Yield the resources that CloudFormation did not delete with the stack."""
    pages = client.get_paginator("describe_stack_events").paginate(StackName=stack_id)
    for page in pages:
        for event in page["StackEvents"]:
            kind = KINDS.get(event.get("ResourceType", ""))
            if kind and event.get("ResourceStatus") == "DELETE_SKIPPED":
                name = event["PhysicalResourceId"]
                yield Resource(kind, name, event["LogicalResourceId"], destroyed_at)


def _may_exist(account: Account, resource: Resource) -> bool:
    """Return False only if it is certain that the resource was deleted.

    A bucket's name may belong to another account after it was deleted. So it is looked up in the
    list of this account's buckets.
    """
    try:
        if resource.kind == "table":
            account.clients.dynamodb.describe_table(TableName=resource.name)
            return True
        s3: S3Client = account.session.client("s3")
        buckets = s3.list_buckets(Prefix=resource.name)["Buckets"]
        return any(bucket["Name"] == resource.name for bucket in buckets)
    except ClientError as error:
        return code_of(error) != "ResourceNotFoundException"
