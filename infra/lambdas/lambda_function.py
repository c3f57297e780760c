"""The construct of a Lambda, with its own role, log group and environment variables."""

from __future__ import annotations

import re

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from constructs import Construct
from msgspec import Struct

from infra.own_queues import DLQ_CONSTRUCT_ID, make_dlq
from infra.roles import make_role
from infra.settings.reading import Mistake, SettingsRefused
from mendq.model.settings import LambdaSettings, environment_variable_of

# The most bytes of all environment variables of a Lambda.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAXIMUM_ENVIRONMENT_BYTES = 4_096
# A part of a text that only CloudFormation can fill in. Its length is estimated: 12 digits for the
# account id, and the longest possible name or ARN for everything else.
_CDK_TOKEN_PATTERN = re.compile(r"\$\{Token\[(AWS\.AccountId)?[^\]]+\]\}")
_LONGEST_NAME_LENGTH = 100
_ACCOUNT_ID_DIGITS = 12
# Retries of EventBridge before an event goes to the DLQ: its maximum.
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
MAXIMUM_EVENT_RETRIES = 185

# The names of settings without a fixed length, by the environment variable that holds the setting.
_LIST_SETTING_BY_VARIABLE = {
    environment_variable_of("consent"): "queues",
    environment_variable_of("freeze_calendars"): "freezeCalendars",
    environment_variable_of("team_topic_arns"): "notifications.teams",
    environment_variable_of("recipients"): "report.recipients",
    environment_variable_of("organization_accounts"): "organization.accounts",
    environment_variable_of("mutes"): "mutes",
}
_FEWER_NAMES_REMEDY = "name fewer; for queues, say the start of several names and a *, or tag them"
_REMEDY_BY_LIST_SETTING = {
    "mutes": (
        "keep fewer: give shorter reasons, mute several queues with the start of their names and a "
        "*, remove mutes that have ended, or tag a queue mendq=off"
    )
}


def set_environment(function: lambda_.Function, settings: LambdaSettings) -> None:
    """Set a Lambda's environment variables from its settings.

    Raises SettingsRefused if the variables are longer than Lambda allows. The error names the list
    in the settings that takes the most space.
    """
    value_by_variable = settings.to_environment()
    length_by_variable = {
        name: len(name) + _estimate_longest_length(value)
        for name, value in value_by_variable.items()
    }
    if sum(length_by_variable.values()) > MAXIMUM_ENVIRONMENT_BYTES:
        longest_variable = max(
            _LIST_SETTING_BY_VARIABLE, key=lambda name: length_by_variable.get(name, 0)
        )
        setting = _LIST_SETTING_BY_VARIABLE[longest_variable]
        contents = "text" if setting == "mutes" else "names"
        fault = f"more {contents} than the 4 KB of a Lambda's environment hold"
        remedy = _REMEDY_BY_LIST_SETTING.get(setting, _FEWER_NAMES_REMEDY)
        raise SettingsRefused([Mistake(setting, fault, remedy)])
    for name, value in value_by_variable.items():
        function.add_environment(name, value)


def _estimate_longest_length(value: str) -> int:
    """Return the most bytes of a text after CloudFormation has filled in its values."""
    estimated_length = len(_CDK_TOKEN_PATTERN.sub("", value).encode())
    for cdk_token in _CDK_TOKEN_PATTERN.finditer(value):
        is_account_id_token = cdk_token[1] is not None
        estimated_length += _ACCOUNT_ID_DIGITS if is_account_id_token else _LONGEST_NAME_LENGTH
    return estimated_length


class Handler(Struct, frozen=True):
    """The code that a Lambda runs, with its timeout and memory.

    The code is `functions.<module>.handler`. If `module` is empty, the module has the Lambda's
    name.
    """

    name: str
    description: str
    timeout_seconds: int
    memory_mb: int
    module: str = ""

    @property
    def construct_id(self) -> str:
        """The id of the Lambda's construct, such as StartNightly."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def purpose(self) -> str:
        """The part of the role's name that identifies this Lambda, such as start-nightly."""
        return self.name.replace("_", "-")


class OwnLambda(Construct):
    """A Lambda with a role of its own. At first the role may only write the Lambda's log.

    The log is JSON and kept for 90 days.

    Attributes:
        role: the Lambda's role.
        function: the function itself.
    """

    def __init__(self, scope: Construct, handler: Handler, code: lambda_.Code) -> None:
        super().__init__(scope, handler.construct_id)
        self.role = make_role(
            self._make_role_scope(),
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
            handler=f"functions.{handler.module or handler.name}.handler",
            code=code,
            role=self.role,
            timeout=Duration.seconds(handler.timeout_seconds),
            memory_size=handler.memory_mb,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.INFO,
        )

    def _make_role_scope(self) -> Construct:
        """Return the construct that holds the role: this Lambda, or a new construct for heal.

        Heal's role stays where the stacks that are deployed already have it. If its construct
        moved, CloudFormation would create a second role of the same name before it deletes the
        first, and fail.
        """
        if self.node.id == "Heal":
            return Construct(Stack.of(self), "HealRole")
        return self


class AsyncLambda(OwnLambda):
    """A Lambda that is invoked asynchronously. Events that it could not handle go to its DLQ.

    Attributes:
        dlq: the DLQ, which a person must empty.
    """

    def __init__(
        self, scope: Construct, handler: Handler, code: lambda_.Code, retry_time: Duration
    ) -> None:
        super().__init__(scope, handler, code)
        self.dlq = make_dlq(self, DLQ_CONSTRUCT_ID)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.dlq),
            max_event_age=retry_time,
            retry_attempts=2,
        )

    def invoke_on_event(
        self, name: str, description: str, retry_time: Duration, pattern: events.EventPattern
    ) -> None:
        """Add a rule of the default event bus that invokes the Lambda.

        Args:
            name: the id of the rule's construct.
            description: the rule's description.
            retry_time: how long EventBridge retries before the event goes to the Lambda's DLQ.
            pattern: the events that invoke the Lambda.
        """
        target = targets.LambdaFunction(
            self.function,
            dead_letter_queue=self.dlq,
            max_event_age=retry_time,
            retry_attempts=MAXIMUM_EVENT_RETRIES,
        )
        events.Rule(self, name, description=description, event_pattern=pattern, targets=[target])
