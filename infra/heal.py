"""The heal Lambda and how the intake queue feeds it."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.settings import HealSettings
from infra.lambda_environment import hand_over
from infra.lambda_function import Handler, lambda_function

TIMEOUT = Duration.seconds(60)
BATCHING_WINDOW = Duration.seconds(5)
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY = Duration.seconds(6 * TIMEOUT.to_seconds() + BATCHING_WINDOW.to_seconds())
# CDK's own has the stack's id in it, which becomes another one with several environments. The new
# mapping would be made before the old one goes, and Lambda allows one of a queue and a function.
# https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
MAPPING_ID = "HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"
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
        """Raises SettingsRefused where they are more than its environment holds."""
        hand_over(self.function, settings)

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
        self._mapping.override_logical_id(MAPPING_ID)

    @property
    def _mapping(self) -> lambda_.CfnEventSourceMapping:
        (found,) = (
            each
            for each in self.function.node.find_all()
            if isinstance(each, lambda_.CfnEventSourceMapping)
        )
        return found
