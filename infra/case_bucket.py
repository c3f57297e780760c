"""Where every transition of a case is written down, for people and for the night."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.buckets import retained_bucket


class CaseBucket(Construct):
    """Versioned: a transition that was overwritten can be read for 90 days. Cases never expire."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        overwritten = s3.LifecycleRule(noncurrent_version_expiration=Duration.days(90))
        self.bucket = retained_bucket(self, "Bucket", [overwritten], versioned=True)
