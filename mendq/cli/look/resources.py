"""`mendq resources`: list the table and buckets that stay when the stack is destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Struct
from msgspec.structs import asdict

from mendq.aws.errors import error_code_of
from mendq.cli.account import Account
from mendq.cli.commands import CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.model.time_text import format_time

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

KIND_BY_RESOURCE_TYPE = {"AWS::DynamoDB::Table": "table", "AWS::S3::Bucket": "bucket"}


_IAM_ACTIONS = {
    "cloudformation:DescribeStackEvents",
    "cloudformation:ListStackResources",
    "cloudformation:ListStacks",
    "dynamodb:DescribeTable",
    "s3:ListAllMyBuckets",
}


class RetainedResource(Struct, frozen=True):
    """A table or bucket that outlives its stack."""

    kind: str
    name: str
    logical_id: str
    # When the stack was destroyed (ISO 8601). None while the stack exists.
    destroyed_at: str | None = None


@command(9, CommandKind.LOOKING, _IAM_ACTIONS)
def resources(call: Invocation) -> None:
    """List the table and buckets that outlive the stack.

    They belong to the deployed stack, or to stacks destroyed in the last 90 days.

    Examples:
      mendq resources
      mendq resources --stack Mendq --json
    """
    cloudformation_client: CloudFormationClient = call.account.session.client("cloudformation")
    candidate_resources = [
        *_list_stack_resources(cloudformation_client, call.stack),
        *_list_resources_of_destroyed_stacks(cloudformation_client, call.stack),
    ]
    existing_resources = [
        resource for resource in candidate_resources if _may_exist(call.account, resource)
    ]
    account_and_region_text = f"account {call.account.account_id}, {call.account.region}"
    if not existing_resources:
        problem = (
            f"nothing is left of a stack {call.stack} in {account_and_region_text}: see --profile "
            "and --region"
        )
        raise CommandError(problem, Exit.NOT_FOUND)
    call.out.print_json([asdict(resource) for resource in existing_resources])
    for destroyed_at in dict.fromkeys(resource.destroyed_at for resource in existing_resources):
        stack_status = f"destroyed {destroyed_at}" if destroyed_at else "deployed"
        call.out.say_heading(f"{call.stack} in {account_and_region_text}, {stack_status}")
        for resource in existing_resources:
            if resource.destroyed_at == destroyed_at:
                call.out.say_unwrapped(f"{resource.kind} {resource.name}", "", indent=2)
    call.out.say("make cdk ARGS=destroy leaves them; to delete them for good: docs/leaving.md")


def _list_stack_resources(
    cloudformation_client: CloudFormationClient, stack_name: str
) -> Iterator[RetainedResource]:
    """Yield the table and the buckets of the deployed stack; nothing if there is no such stack."""
    result_pages = cloudformation_client.get_paginator("list_stack_resources").paginate(
        StackName=stack_name
    )
    try:
        for result_page in result_pages:
            for resource_summary in result_page["StackResourceSummaries"]:
                resource_kind = KIND_BY_RESOURCE_TYPE.get(resource_summary["ResourceType"])
                if resource_kind:
                    name = resource_summary.get("PhysicalResourceId", "")
                    yield RetainedResource(
                        resource_kind, name, resource_summary["LogicalResourceId"]
                    )
    except ClientError as error:
        if error_code_of(error) != "ValidationError":  # there is no such stack
            raise


def _list_resources_of_destroyed_stacks(
    cloudformation_client: CloudFormationClient, stack_name: str
) -> Iterator[RetainedResource]:
    """Yield the tables and buckets that stayed when stacks of that name were destroyed.

    CloudFormation lists a deleted stack for 90 days, and describes it only by its id.
    """
    result_pages = cloudformation_client.get_paginator("list_stacks").paginate(
        StackStatusFilter=["DELETE_COMPLETE"]
    )
    for result_page in result_pages:
        for stack_summary in result_page["StackSummaries"]:
            if stack_summary["StackName"] == stack_name:
                destroyed_at = format_time(
                    stack_summary.get("DeletionTime", stack_summary["CreationTime"])
                )
                yield from _list_retained_resources(
                    cloudformation_client, stack_summary["StackId"], destroyed_at
                )


def _list_retained_resources(
    cloudformation_client: CloudFormationClient, stack_id: str, destroyed_at: str
) -> Iterator[RetainedResource]:
    """Yield the tables and buckets that CloudFormation did not delete with the stack."""
    result_pages = cloudformation_client.get_paginator("describe_stack_events").paginate(
        StackName=stack_id
    )
    for result_page in result_pages:
        for stack_event in result_page["StackEvents"]:
            resource_kind = KIND_BY_RESOURCE_TYPE.get(stack_event.get("ResourceType", ""))
            if resource_kind and stack_event.get("ResourceStatus") == "DELETE_SKIPPED":
                name = stack_event["PhysicalResourceId"]
                yield RetainedResource(
                    resource_kind, name, stack_event["LogicalResourceId"], destroyed_at
                )


def _may_exist(account: Account, resource: RetainedResource) -> bool:
    """Return False only if it is certain that the resource was deleted.

    The name of a deleted bucket may belong to another account now. So the name is looked up in the
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
        return error_code_of(error) != "ResourceNotFoundException"
