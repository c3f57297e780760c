"""Lambdas that answer well and do nothing: what heal and follow_up could not do, they count."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from functions.healing.own_metrics import OwnMetric
from functions.healing.paging import Severity
from infra.alarms.liveness import BLIND
from infra.alarms.told import Told
from infra.alarms.watching import FINE, Firing, own, watch

PERIOD = Duration.minutes(5)
PERIODS = 6
# What heal cannot do comes again after six minutes, a case that follow_up cannot move after five:
# once is bad luck, and may be over by then.
HEAL_FAILS_IN, FOLLOW_UP_FAILS_IN = 2, 3
HEAL_ERRORS = Told(
    "heal_errors",
    f"heal could not do what failed calls asked for, in {HEAL_FAILS_IN} of {PERIODS} periods of "
    "5 minutes",
    BLIND,
    runbook="lambda_failing",
)
FOLLOW_UP_ERRORS = Told(
    "follow_up_errors",
    f"follow_up could not look after a case, in {FOLLOW_UP_FAILS_IN} of {PERIODS} periods of "
    "5 minutes",
    "Cases stay where they are: fixes are not verified, and approved ones are not made.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
)
TOLD = (HEAL_ERRORS, FOLLOW_UP_ERRORS)


class Failing(Construct):
    """AWS counts no error where a Lambda has caught it."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        heal = own(OwnMetric.HEAL_ERRORS, "Sum", PERIOD)
        follow_up = own(OwnMetric.FOLLOW_UP_ERRORS, "Sum", PERIOD)
        self.alarms = (
            watch(self, HEAL_ERRORS, heal, Firing(1, FINE, HEAL_FAILS_IN, PERIODS)),
            watch(self, FOLLOW_UP_ERRORS, follow_up, Firing(1, FINE, FOLLOW_UP_FAILS_IN, PERIODS)),
        )
