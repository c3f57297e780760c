"""Lambdas that answer well and do nothing: what heal and follow_up could not do, they count."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from infra.alarms.description import AlarmDescription
from infra.alarms.watching import FINE, Firing, own, watch
from mendq.model.case import Severity
from mendq.model.names import OwnMetric

PERIOD = Duration.minutes(5)
# What heal cannot do comes again after six minutes, a case that follow_up cannot move after five:
# twice is bad luck, and may be over by then. The hour makes what comes now and then one alarm.
FAILS_IN, PERIODS = 3, 12
_OFTEN = f"in {FAILS_IN} of {PERIODS} periods of {PERIOD.to_minutes():.0f} minutes"
HEAL_ERRORS = AlarmDescription(
    "heal_errors",
    f"heal could not do what failed calls asked for, {_OFTEN}",
    "Of some queues at least, failing calls come to nothing: no fix, and no page about a case.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
)
FOLLOW_UP_ERRORS = AlarmDescription(
    "follow_up_errors",
    f"follow_up could not look after a case, {_OFTEN}",
    "Cases stay where they are: fixes are not verified, and approved ones are not made.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
)
ANNOUNCED = (HEAL_ERRORS, FOLLOW_UP_ERRORS)


class Failing(Construct):
    """AWS counts no error where a Lambda has caught it.

    Each tells of itself: one queue that heal can do nothing for must not hide that heal is gone.
    """

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        heal = own(OwnMetric.HEAL_ERRORS, "Sum", PERIOD)
        follow_up = own(OwnMetric.FOLLOW_UP_ERRORS, "Sum", PERIOD)
        often = Firing(1, FINE, FAILS_IN, PERIODS)
        self.alarms = (
            watch(self, HEAL_ERRORS, heal, often),
            watch(self, FOLLOW_UP_ERRORS, follow_up, often),
        )
