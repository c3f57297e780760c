"""When the nightly job, the week, each minute's follow-up, the scan and the probe start.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.lambdas.lambda_function import ParkingLambda
from infra.roles import allow, own_role
from infra.settings.deployment import NightlySettings, ReportSettings
from mendq.model.names import SCHEDULE

# Scheduler puts the time there that the schedule stands for, whenever it gets through.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"


@dataclass(frozen=True)
class Patience:
    """How long and how often Scheduler tries to reach a Lambda before it parks the event."""

    seconds: int
    tries: int


# The next nightly run must not meet the last one.
OF_A_JOB = Patience(4 * 3_600, 20)
# The next one comes soon and does what this one would have done.
OF_A_TICK = Patience(5 * 60, 2)


class Schedules(Construct):
    """Each sends the time that it stands for to a Lambda, whose DLQ takes what it cannot."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self._role = own_role(
            self,
            "Role",
            purpose=SCHEDULE,
            service="scheduler",
            description="Mendq: wakes the Lambdas that work by the clock",
        )
        self._known: set[str] = set()

    def nightly(self, starts: ParkingLambda, settings: NightlySettings) -> None:
        """Every day, in UTC, because a nightly run is a day of UTC."""
        when = f"cron(0 {settings.hour_utc} * * ? *)"
        self._add("Nightly", starts, when, OF_A_JOB, does="starts the nightly job", job="nightly")

    def weekly(self, starts: ParkingLambda, settings: ReportSettings) -> None:
        """Once a week, where the readers are."""
        when = f"cron(0 {settings.hour} ? * {settings.weekday[:3]} *)"
        zone = settings.time_zone
        self._add("Weekly", starts, when, OF_A_JOB, does="starts the week", zone=zone, job="week")

    def each_minute(self, follow_up: ParkingLambda) -> None:
        self._add("FollowUp", follow_up, _rate(1), OF_A_TICK, does="looks after open cases")

    def every_ten_minutes(self, scan: ParkingLambda) -> None:
        self._add("Scan", scan, _rate(10), OF_A_TICK, does="scans the managed queues")

    def probe(self, probe: ParkingLambda, minutes: int) -> None:
        self._add("Probe", probe, _rate(minutes), OF_A_TICK, does="sends a probe")

    def _add(  # noqa: PLR0913 - what tells one schedule from another
        self,
        name: str,
        starts: ParkingLambda,
        when: str,
        patience: Patience,
        *,
        does: str,
        zone: str = "UTC",
        **sent: str,
    ) -> None:
        self._let_start(starts)
        schedule = scheduler.CfnSchedule(
            self,
            name,
            description=f"Mendq: {does}",
            schedule_expression=when,
            schedule_expression_timezone=zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=starts.function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({**sent, "time": SCHEDULED_TIME}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=patience.seconds,
                    maximum_retry_attempts=patience.tries,
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=starts.dlq.queue_arn
                ),
            ),
        )
        # Scheduler refuses a role that it cannot use yet.
        schedule.node.add_dependency(self._role)

    def _let_start(self, starts: ParkingLambda) -> None:
        if starts.node.path not in self._known:
            self._known.add(starts.node.path)
            allow(self._role, ["lambda:InvokeFunction"], starts.function.function_arn)
            allow(self._role, ["sqs:SendMessage"], starts.dlq.queue_arn)


def _rate(minutes: int) -> str:
    return f"rate({minutes} minute{'s' * (minutes > 1)})"
