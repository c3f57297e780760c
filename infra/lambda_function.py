"""How every Lambda of Mendq is made: its own role and log, no concurrency reserved."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct


@dataclass(frozen=True)
class Handler:
    """What a Lambda runs, `functions.handlers.<name>.handler`, and what it gets for it."""

    name: str
    description: str
    timeout: Duration
    memory_mb: int


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


def hand_over(function: lambda_.Function, variables: dict[str, str]) -> None:
    """Set a Lambda's environment: what its settings class has made of its settings."""
    for variable, value in variables.items():
        function.add_environment(variable, value)
