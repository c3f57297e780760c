"""When the nightly job, the week, each minute's follow-up, the scan and the probe start.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct
from msgspec import Struct

from infra.lambdas.lambda_function import OwnLambda, ParkingLambda
from infra.roles import may, own_role
from infra.settings.deployment import DeploymentSettings
from mendq.model.names import SCHEDULE

# Scheduler puts the time there that the schedule stands for, whenever it gets through.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# How many seconds and how often it is tried before the event is parked. A nightly run is a day of
# UTC, and the next one must not meet the last; after a tick the next comes soon and does the same.
OF_A_JOB, OF_A_TICK = (4 * 3_600, 20), (5 * 60, 2)


class Clock(Struct, frozen=True):
    """Starts a Lambda; a job is one that it starts in turn."""

    name: str
    starts: str
    when: str
    does: str
    zone: str = "UTC"
    job: str = ""


def _clocks(settings: DeploymentSettings) -> tuple[Clock, ...]:
    nightly = f"cron(0 {settings.nightly.hour_utc} * * ? *)"
    weekly = f"cron(0 {settings.report.hour} ? * {settings.report.weekday[:3]} *)"
    probe = f"rate({settings.timing.probe_minutes} minutes)"
    starts, zone = "start_nightly", settings.report.time_zone
    jobs = (
        Clock("Nightly", starts, nightly, "starts the nightly job", job="nightly"),
        Clock("Weekly", starts, weekly, "starts the week", zone, "week"),
    )
    return (
        *(jobs if settings.nightly.enabled else ()),
        Clock("FollowUp", "follow_up", "rate(1 minute)", "looks after open cases"),
        Clock("Scan", "scan", "rate(10 minutes)", "scans the managed queues"),
        Clock("Probe", "probe", probe, "sends a probe"),
    )


def schedule(
    scope: Construct, lambdas: Mapping[str, OwnLambda], settings: DeploymentSettings
) -> None:
    """Each sends the time that it stands for to a Lambda, whose DLQ takes what it cannot."""
    place = Construct(scope, "Schedules")
    role = own_role(
        place,
        "Role",
        purpose=SCHEDULE,
        service="scheduler",
        description="Mendq: wakes the Lambdas that work by the clock",
    )
    for clock in _clocks(settings):
        started = lambdas[clock.starts]
        assert isinstance(started, ParkingLambda)  # noqa: S101 - nobody waits for it
        _add(place, role, clock, started)


def _add(place: Construct, role: iam.Role, clock: Clock, started: ParkingLambda) -> None:
    target, parked = started.function.function_arn, started.dlq.queue_arn
    role.add_to_policy(may(["lambda:InvokeFunction"], target))
    role.add_to_policy(may(["sqs:SendMessage"], parked))
    job = {"job": clock.job, "time_zone": clock.zone} if clock.job else {}
    seconds, tries = OF_A_JOB if job else OF_A_TICK
    added = scheduler.CfnSchedule(
        place,
        clock.name,
        description=f"Mendq: {clock.does}",
        schedule_expression=clock.when,
        schedule_expression_timezone=clock.zone,
        flexible_time_window={"mode": "OFF"},
        target=scheduler.CfnSchedule.TargetProperty(
            arn=target,
            role_arn=role.role_arn,
            input=json.dumps({**job, "time": SCHEDULED_TIME}),
            retry_policy={"maximumEventAgeInSeconds": seconds, "maximumRetryAttempts": tries},
            dead_letter_config={"arn": parked},
        ),
    )
    # Scheduler refuses a role that it cannot use yet.
    added.node.add_dependency(role)
