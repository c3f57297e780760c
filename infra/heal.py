"""The heal Lambda and how the intake queue feeds it."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.settings import HealSettings
from infra.lambda_function import Handler, hand_over, lambda_function
from infra.settings import Mistake, SettingsRefused

TIMEOUT = Duration.seconds(60)
BATCHING_WINDOW = Duration.seconds(5)
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY = Duration.seconds(6 * TIMEOUT.to_seconds() + BATCHING_WINDOW.to_seconds())

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT_CHARACTERS = 4_096
# What is known at deployment only, at its longest; a name or ARN that CloudFormation makes of ours
# is shorter than the last.
_LONGEST = {"AWS::Partition": len("aws-us-gov"), "AWS::AccountId": 12}
_LONGEST_NAME = 100
HANDLER = Handler(
    "heal", "Mendq: mends the queue that a failed SQS call names", timeout=TIMEOUT, memory_mb=512
)


class Heal(Construct):
    """Reads large batches, because a storm of failed calls collapses to one look per queue.

    Two at a time at most: enough to go on while one is slow. No concurrency is reserved, because
    that would take it from an account's other functions.
    """

    def __init__(self, scope: Construct, name: str, *, code: lambda_.Code, role: iam.Role) -> None:
        super().__init__(scope, name)
        self.role = role
        self.function = lambda_function(self, HANDLER, code=code, role=role)

    def knows(self, settings: HealSettings) -> None:
        """Hand it its settings, under the names that it reads them by.

        Raises SettingsRefused where they are more than a Lambda's environment holds.
        """
        variables = settings.to_environment()
        deployed = Stack.of(self).resolve(variables)
        if sum(len(name) + _longest(deployed[name]) for name in deployed) > ENVIRONMENT_CHARACTERS:
            fault = "more names than the 4 KB of a Lambda's environment hold"
            cure = "say the start of several names and a *, or tag the queues instead"
            raise SettingsRefused([Mistake("queues", fault, cure)])
        hand_over(self.function, variables)

    def reads(self, intake: sqs.Queue) -> None:
        """Feed it; records that it reports as failed come again, the others are done."""
        self.function.add_event_source(
            sources.SqsEventSource(
                intake,
                batch_size=1_000,
                max_batching_window=BATCHING_WINDOW,
                report_batch_item_failures=True,
                max_concurrency=2,
            )
        )


def _longest(resolved: Any) -> int:
    """How many characters a resolved value may have once it is deployed."""
    if isinstance(resolved, str):
        return len(resolved)
    ((function, of),) = resolved.items()
    if function == "Fn::Join":
        return sum(_longest(each) for each in of[1])
    return _LONGEST.get(of, _LONGEST_NAME) if function == "Ref" else _LONGEST_NAME
