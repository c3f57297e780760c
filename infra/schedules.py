"""When the night and the week start.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
"""

from __future__ import annotations

import json

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.roles import SCHEDULE, own_role
from infra.settings import NightSettings, ReportSettings

# Scheduler puts the time there that the schedule stands for, whenever it gets through.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# Four hours in at most twenty tries: the next night must not meet the last one's.
PATIENCE_SECONDS = 4 * 3_600
TRIES = 20


class Schedules(Construct):
    """Each sends which job, and for which time, to the Lambda that starts it."""

    def __init__(
        self, scope: Construct, name: str, *, starts: lambda_.IFunction, dead_letters: sqs.IQueue
    ) -> None:
        super().__init__(scope, name)
        self._starts = starts
        self._dead_letters = dead_letters
        self._role = own_role(
            self,
            "Role",
            purpose=SCHEDULE,
            service="scheduler",
            description="Mendq: wakes the Lambda that starts the nightly and the weekly job",
        )
        for action, resource in (
            ("lambda:InvokeFunction", starts.function_arn),
            ("sqs:SendMessage", dead_letters.queue_arn),
        ):
            self._role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[resource]))

    def nightly(self, settings: NightSettings) -> None:
        """Every day, in UTC, because a night is a day of UTC."""
        self._every("Nightly", "night", f"cron(0 {settings.hour_utc} * * ? *)", "UTC")

    def weekly(self, settings: ReportSettings) -> None:
        """Once a week, where the readers are."""
        when = f"cron(0 {settings.hour} ? * {settings.weekday[:3]} *)"
        self._every("Weekly", "week", when, settings.time_zone)

    def _every(self, name: str, job: str, when: str, time_zone: str) -> None:
        schedule = scheduler.CfnSchedule(
            self,
            name,
            description=f"Mendq: starts the {job}",
            schedule_expression=when,
            schedule_expression_timezone=time_zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._starts.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({"job": job, "time": SCHEDULED_TIME}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=PATIENCE_SECONDS, maximum_retry_attempts=TRIES
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self._dead_letters.queue_arn
                ),
            ),
        )
        # Scheduler refuses a role that it cannot use yet.
        schedule.node.add_dependency(self._role)
