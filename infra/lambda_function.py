"""How every Lambda of Mendq is made: its own role and log, no concurrency reserved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from constructs import Construct

from functions.settings import LambdaSettings
from infra.lambda_environment import hand_over
from infra.own_queues import DEAD_LETTERS, dead_letter_queue, owner_of
from infra.roles import allow, own_role

# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
MOST_TRIES = 185


@dataclass(frozen=True)
class Handler:
    """What a Lambda runs, `functions.handlers.<name>.handler`, and what it gets for it."""

    name: str
    description: str
    timeout: Duration
    memory_mb: int


class OwnLambda(Construct):
    """A Lambda under a role of its own, which may write its log and nothing else yet."""

    def __init__(
        self, scope: Construct, name: str, *, handler: Handler, code: lambda_.Code, purpose: str
    ) -> None:
        super().__init__(scope, name)
        self.role = own_role(
            self, "Role", purpose=purpose, service="lambda", description=handler.description
        )
        self.function = lambda_function(self, handler, code=code, role=self.role)

    def may(self, actions: Iterable[str], *resources: str) -> None:
        allow(self.role, actions, *resources)

    def knows(self, settings: LambdaSettings) -> None:
        """Raises SettingsRefused where they are more than its environment holds."""
        hand_over(self.function, settings)


class ParkingLambda(OwnLambda):
    """One that is invoked without anybody waiting: what it gives up is kept for a person."""

    def __init__(  # noqa: PLR0913 - what tells one Lambda from another
        self,
        scope: Construct,
        name: str,
        *,
        handler: Handler,
        code: lambda_.Code,
        purpose: str,
        patience: Duration,
    ) -> None:
        super().__init__(scope, name, handler=handler, code=code, purpose=purpose)
        self.dead_letters = dead_letter_queue(self, DEAD_LETTERS)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.dead_letters),
            max_event_age=patience,
            retry_attempts=2,
        )

    def starts_with(
        self, name: str, pattern: events.EventPattern, *, description: str, patience: Duration
    ) -> None:
        """Events of the default bus that invoke it; those that cannot are parked beside its own."""
        events.Rule(
            self,
            name,
            description=description,
            event_pattern=pattern,
            targets=[
                targets.LambdaFunction(
                    self.function,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=patience,
                    retry_attempts=MOST_TRIES,
                )
            ],
        )


def every_function(scope: Construct) -> dict[str, lambda_.Function]:
    """Those that Mendq has by now, by whose they are, such as `start-night`."""
    return {
        owner_of(each): each for each in scope.node.find_all() if isinstance(each, lambda_.Function)
    }


def lambda_function(
    scope: Construct, handler: Handler, *, code: lambda_.Code, role: iam.Role
) -> lambda_.Function:
    """A Lambda for `handler` that logs JSON, kept for 90 days."""
    log_group = logs.LogGroup(
        scope,
        "Log",
        retention=logs.RetentionDays.THREE_MONTHS,
        removal_policy=RemovalPolicy.DESTROY,
    )
    log_group.grant_write(role)
    return lambda_.Function(
        scope,
        "Function",
        description=handler.description,
        runtime=lambda_.Runtime.PYTHON_3_13,
        architecture=lambda_.Architecture.ARM_64,
        handler=f"functions.handlers.{handler.name}.handler",
        code=code,
        role=role,
        timeout=handler.timeout,
        memory_size=handler.memory_mb,
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
        system_log_level_v2=lambda_.SystemLogLevel.INFO,
    )
