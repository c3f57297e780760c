"""The case table, and the buckets of cases and reports. They stay if the stack is deleted.

The bucket of an organization is made here too."""

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
from mendq.model.names import NIGHTLY_ROLE_PURPOSE, case_bucket_name, role_name
from mendq.model.settings import ORGANIZATION_SCOPE
from mendq.nightly.verdict import NIGHTLY_FOLDER

ORGANIZATION_RETENTION_DAYS = 400
# Key prefixes in the report bucket, one for each table that the nightly job writes. The report's
# page is made from the last one.
TABLE_PREFIXES = ("incidents", "failed_calls", "quality", NIGHTLY_FOLDER, "summary")
LOG_PREFIX = "logs"
JOB_LOG_RETENTION_DAYS = 90


class Buckets(Struct, frozen=True):
    """The buckets that the nightly job reads and writes.

    Attributes:
        trail: log files of CloudTrail.
        cases: each transition of each case, and the scan's findings.
        reports: tables, reports and logs of the nightly job.
        organization: tables of all accounts; None if the account shares none.
    """

    trail: s3.IBucket
    cases: s3.Bucket
    reports: s3.Bucket
    organization: s3.IBucket | None = None


def make_retained_bucket(
    scope: Construct,
    name: str,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    *,
    is_versioned: bool,
    bucket_name: str | None = None,
) -> s3.Bucket:
    """Make a private, encrypted bucket that stays, with its objects, if the stack is deleted.

    Args:
        scope: the construct that holds the bucket.
        name: the id of the bucket's construct.
        lifecycle_rules: when objects expire.
        is_versioned: True if S3 keeps overwritten objects.
        bucket_name: the bucket's name; None if CloudFormation makes one.
    """
    incomplete_upload_rule = s3.LifecycleRule(
        abort_incomplete_multipart_upload_after=Duration.days(7)
    )
    return s3.Bucket(
        scope,
        name,
        bucket_name=bucket_name,
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        versioned=is_versioned,
        lifecycle_rules=[incomplete_upload_rule, *lifecycle_rules],
        removal_policy=RemovalPolicy.RETAIN,
    )


def make_case_bucket(scope: Construct, settings: DeploymentSettings) -> s3.Bucket:
    """Make the bucket of cases. Cases never expire; overwritten objects are kept for 90 days.

    If the organization's hub reads the cases of all accounts, the bucket has a fixed name, by which
    the hub finds it. In every stack except the hub's own, its policy allows the hub's role to read.
    """
    overwritten_object_expiry = s3.LifecycleRule(noncurrent_version_expiration=Duration.days(90))
    stack = Stack.of(scope)
    if settings.nightly.scope != ORGANIZATION_SCOPE or settings.organization is None:
        return make_retained_bucket(scope, "Bucket", [overwritten_object_expiry], is_versioned=True)
    bucket = make_retained_bucket(
        scope,
        "Bucket",
        [overwritten_object_expiry],
        is_versioned=True,
        bucket_name=case_bucket_name(stack.account, stack.region),
    )
    if not settings.is_hub:
        organization = settings.organization
        hub_environment = organization.hub
        hub_role_name = role_name(NIGHTLY_ROLE_PURPOSE, hub_environment.region)
        hub_role_arn = f"arn:{stack.partition}:iam::{hub_environment.account}:role/{hub_role_name}"
        object_arns = [bucket.arn_for_objects("cases/*"), bucket.arn_for_objects("findings/*")]
        for action, resources in (
            ("s3:GetObject", object_arns),
            ("s3:ListBucket", [bucket.bucket_arn]),
        ):
            statement = _allow_roles(organization.id, hub_role_arn, action, resources)
            bucket.add_to_resource_policy(statement)
    return bucket


def _allow_roles(
    organization_id: str, role_arn_pattern: str, allowed_action: str, resources: Sequence[str]
) -> iam.PolicyStatement:
    """Return a bucket policy statement that allows an action to roles of the organization.

    The roles are selected by conditions, because S3 refuses a policy that names a role as principal
    before the role exists.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html

    Args:
        organization_id: the id of the organization.
        role_arn_pattern: the ARN of the role, or a pattern of ARNs.
        allowed_action: the IAM action.
        resources: ARNs of the bucket or of its objects.
    """
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[allowed_action],
        resources=list(resources),
        conditions={
            "StringEquals": {"aws:PrincipalOrgID": organization_id},
            "ArnLike": {"aws:PrincipalArn": role_arn_pattern},
        },
    )


