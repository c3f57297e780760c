"""The rule that takes failed calls from CloudTrail to the intake queue."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.own_queues import DLQ, dlq
from infra.roles import role_arns


def failed_calls(own_role_arns: Sequence[str]) -> events.EventPattern:
    """Any errorCode: how CloudTrail spells SQS's is not documented, so `match` alone judges it.

    `anything-but` does not match where the field is absent; `exists: false` beside it keeps the
    calls of IAM users, which have no sessionIssuer.
    """
    someone_else = [{"anything-but": list(own_role_arns)}, {"exists": False}]
    return events.EventPattern(
        source=["aws.sqs"],
        detail_type=["AWS API Call via CloudTrail"],
        detail={
            "errorCode": [{"exists": True}],
            "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": someone_else}}},
        },
    )


# Five tries of a batch: claims end, throttling passes.
MAX_RECEIVE_COUNT = 5


class Intake(Construct):
    """The rule, the queue it fills, and one DLQ for each of the two.

    `visibility` covers the Lambda that reads:
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """

    def __init__(self, scope: Construct, name: str, visibility: Duration) -> None:
        super().__init__(scope, name)
        self.dlq = dlq(self, DLQ)
        self.undelivered = dlq(self, "Undelivered")
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.hours(4),
            visibility_timeout=visibility,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dlq, max_receive_count=MAX_RECEIVE_COUNT
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
