"""The trail that makes failed SQS calls visible: data events of chosen queues, whoever calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.own_queues import queue_arn
from infra.roles import may
from infra.settings.deployment import TrailSettings
from infra.storage import retained_bucket
from mendq.model.limits import DRILL_QUEUE
from mendq.probe.probe import QUEUE_NAME

# Fixed, so that the bucket's policy can name the trail that may write without waiting for it.
TRAIL_NAME = "mendq"
RETAINED_DAYS = 90


class Trail(Construct):
    """A trail and its bucket; the bucket alone, by its name, where a trail exists already."""

    def __init__(self, scope: Construct, name: str, settings: TrailSettings) -> None:
        super().__init__(scope, name)
        self.bucket: s3.IBucket
        if settings.bucket is not None:
            self.bucket = s3.Bucket.from_bucket_name(self, "Existing", settings.bucket)
            return
        expired = s3.LifecycleRule(expiration=Duration.days(RETAINED_DAYS))
        self.bucket = bucket = retained_bucket(self, "Bucket", [expired], versioned=False)
        self._let_cloudtrail_write(bucket, settings.above_logs)
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
            advanced_event_selectors=list(_selectors(Stack.of(self), settings)),
        )
        assert bucket.policy is not None  # noqa: S101 - enforce_ssl has made it
        trail.node.add_dependency(bucket.policy)

    def _let_cloudtrail_write(self, bucket: s3.Bucket, above_logs: str) -> None:
        """https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-s3-bucket-policy-for-cloudtrail.html"""
        stack = Stack.of(self)
        this_trail = stack.format_arn(
            service="cloudtrail", resource="trail", resource_name=TRAIL_NAME
        )
        logs = bucket.arn_for_objects(f"{above_logs}AWSLogs/{stack.account}/*")
        for action, resource, more in (
            ("s3:GetBucketAcl", bucket.bucket_arn, {}),
            ("s3:PutObject", logs, {"s3:x-amz-acl": "bucket-owner-full-control"}),
        ):
            only = {"StringEquals": {**more, "aws:SourceArn": this_trail}}
            statement = may([action], resource, service="cloudtrail", conditions=only)
            bucket.add_to_resource_policy(statement)


def _selectors(stack: Stack, settings: TrailSettings) -> Iterator[dict[str, Any]]:
    """What the trail logs; our own probe and drills always, whatever queues and calls are chosen.

    So a selector stands before queues are named, and a queue that nobody drills costs nothing. No
    caller is left out: what becomes of a service's call, which has no ARN, where a selector tests
    `userIdentity.arn` is not documented. Our own calls are left out by the rule.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
    """
    own = [queue_arn(stack, name) for name in (QUEUE_NAME, DRILL_QUEUE)]
    events = {"eventName": {"equalTo": list(settings.event_names)}} if settings.event_names else {}
    for title, prefixes, more in (
        ("Calls to chosen queues", settings.queue_arn_prefixes, events),
        ("Mendq's own probe and drills", own, {}),
    ):
        data = {
            "eventCategory": {"equalTo": ["Data"]},
            "resources.type": {"equalTo": ["AWS::SQS::Queue"]},
            "resources.ARN": {"startsWith": list(prefixes)},
        }
        if prefixes:
            yield _selector(title, data | more)
    if settings.management_events:
        # Only these fields may narrow management events on a trail, not eventName.
        fields = {"eventCategory": ["Management"], "readOnly": ["false"]}
        equal = {name: {"equalTo": values} for name, values in fields.items()}
        yield _selector("Changes of configuration", equal)


def _selector(title: str, fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    narrowed = [{"field": name, **tests} for name, tests in fields.items()]
    return {"name": title, "fieldSelectors": narrowed}
