"""Alarms on the scan, which finds what makes no call fail; nothing else would miss it."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms.description import AlarmDescription
from infra.alarms.watching import A_FAULT, AN_HOUR, FINE, Firing, own, watch
from mendq.model.case import Severity
from mendq.model.names import OwnMetric

# Three scans are started in each half hour.
PERIOD_MINUTES = 30
MISSING_HOURS = 2
# Hourly scans: two that fail may be one service's bad morning.
FAILS_IN, PERIODS = 3, 4
UNSEEN = "What fails no call is found by the scan alone, and stays unseen where it cannot look."
RUNBOOK = "scan_failing"
ERRORS = AlarmDescription(
    "scan_errors",
    f"the scan could not look at some queue, or at none, in {FAILS_IN} of {PERIODS} hours",
    UNSEEN,
    runbook=RUNBOOK,
    severity=Severity.INFO,
)
MISSING = AlarmDescription(
    "scan_missing",
    f"no scan, which is started every ten minutes, ended well for {MISSING_HOURS} hours",
    UNSEEN,
    runbook=RUNBOOK,
    severity=Severity.INFO,
)
ANNOUNCED = (ERRORS, MISSING)


class Scanning(Construct):
    """Two causes: it is not run, or it runs and is not let look."""

    def __init__(self, scope: Construct, name: str, scan: lambda_.Function) -> None:
        super().__init__(scope, name)
        # Each run counts as an error or as none, so the least is 0 where one ended well.
        # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
        least_errors = scan.metric_errors(
            period=Duration.minutes(PERIOD_MINUTES), statistic="Minimum"
        )
        periods = MISSING_HOURS * 60 // PERIOD_MINUTES
        self.alarms = (
            watch(
                self,
                ERRORS,
                own(OwnMetric.SCAN_ERRORS, "Sum", AN_HOUR),
                Firing(1, FINE, FAILS_IN, PERIODS),
            ),
            watch(self, MISSING, least_errors, Firing(1, A_FAULT, periods, periods)),
        )
