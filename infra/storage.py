"""What is known of cases and nightly runs, which outlives the stack: case table and buckets."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct
from msgspec import Struct

from mendq.cases import view
from mendq.nightly.verdict import NIGHTLY_RUNS


def retained_bucket(
    scope: Construct, name: str, rules: Sequence[s3.LifecycleRule], *, versioned: bool
) -> s3.Bucket:
    """A bucket that stays, with what it holds, when the stack goes."""
    broken_off = s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(7))
    return s3.Bucket(
        scope,
        name,
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


def case_bucket(scope: Construct) -> s3.Bucket:
    """Versioned: a transition that was overwritten can be read for 90 days. Cases never expire."""
    overwritten = s3.LifecycleRule(noncurrent_version_expiration=Duration.days(90))
    return retained_bucket(scope, "Bucket", [overwritten], versioned=True)


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
        index_name=view.OPEN_CASES,
        partition_key=dynamodb.Attribute(name=view.PARTITION, type=text),
        sort_key=dynamodb.Attribute(name=view.SORT, type=dynamodb.AttributeType.NUMBER),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=list(view.INCLUDED),
    )
    return table
