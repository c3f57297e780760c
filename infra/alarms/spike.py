"""Many fixes: more than usual and not few, or more than there may ever be."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from functions.healing import spike
from functions.healing.limits import Limits
from functions.healing.own_metrics import OwnMetric
from functions.healing.paging import Severity
from infra.alarms.told import OPEN_CASES, Told
from infra.alarms.watching import A_MINUTE, FINE, Firing, Ringing, own, watch

PERIOD = Duration.seconds(int(spike.PERIOD.total_seconds()))
# Of three periods, because one burst that is mended is no alarm.
OF, PERIODS = 2, 3
# How wide the band is, in standard deviations. The model learns for two weeks, and what rises
# slowly it takes for usual: that is what the ceiling is for.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
BAND_WIDTH = 3
# By itself verifying goes on for less than half an hour. Whoever puts the metric in our stead, on
# and off as they like, holds back half of any hour before many fixes are told of all the same.
HELD_AT_MOST, OF_MINUTES = 30, 60
IMPACT = (
    "Mendq changes queues more often than usual: a fault that spreads, a fix that does not help, "
    "or forged events. Each change is within its bounds and can be undone."
)
RUNBOOK = "fixes_spike"
UNUSUAL = Told(
    "fixes_unusual",
    "more fixes than CloudWatch's model expects, in two of three quarters of an hour",
    IMPACT,
    OPEN_CASES,
    RUNBOOK,
)
MANY = Told(
    "fixes_many",
    f"{spike.LEAST_FIXES} fixes or more in two of three quarters of an hour",
    IMPACT,
    OPEN_CASES,
    RUNBOOK,
)
OVER_CEILING = Told(
    "fixes_over_ceiling",
    f"{spike.CEILING_MINUTES} times as many fixes in a quarter of an hour as the setting "
    "limits.writesPerMinute",
    IMPACT,
    "mendq freeze",
    RUNBOOK,
    Severity.URGENT,
)
BEING_VERIFIED = Told(
    "fix_being_verified",
    "a fix of the last 15 minutes is still to prove good, and fixes have not gone on for longer",
    "None: while it stands, and not for long, the page of many fixes is held back.",
    OPEN_CASES,
    RUNBOOK,
)
VERIFIED_FOR_LONG = Told(
    "fix_verified_for_long",
    f"a fix was being verified in {HELD_AT_MOST} of {OF_MINUTES} minutes",
    "None: while it stands, the page of many fixes is not held back.",
    OPEN_CASES,
    RUNBOOK,
)
TOLD = (UNUSUAL, MANY, OVER_CEILING, BEING_VERIFIED, VERIFIED_FOR_LONG)


class Spike(Construct):
    """The alarms on fixes, and those by which the page of many is held back, and not for long."""

    def __init__(self, scope: Construct, name: str, limits: Limits) -> None:
        super().__init__(scope, name)
        fixes = own(OwnMetric.AUTO_FIXES, "Sum", PERIOD)
        unusual = cloudwatch.AnomalyDetectionAlarm(
            self,
            "FixesUnusual",
            alarm_name=UNUSUAL.called(),
            alarm_description=UNUSUAL.description(self),
            metric=fixes,
            std_devs=BAND_WIDTH,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_UPPER_THRESHOLD,
            datapoints_to_alarm=OF,
            evaluation_periods=PERIODS,
            treat_missing_data=FINE,
        )
        many = watch(self, MANY, fixes, Firing(spike.LEAST_FIXES, FINE, OF, PERIODS))
        over = watch(self, OVER_CEILING, fixes, Firing(spike.ceiling(limits), FINE))
        verified = own(OwnMetric.FIXES_BEING_VERIFIED, "Maximum", A_MINUTE)
        being = watch(self, BEING_VERIFIED, verified, Firing(1, FINE))
        long = Firing(1, FINE, HELD_AT_MOST, OF_MINUTES)
        for_long = watch(self, VERIFIED_FOR_LONG, verified, long)
        self.alarms: tuple[Ringing, ...] = (over,)
        rule = cloudwatch.AlarmRule
        # More than usual is no reason by itself: three after a quiet week are.
        self.rule = rule.all_of(unusual, many.alarm)
        self.holds_back = rule.all_of(being.alarm, rule.not_(for_long.alarm))
