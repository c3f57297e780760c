"""The trail that makes failed SQS calls visible: data events of chosen queues, our own left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.buckets import retained_bucket
from infra.own_queues import queue_arn
from infra.roles import session_arn_prefixes
from infra.settings.deployment import TrailSettings
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
        bucket = retained_bucket(self, "Bucket", [expired], versioned=False)
        self._let_cloudtrail_write(bucket)
        trail = cloudtrail.CfnTrail(
            self,
            "Trail",
            trail_name=TRAIL_NAME,
            s3_bucket_name=bucket.bucket_name,
            is_logging=True,
            is_multi_region_trail=False,
            include_global_service_events=False,
            enable_log_file_validation=True,
            advanced_event_selectors=list(selectors(Stack.of(self), settings)),
        )
        assert bucket.policy is not None  # noqa: S101 - enforce_ssl has made it
        trail.node.add_dependency(bucket.policy)
        self.bucket = bucket

    def _let_cloudtrail_write(self, bucket: s3.Bucket) -> None:
        """https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-s3-bucket-policy-for-cloudtrail.html"""
        stack = Stack.of(self)
        cloudtrail_itself = iam.ServicePrincipal("cloudtrail.amazonaws.com")
        this_trail = stack.format_arn(
            service="cloudtrail", resource="trail", resource_name=TRAIL_NAME
        )
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[cloudtrail_itself],
                actions=["s3:GetBucketAcl"],
                resources=[bucket.bucket_arn],
                conditions={"StringEquals": {"aws:SourceArn": this_trail}},
            )
        )
        owned = {"s3:x-amz-acl": "bucket-owner-full-control", "aws:SourceArn": this_trail}
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[cloudtrail_itself],
                actions=["s3:PutObject"],
                resources=[bucket.arn_for_objects(f"AWSLogs/{stack.account}/*")],
                conditions={"StringEquals": owned},
            )
        )


def selectors(
    stack: Stack, settings: TrailSettings
) -> Iterator[cloudtrail.CfnTrail.AdvancedEventSelectorProperty]:
    """What the trail logs; our own probe and drills always, whatever queues and calls are chosen.

    So a selector stands before queues are named, and a queue that nobody drills costs nothing.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
    """
    names = [_field("eventName", equals=settings.event_names)] if settings.event_names else []
    if settings.queue_arn_prefixes:
        yield _data_events("Calls to chosen queues", settings.queue_arn_prefixes, stack, names)
    own = [queue_arn(stack, name) for name in (QUEUE_NAME, DRILL_QUEUE)]
    yield _data_events("Mendq's own probe and drills", own, stack, [])
    if settings.management_events:
        # Only these fields may narrow management events on a trail, not eventName.
        yield _selector(
            "Changes of configuration",
            [_field("eventCategory", equals=["Management"]), _field("readOnly", equals=["false"])],
        )


def _data_events(
    title: str,
    queue_arn_prefixes: Sequence[str],
    stack: Stack,
    more: Sequence[cloudtrail.CfnTrail.AdvancedFieldSelectorProperty],
) -> cloudtrail.CfnTrail.AdvancedEventSelectorProperty:
    fields = [
        _field("eventCategory", equals=["Data"]),
        _field("resources.type", equals=["AWS::SQS::Queue"]),
        _field("resources.ARN", starts_with=queue_arn_prefixes),
        _field("userIdentity.arn", not_starts_with=session_arn_prefixes(stack)),
        *more,
    ]
    return _selector(title, fields)


def _selector(
    title: str, fields: Sequence[cloudtrail.CfnTrail.AdvancedFieldSelectorProperty]
) -> cloudtrail.CfnTrail.AdvancedEventSelectorProperty:
    return cloudtrail.CfnTrail.AdvancedEventSelectorProperty(name=title, field_selectors=fields)


def _field(
    field: str,
    *,
    equals: Sequence[str] | None = None,
    starts_with: Sequence[str] | None = None,
    not_starts_with: Sequence[str] | None = None,
) -> cloudtrail.CfnTrail.AdvancedFieldSelectorProperty:
    return cloudtrail.CfnTrail.AdvancedFieldSelectorProperty(
        field=field,
        equal_to=_list(equals),
        starts_with=_list(starts_with),
        not_starts_with=_list(not_starts_with),
    )


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)
