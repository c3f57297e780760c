"""Many fixes: more than usual and not few, or more than there may ever be."""

from __future__ import annotations

from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms.alarm import (
    A_MINUTE,
    ABOVE_BAND,
    FINE,
    OPEN_CASES,
    AlarmDescription,
    Firing,
    Watch,
    own,
)
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
# How long what holds back may be away or come late: the minutes in a row that it needs, and one
# that its metric comes later than the fixes.
SETTLING = Duration.minutes(VERIFIED_IN + 1)
_IMPACT = (
    "Mendq changes queues more often than usual: a fault that spreads, a fix that does not help, "
    "or forged events. Each change is within its bounds and can be undone."
)
PART = "Spike"
_of_fixes = partial(AlarmDescription, command=OPEN_CASES, runbook="fixes_spike", part=PART)
_many = partial(_of_fixes, impact=_IMPACT)
_MINUTES = f"{PERIOD.to_minutes():.0f} minutes"
_OFTEN = f"in {OF} of {names.PERIODS} periods of {_MINUTES}"
# All that is said of it anywhere.
HELD_BACK_WHILE = (
    f"held back while a fix of the last {_MINUTES} is being verified: for {_MINUTES} at most where "
    f"fixes go on, for {HELD_AT_MOST} of any {OF_MINUTES} in all, and by the minutes that alarms "
    "need to notice"
)
FIXES_SPIKE = _many(
    "fixes_spike",
    f"more fixes than usual, and not few, and they still come; {HELD_BACK_WHILE}",
    severity=Severity.URGENT,
)
UNUSUAL = _many("fixes_unusual", f"more fixes than CloudWatch's model expects, {_OFTEN}")
MANY = _many("fixes_many", f"{names.LEAST_FIXES} fixes or more, {_OFTEN}")
STILL = _of_fixes(
    "fixes_still_coming",
    f"a fix in the last {STILL_COMING.to_minutes():.0f} minutes",
    "None by itself: without it the page of many fixes is not sent, or ends.",
)
OVER_CEILING = _many(
    "fixes_over_ceiling",
    f"{names.CEILING_MINUTES} times as many fixes within {_MINUTES} as the setting "
    "limits.writesPerMinute",
    command="mendq freeze",
    severity=Severity.URGENT,
    is_essential=True,
)
_HOLDS = "None: while it stands, the page of many fixes is "
BEING_VERIFIED = _of_fixes(
    "fix_being_verified",
    f"{VERIFIED_IN} minutes in a row a fix of the last {_MINUTES}, one of many, was still to prove "
    "good",
    "None: while it stands, and not for long, the page of many fixes is held back.",
)
VERIFIED_FOR_LONG = _of_fixes(
    "fix_verified_for_long",
    f"one of many fixes was being verified in {HELD_AT_MOST} of {OF_MINUTES} minutes",
    f"{_HOLDS}not held back.",
)
# A composite that pages nobody.
HELD_BACK = _of_fixes(
    "fixes_held_back",
    f"one of many fixes is being verified, and was not for {HELD_AT_MOST} of the last {OF_MINUTES} "
    "minutes",
    f"{_HOLDS}held back.",
)


def over_ceiling(limits: Limits) -> Watch:
    """The alarm on more fixes than there may ever be."""
    fixes = own(OwnMetric.AUTO_FIXES, "Sum", PERIOD)
    return Watch(OVER_CEILING, fixes, Firing(names.ceiling(limits), FINE))


class Spike:
    """The alarms on many fixes, and those by which their page is held back, and not for long."""

    def __init__(self, scope: Construct) -> None:
        fixes = own(OwnMetric.AUTO_FIXES, "Sum", PERIOD)
        lately = own(OwnMetric.AUTO_FIXES, "Sum", STILL_COMING)
        verified = own(OwnMetric.FIXES_BEING_VERIFIED, "Maximum", A_MINUTE)
        unusual, many, still, being, for_long = (
            Watch(announced, metric, firing).alarm(scope)
            for announced, metric, firing in (
                (UNUSUAL, fixes, Firing(BAND_WIDTH, FINE, OF, names.PERIODS, ABOVE_BAND)),
                (MANY, fixes, Firing(names.LEAST_FIXES, FINE, OF, names.PERIODS)),
                (STILL, lately, Firing(1, FINE)),
                (BEING_VERIFIED, verified, Firing(1, FINE, VERIFIED_IN, VERIFIED_IN)),
                (VERIFIED_FOR_LONG, verified, Firing(1, FINE, HELD_AT_MOST, OF_MINUTES)),
            )
        )
        rule = cloudwatch.AlarmRule
        # More than usual is no reason by itself: three after a quiet week are. Nor are two periods
        # of many that have passed.
        self.rule = rule.all_of(unusual, many, still)
        self.holds_back = rule.all_of(being, rule.not_(for_long))
