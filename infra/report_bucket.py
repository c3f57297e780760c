"""Where the night writes its tables, the week its summary, and deliver_report its pages."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_s3 as s3
from constructs import Construct

from functions.healing.nightly import NIGHTS
from infra.buckets import retained_bucket

# What the job writes, each below its own prefix; a page is made from the last.
TABLES = ("incidents", "failed_calls", "quality", NIGHTS, "summary")
LOGS = "logs"
LOGS_KEPT_DAYS = 90


class ReportBucket(Construct):
    """Tells EventBridge what was written; what a later night replaced can be read for 30 days."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        replaced = s3.LifecycleRule(
            noncurrent_version_expiration=Duration.days(30), expired_object_delete_marker=True
        )
        old_logs = s3.LifecycleRule(prefix=f"{LOGS}/", expiration=Duration.days(LOGS_KEPT_DAYS))
        self.bucket = retained_bucket(self, "Bucket", [replaced, old_logs], versioned=True)
        # The L2's own switch would bring a Lambda of CDK's with it.
        resource = self.bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket)  # noqa: S101 - what an L2 bucket holds
        resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(
                event_bridge_enabled=True
            )
        )
