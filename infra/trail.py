"""The CloudTrail trail that logs SQS calls as data events, and its bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.own_queues import format_queue_arn
from infra.roles import allow
from infra.settings.deployment import TrailSettings
from infra.storage import make_retained_bucket
from mendq.model.tags import DRILL_QUEUE_PREFIX
from mendq.probe.probe import PROBE_QUEUE_NAME

# A fixed name: the bucket's policy names the trail, and must exist before the trail.
TRAIL_NAME = "mendq"
TRAIL_RETENTION_DAYS = 90


class TrailWithBucket(Construct):
    """Mendq's own trail and its bucket, or only the bucket of a trail that exists already."""

    def __init__(self, scope: Construct, name: str, settings: TrailSettings) -> None:
        super().__init__(scope, name)
        self.bucket: s3.IBucket
        if settings.bucket is not None:
            self.bucket = s3.Bucket.from_bucket_name(self, "Existing", settings.bucket)
            return
        expiry_rule = s3.LifecycleRule(expiration=Duration.days(TRAIL_RETENTION_DAYS))
        bucket = make_retained_bucket(self, "Bucket", [expiry_rule], is_versioned=False)
        self.bucket = bucket
        self._let_cloudtrail_write(bucket, settings.log_key_prefix)
        trail = cloudtrail.CfnTrail(
            self,
            "Trail",
            trail_name=TRAIL_NAME,
            s3_bucket_name=bucket.bucket_name,
            s3_key_prefix=settings.prefix,
            is_logging=True,
            is_multi_region_trail=False,
            include_global_service_events=False,
            enable_log_file_validation=True,
            advanced_event_selectors=list(_list_event_selectors(Stack.of(self), settings)),
        )
        assert bucket.policy is not None  # noqa: S101 - `enforce_ssl` has made it
        trail.node.add_dependency(bucket.policy)

    def _let_cloudtrail_write(self, bucket: s3.Bucket, log_key_prefix: str) -> None:
        """Let CloudTrail write log files of Mendq's own trail to the bucket.

        https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-s3-bucket-policy-for-cloudtrail.html
        """
        stack = Stack.of(self)
        trail_arn = stack.format_arn(
            service="cloudtrail", resource="trail", resource_name=TRAIL_NAME
        )
        log_object_arns = bucket.arn_for_objects(f"{log_key_prefix}AWSLogs/{stack.account}/*")
        owner_control_condition = {"s3:x-amz-acl": "bucket-owner-full-control"}
        for action, resource, owner_conditions in (
            ("s3:GetBucketAcl", bucket.bucket_arn, {}),
            ("s3:PutObject", log_object_arns, owner_control_condition),
        ):
            conditions = {"StringEquals": {**owner_conditions, "aws:SourceArn": trail_arn}}
            statement = allow([action], resource, service="cloudtrail", conditions=conditions)
            bucket.add_to_resource_policy(statement)


def _list_event_selectors(stack: Stack, settings: TrailSettings) -> Iterator[dict[str, Any]]:
    """Yield the trail's event selectors: which calls it logs.

    Calls to Mendq's own probe queue and drill queues are always logged, even if the settings do
    not select them. So the trail has a selector even if the settings name no queues.

    No caller is excluded. A call by an AWS service has no ARN, and AWS does not document how a
    selector on `userIdentity.arn` treats such a call. The rule of `Intake` excludes Mendq's own
    calls instead.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
    """
    if settings.queue_arn_prefixes:
        selector_fields = _make_queue_fields(settings.queue_arn_prefixes)
        if settings.event_names:
            selector_fields["eventName"] = {"equalTo": list(settings.event_names)}
        yield _make_event_selector("Calls to chosen queues", selector_fields)
    own_queue_arns = [
        format_queue_arn(stack, name) for name in (PROBE_QUEUE_NAME, DRILL_QUEUE_PREFIX)
    ]
    yield _make_event_selector("Mendq's own probe and drills", _make_queue_fields(own_queue_arns))
    if settings.management_events:
        # A trail can filter management events by these fields, and not by eventName.
        management_fields = {
            "eventCategory": {"equalTo": ["Management"]},
            "readOnly": {"equalTo": ["false"]},
        }
        yield _make_event_selector("Changes of configuration", management_fields)


def _make_queue_fields(arn_prefixes: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the selector fields for data events of queues whose ARN begins with a prefix."""
    return {
        "eventCategory": {"equalTo": ["Data"]},
        "resources.type": {"equalTo": ["AWS::SQS::Queue"]},
        "resources.ARN": {"startsWith": list(arn_prefixes)},
    }


def _make_event_selector(
    title: str, operators_by_field: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, Any]:
    """Return an event selector in CloudTrail's form, which lists a test for each field."""
    field_selectors = [
        {"field": name, **field_operators} for name, field_operators in operators_by_field.items()
    ]
    return {"name": title, "fieldSelectors": field_selectors}