def _make_organization_bucket(scope: Construct, settings: OrganizationSettings) -> s3.Bucket:
    """Make the bucket to which the accounts of an organization copy their tables.

    The Lambda watch_nightly of each account may only put objects below the account's own prefix; it
    may not read, list or delete. The policy has the caller's account as a variable in the key:
    https://docs.aws.amazon.com/systems-manager/latest/userguide/remediate-s3-bucket-policies.html
    """
    expiry_rule = s3.LifecycleRule(
        expiration=Duration.days(ORGANIZATION_RETENTION_DAYS),
        noncurrent_version_expiration=Duration.days(30),
    )
    bucket = make_retained_bucket(
        scope, "Bucket", [expiry_rule], is_versioned=True, bucket_name=settings.report_bucket
    )
    writer_role_arn_pattern = (
        f"arn:{Stack.of(scope).partition}:iam::*:role/{role_name('watch-nightly', '*')}"
    )
    own_object_arns = bucket.arn_for_objects("account=${aws:PrincipalAccount}/*")
    bucket.add_to_resource_policy(
        _allow_roles(settings.id, writer_role_arn_pattern, "s3:PutObject", [own_object_arns])
    )
    return bucket


def find_or_make_organization_bucket(
    scope: Construct, settings: DeploymentSettings
) -> s3.IBucket | None:
    """Return the organization's bucket; None if accounts share no tables.

    The hub's stack makes the bucket; other stacks refer to it by name. Accounts share no tables if
    there is no organization, or if the hub's job reads the trail for all accounts.
    """
    if settings.organization is None or settings.nightly.scope == ORGANIZATION_SCOPE:
        return None
    if settings.is_hub:
        return _make_organization_bucket(scope, settings.organization)
    return s3.Bucket.from_bucket_name(scope, "Bucket", settings.organization.report_bucket)


def make_report_bucket(scope: Construct) -> s3.Bucket:
    """Make the bucket of reports. It sends an event to EventBridge for each new object.

    Overwritten objects are kept for 30 days, logs for JOB_LOG_RETENTION_DAYS.
    """
    overwritten_object_expiry = s3.LifecycleRule(
        noncurrent_version_expiration=Duration.days(30), expired_object_delete_marker=True
    )
    log_expiry = s3.LifecycleRule(
        prefix=f"{LOG_PREFIX}/", expiration=Duration.days(JOB_LOG_RETENTION_DAYS)
    )
    bucket = make_retained_bucket(
        scope, "Bucket", [overwritten_object_expiry, log_expiry], is_versioned=True
    )
    # The L2 construct's own property for EventBridge would add a Lambda of CDK's to the stack.
    cfn_bucket = bucket.node.default_child
    assert isinstance(cfn_bucket, s3.CfnBucket)  # noqa: S101 - an L2 bucket always has one
    event_configuration = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    cfn_bucket.add_property_override("NotificationConfiguration", event_configuration)
    return bucket


def make_case_table(scope: Construct) -> dynamodb.Table:
    """Make the case table. It can be restored to any second of the last 35 days.

    It stays if the stack is deleted. To delete it, first remove its deletion protection.
    """
    string_type = dynamodb.AttributeType.STRING
    table = dynamodb.Table(
        scope,
        "Table",
        partition_key=dynamodb.Attribute(name="pk", type=string_type),
        sort_key=dynamodb.Attribute(name="sk", type=string_type),
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
        partition_key=dynamodb.Attribute(
            name=open_case_index.PARTITION_ATTRIBUTE, type=string_type
        ),
        sort_key=dynamodb.Attribute(
            name=open_case_index.SORT_ATTRIBUTE, type=dynamodb.AttributeType.NUMBER
        ),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=list(open_case_index.INCLUDED_ATTRIBUTES),
    )
    return table


def make_seal_table(scope: Construct) -> dynamodb.Table:
    """Make the table of seal keys, which only redrive and people who return messages may read.

    It is deleted with the stack. Then no seal can be checked, so every message in a quarantine
    counts as unsealed.
    """
    string_type = dynamodb.AttributeType.STRING
    return dynamodb.Table(
        scope,
        "Table",
        partition_key=dynamodb.Attribute(name="pk", type=string_type),
        sort_key=dynamodb.Attribute(name="sk", type=string_type),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        removal_policy=RemovalPolicy.DESTROY,
    )
