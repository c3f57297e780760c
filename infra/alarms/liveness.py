"""Alarms on the way from a failed call to a fix: heartbeat, probe, intake, heal."""

from __future__ import annotations

from math import ceil

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms.description import AlarmDescription
from infra.alarms.watched import Watched
from infra.alarms.watching import A_FAULT, A_MINUTE, BELOW, FINE, FIVE_MINUTES, Firing, own, watch
from infra.intake import MAX_RECEIVE_COUNT
from infra.lambdas.heal import VISIBILITY
from mendq.model.case import Severity
from mendq.model.names import HEARTBEAT, OwnMetric
from mendq.probe.probe import LOST_IN_A_ROW

BLIND = "Failing calls may go unseen: meanwhile nothing is fixed, and no case is paged."
SILENT_MINUTES = 10
LATE_MINUTES = 5
# A probe that comes a little late is still in its period.
PROBE_SLACK_MINUTES = 10
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
LONGEST_PERIOD_MINUTES = 1_440
# What is tried again and again is parked by then; what waits longer was not looked at.
LATE_SECONDS = VISIBILITY.to_seconds() * MAX_RECEIVE_COUNT
FAILING_PERIODS = 3

SILENT = AlarmDescription(
    "heartbeat_missing",
    f"follow_up, which runs each minute, did not end well or sent no metrics for {SILENT_MINUTES} "
    "minutes",
    "Nobody looks after open cases, and the alarms on them stand where they stood.",
    severity=Severity.URGENT,
)
PROBE_LOST = AlarmDescription(
    "probe_lost",
    f"{LOST_IN_A_ROW} probes in a row were lost, or none is sent any more",
    BLIND,
    severity=Severity.URGENT,
)
LATE = AlarmDescription(
    "intake_late",
    f"the oldest failed call waits longer than {MAX_RECEIVE_COUNT} tries of heal take, for "
    f"{LATE_MINUTES} minutes",
    "Fixes come late or not at all: heal is not running, or not as fast as calls fail.",
)
HEAL_FAILING = AlarmDescription(
    "heal_failing",
    f"heal fails in {FAILING_PERIODS} periods of {FIVE_MINUTES.to_minutes():.0f} minutes in a row",
    BLIND,
    runbook="lambda_failing",
)
ANNOUNCED = (SILENT, PROBE_LOST, LATE, HEAL_FAILING)


class Liveness(Construct):
    """The first two have causes of their own; the others are about heal, so that one page tells."""

    def __init__(self, scope: Construct, name: str, watched: Watched, probe_minutes: int) -> None:
        super().__init__(scope, name)
        silent = Firing(1, A_FAULT, SILENT_MINUTES, SILENT_MINUTES, BELOW)
        probe_period, periods = _probe_periods(probe_minutes)
        age = watched.intake.queue.metric_approximate_age_of_oldest_message(
            period=A_MINUTE, statistic="Maximum"
        )
        late = Firing(LATE_SECONDS, FINE, LATE_MINUTES, LATE_MINUTES)
        errors = watched.heal.metric_errors(period=FIVE_MINUTES)
        self.alarms = (
            watch(self, SILENT, _beats(watched.follow_up), silent),
            watch(
                self,
                PROBE_LOST,
                own(OwnMetric.PROBES_LOST, "Maximum", probe_period),
                Firing(LOST_IN_A_ROW, A_FAULT, periods, periods),
            ),
            watch(self, LATE, age, late),
            watch(self, HEAL_FAILING, errors, Firing(1, FINE, FAILING_PERIODS, FAILING_PERIODS)),
        )


def _beats(follow_up: lambda_.Function) -> cloudwatch.MathExpression:
    """A run that ended well, which AWS counts and nobody else can, and that sent its metrics.

    A minute that lacks one of the three has no value, as an expression on missing data has none.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    return cloudwatch.MathExpression(
        expression="(runs - errors) * beats",
        using_metrics={
            "runs": follow_up.metric_invocations(period=A_MINUTE),
            "errors": follow_up.metric_errors(period=A_MINUTE),
            "beats": own(HEARTBEAT, "SampleCount", A_MINUTE),
        },
        period=A_MINUTE,
    )


def _probe_periods(probe_minutes: int) -> tuple[Duration, int]:
    """A period and how many of them hold a probe each time: one, or more where a day is too short.

    Of several each has to breach: an empty one does, so that the one with the probe decides. Where
    CloudWatch looks further back instead, the alarm is a probe late; the probe pages by itself.
    """
    together = probe_minutes + PROBE_SLACK_MINUTES
    periods = ceil(together / LONGEST_PERIOD_MINUTES)
    return Duration.minutes(ceil(together / periods)), periods
