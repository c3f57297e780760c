"""The intake queue, and the EventBridge rules that send failed calls and Health events to it."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lambdas.lambda_function import MAXIMUM_EVENT_RETRIES
from infra.lambdas.rows import HEAL_HANDLER
from infra.own_queues import DLQ_CONSTRUCT_ID, make_dlq, make_queue
from mendq.model.failed_call import MAPPING_CALLS
from mendq.model.names import (
    AWS_HEALTH_EVENT_SOURCE,
    AWS_HEALTH_SERVICES,
    ROLE_PURPOSES_EXCLUDED_FROM_EVENTS,
    role_name,
)

# Heal tries a call up to five times. By then a claim has ended and throttling is over.
MAXIMUM_RECEIVE_COUNT = 5
# The most failed calls in one invocation of heal, and the most invocations at the same time.
MAXIMUM_BATCH_SIZE = 1_000
MAXIMUM_CONCURRENCY = 2
# How long Lambda collects messages into one batch.
BATCH_WINDOW_SECONDS = 5
# AWS recommends six times the function's timeout, plus the batch window.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY_TIMEOUT_SECONDS = 6 * HEAL_HANDLER.timeout_seconds + BATCH_WINDOW_SECONDS
# CDK's own logical id of the mapping contains the stack's id, which changes when the settings name
# several environments. CloudFormation would then create the new mapping before it deletes the old
# one, and Lambda allows only one mapping of a queue and a function.
# https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
HEAL_MAPPING_LOGICAL_ID = "HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"


class Intake(Construct):
    """The intake queue, the rules that send events to it, and two DLQs.

    Attributes:
        queue: failed calls and AWS Health events that wait for heal.
        dlq: messages that heal could not handle.
        undelivered_dlq: events that EventBridge could not send to `queue`.
    """

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.dlq = make_dlq(self, DLQ_CONSTRUCT_ID)
        self.undelivered_dlq = make_dlq(self, "Undelivered")
        self.queue = make_queue(
            self,
            "Queue",
            Duration.hours(4),
            visibility_timeout=Duration.seconds(VISIBILITY_TIMEOUT_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dlq, max_receive_count=MAXIMUM_RECEIVE_COUNT
            ),
        )
        stack = Stack.of(self)
        self._add_rule(
            "FailedCalls",
            "Failed SQS calls of anyone but Mendq itself",
            _make_failed_call_pattern(stack),
        )
        self._add_rule(
            "RefusedMappings",
            "Failed calls that create or change an event source mapping of a queue",
            _make_refused_mapping_pattern(),
        )
        self._add_rule(
            "AwsHealth",
            "What AWS Health tells of services that queues depend on",
            _make_aws_health_pattern(stack),
        )

    def _add_rule(self, name: str, description: str, pattern: events.EventPattern) -> None:
        """Add a rule that sends matching events to the intake queue."""
        target = targets.SqsQueue(
            self.queue,
            dead_letter_queue=self.undelivered_dlq,
            # Heal ignores older events, so longer retries would be useless.
            max_event_age=Duration.hours(1),
            retry_attempts=MAXIMUM_EVENT_RETRIES,
        )
        events.Rule(self, name, description=description, event_pattern=pattern, targets=[target])

    def make_oldest_age_metric(
        self, period: Duration, *, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return the metric of the age, in seconds, of the oldest message that waits for heal."""
        return self.queue.metric_approximate_age_of_oldest_message(
            period=period, statistic="Maximum", label=label
        )

    def connect_to_heal(self, heal_function: lambda_.Function) -> None:
        """Let the intake queue invoke heal.

        Batches are large, because heal reads each queue once for all failed calls of a batch. Only
        the records that heal reports as failed come again, or all if the invocation fails. At most
        MAXIMUM_CONCURRENCY invocations run at once, so that one continues while another is slow. No
        concurrency is reserved for heal, because that would take it from the account's other
        functions.
        """
        heal_function.add_event_source(
            sources.SqsEventSource(
                self.queue,
                batch_size=MAXIMUM_BATCH_SIZE,
                max_batching_window=Duration.seconds(BATCH_WINDOW_SECONDS),
                report_batch_item_failures=True,
                max_concurrency=MAXIMUM_CONCURRENCY,
            )
        )
        for heal_construct in heal_function.node.find_all():
            if isinstance(heal_construct, lambda_.CfnEventSourceMapping):
                heal_construct.override_logical_id(HEAL_MAPPING_LOGICAL_ID)


def _make_failed_call_pattern(stack: Stack) -> events.EventPattern:
    """Return the pattern of failed SQS calls, except calls by the roles of Mendq.

    The probe's role is not excluded, because Mendq must see the probe's call.

    The pattern matches any errorCode, because AWS does not document how CloudTrail spells SQS's
    codes. `mendq.catalogue.find_symptom_of` selects those that are symptoms.

    Mendq's roles are recognized by the end of the session issuer's ARN: `role/` and the role's
    name. This fits the ARN of an IAM role and one that is spelled `assumed-role/...`. A list of
    both ARNs of each role would make the pattern too long. `anything-but` does not match a call
    without this field, such as a call by an IAM user, so `exists: false` adds these calls.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
    """
    own_role_name_endings = [
        f"role/{role_name(purpose, stack.region)}" for purpose in ROLE_PURPOSES_EXCLUDED_FROM_EVENTS
    ]
    other_caller_patterns = [{"anything-but": {"suffix": own_role_name_endings}}, {"exists": False}]
    return events.EventPattern(
        source=["aws.sqs"],
        detail_type=["AWS API Call via CloudTrail"],
        detail={
            "errorCode": [{"exists": True}],
            "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": other_caller_patterns}}},
        },
    )


def _make_refused_mapping_pattern() -> events.EventPattern:
    """Return the pattern of event source mappings that Lambda did not create or change.

    EventBridge receives these management events only if a trail of the account logs them. An event
    name ends with the date of Lambda's API version. `read_refused_mapping` selects the refusals
    that are about a queue's visibility timeout.
    """
    return events.EventPattern(
        source=["aws.lambda"],
        detail_type=["AWS API Call via CloudTrail"],
        detail={
            "errorCode": [{"exists": True}],
            "eventName": [{"prefix": name} for name in MAPPING_CALLS],
        },
    )


def _make_aws_health_pattern(stack: Stack) -> events.EventPattern:
    """Return the pattern of AWS Health issues and investigations in this region.

    They are about the services in AWS_HEALTH_SERVICES. The pattern tests the region, because two
    regions also receive events about other regions.
    https://docs.aws.amazon.com/health/latest/ug/choosing-a-region.html
    """
    return events.EventPattern(
        source=[AWS_HEALTH_EVENT_SOURCE],
        detail_type=["AWS Health Event"],
        detail={
            "service": [*AWS_HEALTH_SERVICES],
            "eventTypeCategory": ["issue", "investigation"],
            "eventRegion": [stack.region],
        },
    )
