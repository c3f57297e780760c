"""What is known of cases and nightly runs, which outlives the stack: case table and buckets."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct
from msgspec import Struct

from infra.settings.deployment import DeploymentSettings, OrganizationSettings
from mendq.cases import open_case_index
from mendq.model.names import NIGHTLY, case_bucket_name, role_name
from mendq.model.settings import ORGANIZATION
from mendq.nightly.verdict import NIGHTLY_RUNS


def retained_bucket(
    scope: Construct,
    name: str,
    rules: Sequence[s3.LifecycleRule],
    *,
    versioned: bool,
    called: str | None = None,
) -> s3.Bucket:
    """A bucket that stays, with what it holds, when the stack goes.

    CloudFormation finds a name for it, unless it is to be `called` something.
    """
    broken_off = s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(7))
    return s3.Bucket(
        scope,
        name,
        bucket_name=called,
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        versioned=versioned,
        lifecycle_rules=[broken_off, *rules],
        removal_policy=RemovalPolicy.RETAIN,
    )


class Buckets(Struct, frozen=True):
    """What the nightly job reads and writes."""

    trail: s3.IBucket
    cases: s3.Bucket
    reports: s3.Bucket
    organization: s3.IBucket | None = None


def case_bucket(scope: Construct, settings: DeploymentSettings) -> s3.Bucket:
    """Versioned: a transition that was overwritten can be read for 90 days. Cases never expire.

    Where the hub's job reads for all, it is found by its name, and that role may read it.
    """
    overwritten = s3.LifecycleRule(noncurrent_version_expiration=Duration.days(90))
    stack = Stack.of(scope)
    read_by = settings.organization if settings.nightly.scope == ORGANIZATION else None
    name = case_bucket_name(stack.account, stack.region) if read_by else None
    bucket = retained_bucket(scope, "Bucket", [overwritten], versioned=True, called=name)
    if read_by and not settings.is_hub:
        keys = [bucket.arn_for_objects(f"{each}/*") for each in ("cases", "findings")]
        hub = read_by.hub
        arn = f"arn:{stack.partition}:iam::{hub.account}:role/{role_name(NIGHTLY, hub.region)}"
        for action, resources in (("s3:GetObject", keys), ("s3:ListBucket", [bucket.bucket_arn])):
            bucket.add_to_resource_policy(_of_roles(read_by.id, arn, action, resources))
    return bucket


def _of_roles(
    organization: str, role: str, action: str, resources: Sequence[str]
) -> iam.PolicyStatement:
    """What roles of the organization with that ARN may, there yet or not: by conditions, since a
    policy that names a role which is not there is refused.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
    """
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=list(resources),
        conditions={
            "StringEquals": {"aws:PrincipalOrgID": organization},
            "ArnLike": {"aws:PrincipalArn": role},
        },
    )


ORGANIZATION_RETAINED_DAYS = 400


def organization_bucket(scope: Construct, settings: OrganizationSettings) -> s3.Bucket:
    """Every account puts below its own prefix, and reads, lists and deletes nothing.

    A bucket's policy may have the caller's account in a key:
    https://docs.aws.amazon.com/systems-manager/latest/userguide/remediate-s3-bucket-policies.html
    """
    old = s3.LifecycleRule(
        expiration=Duration.days(ORGANIZATION_RETAINED_DAYS),
        noncurrent_version_expiration=Duration.days(30),
    )
    bucket = retained_bucket(scope, "Bucket", [old], versioned=True, called=settings.report_bucket)
    role = f"arn:{Stack.of(scope).partition}:iam::*:role/{role_name('watch-nightly', '*')}"
    below = bucket.arn_for_objects("account=${aws:PrincipalAccount}/*")
    bucket.add_to_resource_policy(_of_roles(settings.id, role, "s3:PutObject", [below]))
    return bucket


def central_bucket(scope: Construct, settings: DeploymentSettings) -> s3.IBucket | None:
    """The organization's bucket: made where the hub is, else known by its name.

    None where nobody shares: no organization, or its hub reads for all.
    """
    if settings.organization is None or settings.nightly.scope == ORGANIZATION:
        return None
    if settings.is_hub:
        return organization_bucket(scope, settings.organization)
    return s3.Bucket.from_bucket_name(scope, "Bucket", settings.organization.report_bucket)


# What the job writes, each below its own prefix; a page is made from the last.
TABLES = ("incidents", "failed_calls", "quality", NIGHTLY_RUNS, "summary")
LOGS = "logs"
LOGS_RETAINED_DAYS = 90


def report_bucket(scope: Construct) -> s3.Bucket:
    """Tells EventBridge what was written; what was replaced can be read for 30 days."""
    replaced = s3.LifecycleRule(
        noncurrent_version_expiration=Duration.days(30), expired_object_delete_marker=True
    )
    old_logs = s3.LifecycleRule(prefix=f"{LOGS}/", expiration=Duration.days(LOGS_RETAINED_DAYS))
    bucket = retained_bucket(scope, "Bucket", [replaced, old_logs], versioned=True)
    # The L2's own switch would bring a Lambda of CDK's with it.
    resource = bucket.node.default_child
    assert isinstance(resource, s3.CfnBucket)  # noqa: S101 - what an L2 bucket holds
    notified = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    resource.add_property_override("NotificationConfiguration", notified)
    return bucket


def case_table(scope: Construct) -> dynamodb.Table:
    """On demand, restorable to any second of the last 35 days, kept when the stack goes.

    Whoever deletes it takes its deletion protection off first.
    """
    text = dynamodb.AttributeType.STRING
    table = dynamodb.Table(
        scope,
        "Table",
        partition_key=dynamodb.Attribute(name="pk", type=text),
        sort_key=dynamodb.Attribute(name="sk", type=text),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        time_to_live_attribute="expires_at",
        removal_policy=RemovalPolicy.RETAIN,
        deletion_protection=True,
    )
    table.add_global_secondary_index(
        index_name=open_case_index.OPEN_CASES,
        partition_key=dynamodb.Attribute(name=open_case_index.PARTITION, type=text),
        sort_key=dynamodb.Attribute(name=open_case_index.SORT, type=dynamodb.AttributeType.NUMBER),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=list(open_case_index.INCLUDED),
    )
    return table
