"""Alarms on many fixes: more than usual and not few, or as many as a fixed ceiling."""

from __future__ import annotations

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
    own_metric,
)
from mendq.model import names
from mendq.model.case import Severity
from mendq.model.limits import Limits
from mendq.model.names import OwnMetric

PERIOD = Duration.seconds(int(names.FIXES_ALARM_PERIOD.total_seconds()))
STILL_COMING = Duration.seconds(int(names.END_OF_FIXES_AFTER.total_seconds()))
# How many of the last three periods must have many fixes. One period alone makes no alarm: that may
# be one fault that was fixed.
MANY_FIXES_PERIODS = 2
# Width of the expected band in standard deviations. The model learns from two weeks and takes a
# slow rise as normal; `fixes_over_ceiling` notices a slow rise.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
BAND_WIDTH = 3
# Minutes in a row with a fix being verified after which the page is suppressed. One minute is not
# enough: a forged value in every second minute would then suppress it as long as one each minute.
VERIFIED_IN = 2
# The most minutes of an hour in which the page is suppressed: twenty minutes of fixes, and the time
# that alarms need to notice. A principal that forges the metric cannot suppress it for longer.
HELD_AT_MOST = 25
OF_MINUTES = 60
# How late the suppressing alarm may begin: the minutes in a row that it needs, and one more because
# its metric is sent later than the count of fixes.
SETTLING = Duration.minutes(VERIFIED_IN + 1)
_IMPACT = (
    "Mendq changes queues more often than usual: a fault that spreads, a fix that does not help, "
    "or forged events. Each change is within its bounds and can be undone."
)
PART = "Spike"
_MINUTES = f"{PERIOD.to_minutes():.0f} minutes"
_OFTEN = f"in {MANY_FIXES_PERIODS} of {names.FIXES_ALARM_PERIODS} periods of {_MINUTES}"
# How long the page is suppressed, in words. No other text says it.
HELD_BACK_WHILE = (
    f"held back while a fix of the last {_MINUTES} is being verified: for {_MINUTES} at most where "
    f"fixes go on, for {HELD_AT_MOST} of any {OF_MINUTES} in all, and by the minutes that alarms "
    "need to notice"
)
FIXES_SPIKE = AlarmDescription(
    name="fixes_spike",
    when=f"more fixes than usual, and not few, and they still come; {HELD_BACK_WHILE}",
    impact=_IMPACT,
    command=OPEN_CASES,
    runbook="fixes_spike",
    severity=Severity.URGENT,
    part=PART,
)
UNUSUAL = AlarmDescription(
    name="fixes_unusual",
    when=f"more fixes than CloudWatch's model expects, {_OFTEN}",
    impact=_IMPACT,
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)
MANY = AlarmDescription(
    name="fixes_many",
    when=f"{names.FEWEST_FIXES_TO_ALARM} fixes or more, {_OFTEN}",
    impact=_IMPACT,
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)
STILL = AlarmDescription(
    name="fixes_still_coming",
    when=f"a fix in the last {STILL_COMING.to_minutes():.0f} minutes",
    impact="None by itself: without it the page of many fixes is not sent, or ends.",
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)
OVER_CEILING = AlarmDescription(
    name="fixes_over_ceiling",
    when=f"{names.FIX_CEILING_MINUTES} times as many fixes within {_MINUTES} as the setting "
    "limits.writesPerMinute",
    impact=_IMPACT,
    command="mendq freeze",
    runbook="fixes_spike",
    severity=Severity.URGENT,
    part=PART,
    is_essential=True,
)
BEING_VERIFIED = AlarmDescription(
    name="fix_being_verified",
    when=f"{VERIFIED_IN} minutes in a row a fix of the last {_MINUTES}, one of many, was still to "
    "prove good",
    impact="None: while it stands, and not for long, the page of many fixes is held back.",
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)
VERIFIED_FOR_LONG = AlarmDescription(
    name="fix_verified_for_long",
    when=f"one of many fixes was being verified in {HELD_AT_MOST} of {OF_MINUTES} minutes",
    impact="None: while it stands, the page of many fixes is not held back.",
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)
# A composite alarm that notifies nobody: it only suppresses `fixes_spike`.
HELD_BACK = AlarmDescription(
    name="fixes_held_back",
    when="one of many fixes is being verified, and was not for "
    f"{HELD_AT_MOST} of the last {OF_MINUTES} minutes",
    impact="None: while it stands, the page of many fixes is held back.",
    command=OPEN_CASES,
    runbook="fixes_spike",
    part=PART,
)

# Every description above. `make check` names one that is missing here.
DESCRIPTIONS = (
    FIXES_SPIKE,
    UNUSUAL,
    MANY,
    STILL,
    OVER_CEILING,
    BEING_VERIFIED,
    VERIFIED_FOR_LONG,
    HELD_BACK,
)


def over_ceiling(limits: Limits) -> Watch:
    """Return the alarm that rings if the number of fixes reaches the ceiling.

    The ceiling depends on the limits.
    """
    fixes = own_metric(OwnMetric.AUTO_FIXES, "Sum", PERIOD)
    return Watch(OVER_CEILING, fixes, Firing(names.fix_ceiling(limits), FINE))


class Spike:
    """The rules of `fixes_spike`: which alarms make it ring, and which suppress its page.

    Attributes:
        rule: true if there are more fixes than usual, and not few, and they still come. More fixes
            than usual are not enough: after a quiet week three are more than usual. Many fixes that
            have stopped are not enough either.
        holds_back: true while one of the many fixes is being verified, but not for long.
    """

    def __init__(self, scope: Construct) -> None:
        fixes = own_metric(OwnMetric.AUTO_FIXES, "Sum", PERIOD)
        recent_fixes = own_metric(OwnMetric.AUTO_FIXES, "Sum", STILL_COMING)
        verified = own_metric(OwnMetric.FIXES_BEING_VERIFIED, "Maximum", A_MINUTE)
        above_band = Firing(
            BAND_WIDTH, FINE, MANY_FIXES_PERIODS, names.FIXES_ALARM_PERIODS, ABOVE_BAND
        )
        not_few = Firing(
            names.FEWEST_FIXES_TO_ALARM, FINE, MANY_FIXES_PERIODS, names.FIXES_ALARM_PERIODS
        )
        any_fix = Firing(1, FINE)
        in_a_row = Firing(1, FINE, VERIFIED_IN, VERIFIED_IN)
        for_too_long = Firing(1, FINE, HELD_AT_MOST, OF_MINUTES)
        unusual = Watch(UNUSUAL, fixes, above_band).make_alarm(scope)
        many = Watch(MANY, fixes, not_few).make_alarm(scope)
        still = Watch(STILL, recent_fixes, any_fix).make_alarm(scope)
        being = Watch(BEING_VERIFIED, verified, in_a_row).make_alarm(scope)
        for_long = Watch(VERIFIED_FOR_LONG, verified, for_too_long).make_alarm(scope)
        not_for_long = cloudwatch.AlarmRule.not_(for_long)
        self.rule = cloudwatch.AlarmRule.all_of(unusual, many, still)
        self.holds_back = cloudwatch.AlarmRule.all_of(being, not_for_long)
