"""The rule that takes failed calls from CloudTrail to the intake queue."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lambdas.rows import HEAL
from infra.own_queues import DLQ, dlq, own_queue
from mendq.model.names import HEALTH_SERVICES, HEALTH_SOURCE, LEFT_OUT, role_name

# Five tries of a batch: claims end, throttling passes.
MAX_RECEIVE_COUNT = 5
BATCH, MAX_CONCURRENCY = 1_000, 2
WINDOW_SECONDS = 5
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY_SECONDS = 6 * HEAL.seconds + WINDOW_SECONDS
# CDK's own has the stack's id in it, which becomes another one with several environments. The new
# mapping would be made before the old one goes, and Lambda allows one of a queue and a function.
# https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
MAPPING_ID = "HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"


class Intake(Construct):
    """The rule, the queue it fills, and one DLQ for each of the two."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.dlq = dlq(self, DLQ)
        self.undelivered = dlq(self, "Undelivered")
        self.queue = own_queue(
            self,
            "Queue",
            Duration.hours(4),
            visibility_timeout=Duration.seconds(VISIBILITY_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dlq, max_receive_count=MAX_RECEIVE_COUNT
            ),
        )
        about = "What AWS Health tells of services that queues depend on"
        for rule, description, pattern in (
            ("FailedCalls", "Failed SQS calls of anyone but Mendq itself", _failed_calls),
            ("AwsHealth", about, _aws_health),
        ):
            target = targets.SqsQueue(
                self.queue,
                dead_letter_queue=self.undelivered,
                # An older event is stale to heal, so trying on would be of no use.
                max_event_age=Duration.hours(1),
                retry_attempts=185,
            )
            taken = pattern(Stack.of(self))
            events.Rule(self, rule, description=description, event_pattern=taken, targets=[target])

    def age(self, period: Duration, **asked: Any) -> cloudwatch.Metric:
        """The age of the oldest failed call that waits, in seconds."""
        return self.queue.metric_approximate_age_of_oldest_message(
            period=period, statistic="Maximum", **asked
        )

    def feeds(self, heal: lambda_.Function) -> None:
        """Large batches, because a storm of failed calls collapses to one look per queue.

        Records that heal reports as failed come again, the others are done. Two runs at a time at
        most: enough to go on while one is slow. No concurrency is reserved, because that would
        take it from an account's other functions.
        """
        heal.add_event_source(
            sources.SqsEventSource(
                self.queue,
                batch_size=BATCH,
                max_batching_window=Duration.seconds(WINDOW_SECONDS),
                report_batch_item_failures=True,
                max_concurrency=MAX_CONCURRENCY,
            )
        )
        for each in heal.node.find_all():
            if isinstance(each, lambda_.CfnEventSourceMapping):
                each.override_logical_id(MAPPING_ID)


def _failed_calls(stack: Stack) -> events.EventPattern:
    """Any errorCode: how CloudTrail spells SQS's is not documented, so `match` alone judges it.

    The end of a role's ARN is the same whether a session's issuer is spelled as IAM does or as an
    assumed role; both in full are longer than a pattern may be. `anything-but` does not match where
    the field is absent; `exists: false` beside it keeps the calls of IAM users, which have no
    sessionIssuer.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
    """
    ours = [f"role/{role_name(each, stack.region)}" for each in LEFT_OUT]
    someone_else = [{"anything-but": {"suffix": ours}}, {"exists": False}]
    return events.EventPattern(
        source=["aws.sqs"],
        detail_type=["AWS API Call via CloudTrail"],
        detail={
            "errorCode": [{"exists": True}],
            "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": someone_else}}},
        },
    )


def _aws_health(stack: Stack) -> events.EventPattern:
    """Of this region alone: two regions are also told of what happens in others.

    https://docs.aws.amazon.com/health/latest/ug/choosing-a-region.html
    """
    return events.EventPattern(
        source=[HEALTH_SOURCE],
        detail_type=["AWS Health Event"],
        detail={
            "service": [*HEALTH_SERVICES],
            "eventTypeCategory": ["issue", "investigation"],
            "eventRegion": [stack.region],
        },
    )
