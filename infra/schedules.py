"""When the nightly job, the week, each minute's follow-up, the scan and the probe start.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.lambdas.lambda_function import OwnLambda, ParkingLambda
from infra.roles import may, own_role
from infra.settings.deployment import DeploymentSettings
from mendq.model.names import SCHEDULE

# Scheduler puts the time there that the schedule stands for, whenever it gets through.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"


# A nightly run is a day of UTC, and the next one must not meet the last.
OF_A_JOB = (4 * 3_600, 20)
# The next one comes soon and does what this one would have done.
OF_A_TICK = (5 * 60, 2)


@dataclass(frozen=True)
class Clock:
    """Starts a Lambda; tried for so many seconds, so often, before the event is parked."""

    name: str
    starts: str
    when: str
    does: str
    zone: str = "UTC"
    job: str = ""
    patience: tuple[int, int] = OF_A_TICK


def _clocks(settings: DeploymentSettings) -> tuple[Clock, ...]:
    nightly = f"cron(0 {settings.nightly.hour_utc} * * ? *)"
    weekly = f"cron(0 {settings.report.hour} ? * {settings.report.weekday[:3]} *)"
    probe = f"rate({settings.timing.probe_minutes} minutes)"
    starts, zone = "start_nightly", settings.report.time_zone
    return (
        Clock("Nightly", starts, nightly, "starts the nightly job", "UTC", "nightly", OF_A_JOB),
        Clock("Weekly", starts, weekly, "starts the week", zone, "week", OF_A_JOB),
        Clock("FollowUp", "follow_up", "rate(1 minute)", "looks after open cases"),
        Clock("Scan", "scan", "rate(10 minutes)", "scans the managed queues"),
        Clock("Probe", "probe", probe, "sends a probe"),
    )


class Schedules(Construct):
    """Each sends the time that it stands for to a Lambda, whose DLQ takes what it cannot."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        lambdas: Mapping[str, OwnLambda],
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        self._role = own_role(
            self,
            "Role",
            purpose=SCHEDULE,
            service="scheduler",
            description="Mendq: wakes the Lambdas that work by the clock",
        )
        for clock in _clocks(settings):
            self._add(clock, lambdas[clock.starts])

    def _add(self, clock: Clock, started: OwnLambda) -> None:
        assert isinstance(started, ParkingLambda)  # noqa: S101 - nobody waits for it
        seconds, tries = clock.patience
        job = {"job": clock.job} if clock.job else {}
        self._role.add_to_policy(may(["lambda:InvokeFunction"], started.function.function_arn))
        self._role.add_to_policy(may(["sqs:SendMessage"], started.dlq.queue_arn))
        schedule = scheduler.CfnSchedule(
            self,
            clock.name,
            description=f"Mendq: {clock.does}",
            schedule_expression=clock.when,
            schedule_expression_timezone=clock.zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=started.function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({**job, "time": SCHEDULED_TIME}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=seconds,
                    maximum_retry_attempts=tries,
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=started.dlq.queue_arn
                ),
            ),
        )
        # Scheduler refuses a role that it cannot use yet.
        schedule.node.add_dependency(self._role)
