"""From the default bus to the heal Lambda: failed calls wait in the intake queue."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.event_pattern import failed_calls
from infra.own_queues import DEAD_LETTERS, dead_letter_queue
from infra.roles import role_arns

# Five tries of a batch: claims end, throttling passes.
MAX_RECEIVE_COUNT = 5


class Intake(Construct):
    """The rule, the queue it fills, and one dead-letter queue for each of the two.

    `visibility` covers the Lambda that reads:
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """

    def __init__(self, scope: Construct, name: str, visibility: Duration) -> None:
        super().__init__(scope, name)
        self.dead_letters = dead_letter_queue(self, DEAD_LETTERS)
        self.undelivered = dead_letter_queue(self, "Undelivered")
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.hours(4),
            visibility_timeout=visibility,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=MAX_RECEIVE_COUNT
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        events.Rule(
            self,
            "FailedCalls",
            description="Failed SQS calls of anyone but Mendq itself",
            event_pattern=failed_calls(role_arns(Stack.of(self))),
            targets=[
                targets.SqsQueue(
                    self.queue,
                    dead_letter_queue=self.undelivered,
                    # An older event is stale to heal, so trying on would be of no use.
                    max_event_age=Duration.hours(1),
                    retry_attempts=185,
                )
            ],
        )
