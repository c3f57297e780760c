"""Many fixes: more than usual and not few, or more than there may ever be."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms.description import OPEN_CASES, AlarmDescription
from infra.alarms.watching import A_MINUTE, FINE, Firing, Ringing, own, watch
from mendq.model import names
from mendq.model.case import Severity
from mendq.model.limits import Limits
from mendq.model.names import OwnMetric

PERIOD = Duration.seconds(int(names.PERIOD.total_seconds()))
STILL_COMING = Duration.seconds(int(names.STILL_COMING.total_seconds()))
# Of three periods, because one burst that is fixed is no alarm.
OF = 2
# How wide the band is, in standard deviations. The model learns for two weeks, and what rises
# slowly it takes for usual: that is what the ceiling is for.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
BAND_WIDTH = 3
# Two minutes in a row, or one that is put every second minute would hold back as well as each.
VERIFIED_IN = 2
# A burst of twenty minutes is waited for that long, with what alarms need to notice. Whoever puts
# the metric in our stead holds back no more of any hour.
HELD_AT_MOST, OF_MINUTES = 25, 60
IMPACT = (
    "Mendq changes queues more often than usual: a fault that spreads, a fix that does not help, "
    "or forged events. Each change is within its bounds and can be undone."
)
RUNBOOK = "fixes_spike"
_OFTEN = f"in {OF} of {names.PERIODS} periods of {PERIOD.to_minutes():.0f} minutes"
# All that is said of it anywhere.
HELD_BACK = (
    f"held back while a fix of the last {PERIOD.to_minutes():.0f} minutes is being verified: for "
    f"{PERIOD.to_minutes():.0f} minutes at most where fixes go on, for {HELD_AT_MOST} of any "
    f"{OF_MINUTES} in all, and by the minutes that alarms need to notice"
)
UNUSUAL = AlarmDescription(
    "fixes_unusual",
    f"more fixes than CloudWatch's model expects, {_OFTEN}",
    IMPACT,
    OPEN_CASES,
    RUNBOOK,
)
MANY = AlarmDescription(
    "fixes_many",
    f"{names.LEAST_FIXES} fixes or more, {_OFTEN}",
    IMPACT,
    OPEN_CASES,
    RUNBOOK,
)
STILL = AlarmDescription(
    "fixes_still_coming",
    f"a fix in the last {STILL_COMING.to_minutes():.0f} minutes",
    "None by itself: without it the page of many fixes is not sent, or ends.",
    OPEN_CASES,
    RUNBOOK,
)
OVER_CEILING = AlarmDescription(
    "fixes_over_ceiling",
    f"{names.CEILING_MINUTES} times as many fixes within {PERIOD.to_minutes():.0f} minutes as the "
    "setting limits.writesPerMinute",
    IMPACT,
    "mendq freeze",
    RUNBOOK,
    Severity.URGENT,
)
BEING_VERIFIED = AlarmDescription(
    "fix_being_verified",
    f"{VERIFIED_IN} minutes in a row a fix of the last {PERIOD.to_minutes():.0f} minutes, one of "
    "many, was still to prove good",
    "None: while it stands, and not for long, the page of many fixes is held back.",
    OPEN_CASES,
    RUNBOOK,
)
VERIFIED_FOR_LONG = AlarmDescription(
    "fix_verified_for_long",
    f"one of many fixes was being verified in {HELD_AT_MOST} of {OF_MINUTES} minutes",
    "None: while it stands, the page of many fixes is not held back.",
    OPEN_CASES,
    RUNBOOK,
)
ANNOUNCED = (UNUSUAL, MANY, STILL, OVER_CEILING, BEING_VERIFIED, VERIFIED_FOR_LONG)


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
            evaluation_periods=names.PERIODS,
            treat_missing_data=FINE,
        )
        many = watch(self, MANY, fixes, Firing(names.LEAST_FIXES, FINE, OF, names.PERIODS))
        lately = own(OwnMetric.AUTO_FIXES, "Sum", STILL_COMING)
        still = watch(self, STILL, lately, Firing(1, FINE))
        over = watch(self, OVER_CEILING, fixes, Firing(names.ceiling(limits), FINE))
        verified = own(OwnMetric.FIXES_BEING_VERIFIED, "Maximum", A_MINUTE)
        row = Firing(1, FINE, VERIFIED_IN, VERIFIED_IN)
        being = watch(self, BEING_VERIFIED, verified, row)
        long = Firing(1, FINE, HELD_AT_MOST, OF_MINUTES)
        for_long = watch(self, VERIFIED_FOR_LONG, verified, long)
        self.alarms: tuple[Ringing, ...] = (over,)
        rule = cloudwatch.AlarmRule
        # More than usual is no reason by itself: three after a quiet week are. Nor are two periods
        # of many that have passed.
        self.rule = rule.all_of(unusual, many.alarm, still.alarm)
        self.holds_back = rule.all_of(being.alarm, rule.not_(for_long.alarm))
