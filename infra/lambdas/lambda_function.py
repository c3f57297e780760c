"""A Lambda of Mendq: its own role, log group and environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.own_queues import DLQ, dlq, owner_of
from infra.roles import allow, own_role
from infra.settings.reading import Mistake, SettingsRefused
from mendq.model.settings import LambdaSettings, variable_of

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT_CHARACTERS = 4_096
# What is known at deployment only, at its longest; a name or ARN that CloudFormation makes of ours
# is shorter than the last.
_LONGEST = {"AWS::Partition": len("aws-us-gov"), "AWS::AccountId": 12}
_LONGEST_NAME = 100

# The settings that grow with what a user names: as they are spelled, and what to do about them.
_GROWING = {
    variable_of("queues"): (
        "queues",
        "say the start of several names and a *, or tag the queues instead",
    ),
    variable_of("freeze_calendars"): ("freezeCalendars", "name fewer calendars"),
    variable_of("recipients"): ("report.recipients", "name a list's address instead of many"),
}


def deliver(function: lambda_.Function, settings: LambdaSettings) -> None:
    """Set a Lambda's environment: its settings, under the names that it reads them by.

    Raises SettingsRefused where they are more than it holds.
    """
    variables = settings.to_environment()
    sizes = {
        name: len(name) + _longest(value)
        for name, value in Stack.of(function).resolve(variables).items()
    }
    if sum(sizes.values()) > ENVIRONMENT_CHARACTERS:
        raise SettingsRefused([_too_long(sizes)])
    for name, value in variables.items():
        function.add_environment(name, value)


def _too_long(sizes: Mapping[str, int]) -> Mistake:
    """Of the settings that grow, the one that takes most of it."""
    path, remedy = _GROWING[max(_GROWING, key=lambda name: sizes.get(name, 0))]
    return Mistake(path, "more names than the 4 KB of a Lambda's environment hold", remedy)


def _longest(resolved: Any) -> int:
    """How many characters a resolved value may have once it is deployed."""
    if isinstance(resolved, str):
        return len(resolved)
    ((function, of),) = resolved.items()
    if function == "Fn::Join":
        return sum(_longest(each) for each in of[1])
    return _LONGEST.get(of, _LONGEST_NAME) if function == "Ref" else _LONGEST_NAME


# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
MOST_TRIES = 185


@dataclass(frozen=True)
class Handler:
    """What a Lambda runs, `functions.<name>.handler`, and what it gets for it."""

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
        deliver(self.function, settings)


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
        self.dlq = dlq(self, DLQ)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.dlq),
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
                    dead_letter_queue=self.dlq,
                    max_event_age=patience,
                    retry_attempts=MOST_TRIES,
                )
            ],
        )


def every_function(scope: Construct) -> dict[str, lambda_.Function]:
    """Those that Mendq has by now, by whose they are, such as `start-nightly`."""
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
        handler=f"functions.{handler.name}.handler",
        code=code,
        role=role,
        timeout=handler.timeout,
        memory_size=handler.memory_mb,
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
        system_log_level_v2=lambda_.SystemLogLevel.INFO,
    )
