"""A Lambda of Mendq: its own role, log group and environment."""

from __future__ import annotations

import re
from typing import Any

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from constructs import Construct
from msgspec import Struct

from infra.own_queues import DLQ, dlq
from infra.roles import own_role
from infra.settings.reading import Mistake, SettingsRefused
from mendq.model.settings import LambdaSettings, variable_of

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT_CHARACTERS = 4_096
# What is known at deployment only, at its longest: a name or an ARN that CloudFormation makes.
_TOKEN = re.compile(r"\$\{Token\[(AWS\.AccountId)?[^\]]+\]\}")
_LONGEST_NAME, _ACCOUNT_DIGITS = 100, 12

# The settings that grow with what a user names, as they are spelled.
_GROWING = {
    variable_of("consent"): "queues",
    variable_of("freeze_calendars"): "freezeCalendars",
    variable_of("team_topic_arns"): "notifications.teams",
    variable_of("recipients"): "report.recipients",
    variable_of("organization_accounts"): "organization.accounts",
}


def deliver(function: lambda_.Function, settings: LambdaSettings) -> None:
    """Set a Lambda's environment: its settings, under the names that it reads them by.

    Raises SettingsRefused where they are more than it holds.
    """
    variables = settings.to_environment()
    sizes = {
        name: len(name) + len(_TOKEN.sub(_as_long_as_it_may_be, value))
        for name, value in variables.items()
    }
    if sum(sizes.values()) > ENVIRONMENT_CHARACTERS:
        path = _GROWING[max(_GROWING, key=lambda name: sizes.get(name, 0))]
        remedy = "name fewer; for queues, say the start of several names and a *, or tag them"
        fault = "more names than the 4 KB of a Lambda's environment hold"
        raise SettingsRefused([Mistake(path, fault, remedy)])
    for name, value in variables.items():
        function.add_environment(name, value)


def _as_long_as_it_may_be(token: re.Match[str]) -> str:
    return "x" * (_ACCOUNT_DIGITS if token[1] else _LONGEST_NAME)


class Handler(Struct, frozen=True):
    """What a Lambda runs, `functions.<name>.handler`, and what it gets for it."""

    name: str
    description: str
    seconds: int
    memory_mb: int

    @property
    def construct(self) -> str:
        """Its name in the stack, such as StartNightly."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def purpose(self) -> str:
        """What its role is called after, such as start-nightly."""
        return self.name.replace("_", "-")


class OwnLambda(Construct):
    """A Lambda under a role of its own, which may write its log and nothing else yet.

    It logs JSON, kept for 90 days.
    """

    def __init__(self, scope: Construct, handler: Handler, code: lambda_.Code) -> None:
        super().__init__(scope, handler.construct)
        self.role = own_role(
            self._place_of_role(),
            "Role",
            purpose=handler.purpose,
            service="lambda",
            description=handler.description,
        )
        log_group = logs.LogGroup(
            self,
            "Log",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
        )
        log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            description=handler.description,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"functions.{handler.name}.handler",
            code=code,
            role=self.role,
            timeout=Duration.seconds(handler.seconds),
            memory_size=handler.memory_mb,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.INFO,
        )

    def _place_of_role(self) -> Construct:
        """Heal's stands beside it; elsewhere a deployment would want its name twice."""
        name = self.node.id
        return Construct(Stack.of(self), "HealRole") if name == "Heal" else self


# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
MOST_TRIES = 185


class ParkingLambda(OwnLambda):
    """One that is invoked without anybody waiting: what it gives up is kept for a person."""

    def __init__(
        self, scope: Construct, handler: Handler, code: lambda_.Code, patience: Duration
    ) -> None:
        super().__init__(scope, handler, code)
        self.dlq = dlq(self, DLQ)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.dlq),
            max_event_age=patience,
            retry_attempts=2,
        )

    def starts_with(self, name: str, description: str, patience: Duration, **pattern: Any) -> None:
        """Add a rule of the default bus: events that cannot invoke it are parked beside its own."""
        target = targets.LambdaFunction(
            self.function,
            dead_letter_queue=self.dlq,
            max_event_age=patience,
            retry_attempts=MOST_TRIES,
        )
        fits = events.EventPattern(**pattern)
        events.Rule(self, name, description=description, event_pattern=fits, targets=[target])
