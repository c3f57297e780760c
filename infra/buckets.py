"""Buckets that outlive the stack: no fixed name, no public access, TLS only.

SSE-S3 and not KMS: who may read is said by the bucket's policy and IAM either way, while a key
would bill each of the trail's many small objects and is one more policy that can stop delivery.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct


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
