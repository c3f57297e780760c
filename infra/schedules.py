"""EventBridge schedules that start the Lambdas start_nightly, follow_up, scan and probe.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct
from msgspec import Struct

from infra.lambdas.lambda_function import AsyncLambda, OwnLambda
from infra.roles import allow, make_role
from infra.settings.deployment import DeploymentSettings
from mendq.model.names import SCHEDULE_ROLE_PURPOSE

# Scheduler replaces this by the time for which the invocation was planned, also in a retry.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME_PLACEHOLDER = "<aws.scheduler.scheduled-time>"


class RetryPolicy(Struct, frozen=True):
    """How long, and how many times, Scheduler retries an invocation before it goes to the DLQ."""

    maximum_event_age: Duration
    maximum_attempts: int


# A nightly run covers one day of UTC, so its start is worth many retries. They end long before the
# next run starts.
JOB_RETRY_POLICY = RetryPolicy(Duration.hours(4), 20)
# The next invocation comes within minutes and does the same work.
FREQUENT_SCHEDULE_RETRY_POLICY = RetryPolicy(Duration.minutes(5), 2)


class Schedule(Struct, frozen=True):
    """A schedule that invokes a Lambda again and again.

    Attributes:
        name: the id of the schedule's construct.
        handler: name of the Lambda's handler.
        expression: when the Lambda is invoked, in Scheduler's syntax.
        action: description of the Lambda's work, for people.
        time_zone: the time zone of `expression`.
        job: the job that the Lambda starts, `nightly` or `week`; empty if it starts none.
    """

    name: str
    handler: str
    expression: str
    action: str
    time_zone: str = "UTC"
    job: str = ""

    @property
    def event_json(self) -> str:
        """The event that the Lambda receives, as JSON."""
        event = {"time": SCHEDULED_TIME_PLACEHOLDER}
        if self.job:
            event = {"job": self.job, "time_zone": self.time_zone, **event}
        return json.dumps(event)

    @property
    def retry_policy(self) -> RetryPolicy:
        """How Scheduler retries an invocation that failed."""
        return JOB_RETRY_POLICY if self.job else FREQUENT_SCHEDULE_RETRY_POLICY


def _list_schedules(settings: DeploymentSettings) -> Iterator[Schedule]:
    """Yield every schedule that the settings need."""
    scan_schedule = Schedule("Scan", "scan", "rate(10 minutes)", "scans the managed queues")
    if settings.scan_only:
        yield scan_schedule
        return
    if settings.nightly.enabled:
        report_settings = settings.report
        yield Schedule(
            "Nightly",
            "start_nightly",
            f"cron(0 {settings.nightly.hour_utc} * * ? *)",
            "starts the nightly job",
            job="nightly",
        )
        yield Schedule(
            "Weekly",
            "start_nightly",
            f"cron(0 {report_settings.hour} ? * {report_settings.weekday[:3]} *)",
            "starts the week",
            report_settings.time_zone,
            "week",
        )
    yield Schedule("FollowUp", "follow_up", "rate(1 minute)", "looks after open cases")
    yield scan_schedule
    probe_rate = f"rate({settings.timing.probe_minutes} minutes)"
    yield Schedule("Probe", "probe", probe_rate, "sends a probe")


def add_schedules(
    scope: Construct, lambda_by_handler: Mapping[str, OwnLambda], settings: DeploymentSettings
) -> None:
    """Add all schedules. An event that Scheduler cannot deliver goes to the DLQ of its Lambda.

    In a scan-only stack there is no DLQ: the next event comes ten minutes later.

    Args:
        scope: the construct that holds the schedules.
        lambda_by_handler: the Lambdas by the names of their handlers.
        settings: the deployment's settings.
    """
    schedules_construct = Construct(scope, "Schedules")
    role = make_role(
        schedules_construct,
        "Role",
        purpose=SCHEDULE_ROLE_PURPOSE,
        service="scheduler",
        description="Mendq: wakes the Lambdas that work by the clock",
    )
    for schedule in _list_schedules(settings):
        _add_schedule(schedules_construct, role, schedule, lambda_by_handler[schedule.handler])


def _add_schedule(
    scope: Construct, role: iam.Role, schedule: Schedule, invoked_lambda: OwnLambda
) -> None:
    """Add one schedule.

    Allow `role`, which all schedules share, to invoke the Lambda, and to send to the Lambda's DLQ
    if it has one.
    """
    function_arn = invoked_lambda.function.function_arn
    role.add_to_policy(allow(["lambda:InvokeFunction"], function_arn))
    dead_letter_config = None
    if isinstance(invoked_lambda, AsyncLambda):
        dlq_arn = invoked_lambda.dlq.queue_arn
        role.add_to_policy(allow(["sqs:SendMessage"], dlq_arn))
        dead_letter_config = {"arn": dlq_arn}
    cfn_schedule = scheduler.CfnSchedule(
        scope,
        schedule.name,
        description=f"Mendq: {schedule.action}",
        schedule_expression=schedule.expression,
        schedule_expression_timezone=schedule.time_zone,
        flexible_time_window={"mode": "OFF"},
        target=scheduler.CfnSchedule.TargetProperty(
            arn=function_arn,
            role_arn=role.role_arn,
            input=schedule.event_json,
            retry_policy={
                "maximumEventAgeInSeconds": schedule.retry_policy.maximum_event_age.to_seconds(),
                "maximumRetryAttempts": schedule.retry_policy.maximum_attempts,
            },
            dead_letter_config=dead_letter_config,
        ),
    )
    # Scheduler refuses a role that does not have its permissions yet.
    cfn_schedule.node.add_dependency(role)
