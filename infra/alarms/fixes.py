"""Alarms on many fixes: more than usual and not few, or as many as a fixed ceiling."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms.alarm import (
    ABOVE_EXPECTED_BAND_OPERATOR,
    MISSING_DATA_IS_FINE,
    ONE_MINUTE,
    OPEN_CASES_COMMAND,
    AlarmDescription,
    FiringRule,
    MetricAlarm,
    make_own_metric,
)
from mendq.model import names
from mendq.model.case import Severity
from mendq.model.limits import Limits
from mendq.model.names import OwnMetric

FIXES_PERIOD = Duration.seconds(int(names.FIXES_ALARM_PERIOD.total_seconds()))
RECENT_FIXES_PERIOD = Duration.seconds(int(names.FIX_SERIES_ENDS_AFTER.total_seconds()))
# The alarm rings if this number of the last three periods have many fixes. Many fixes in one period
# may come from a single fault.
BREACHING_FIXES_PERIODS = 2
# Width of the expected band in standard deviations. The model learns from two weeks and takes a
# slow rise as normal; `fixes_over_ceiling` notices a slow rise.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
BAND_WIDTH_STANDARD_DEVIATIONS = 3
# The page is suppressed after this many minutes in a row in which a fix is being verified. One
# minute is not enough: a value forged in every second minute would then suppress the page as long
# as a value forged in each minute.
MINUTES_IN_A_ROW_TO_SUPPRESS = 2
# The most minutes of an hour in which the page is suppressed: twenty minutes of fixes, and the time
# that alarms need to notice. A principal that forges the metric cannot suppress it for longer.
MAXIMUM_SUPPRESSED_MINUTES = 25
SUPPRESSION_WINDOW_MINUTES = 60
# How late the suppressing alarm may begin: the minutes in a row that it needs, and one more because
# its metric is sent later than the count of fixes.
SUPPRESSOR_GRACE_PERIOD = Duration.minutes(MINUTES_IN_A_ROW_TO_SUPPRESS + 1)
_MANY_FIXES_IMPACT = (
    "Mendq changes queues more often than usual: a fault that spreads, a fix that does not help, "
    "or forged events. Each change is within its bounds and can be undone."
)
FIXES_SPIKE_STACK_PART = "Spike"
_FIXES_PERIOD_TEXT = f"{FIXES_PERIOD.to_minutes():.0f} minutes"
_ALARM_FREQUENCY_TEXT = (
    f"in {BREACHING_FIXES_PERIODS} of {names.FIXES_ALARM_PERIODS} periods of {_FIXES_PERIOD_TEXT}"
)
# How long the page is suppressed, in words. No other text says it.
SUPPRESSION_TEXT = (
    f"held back while a fix of the last {_FIXES_PERIOD_TEXT} is being verified: for "
    f"{_FIXES_PERIOD_TEXT} at most where fixes go on, for {MAXIMUM_SUPPRESSED_MINUTES} of any "
    f"{SUPPRESSION_WINDOW_MINUTES} in all, and by the minutes that alarms need to notice"
)
FIXES_SPIKE_ALARM = AlarmDescription(
    name="fixes_spike",
    firing_condition=f"more fixes than usual, and not few, and they still come; {SUPPRESSION_TEXT}",
    impact=_MANY_FIXES_IMPACT,
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    severity=Severity.URGENT,
    part=FIXES_SPIKE_STACK_PART,
)
UNUSUAL_FIXES_ALARM = AlarmDescription(
    name="fixes_unusual",
    firing_condition=f"more fixes than CloudWatch's model expects, {_ALARM_FREQUENCY_TEXT}",
    impact=_MANY_FIXES_IMPACT,
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)
MANY_FIXES_ALARM = AlarmDescription(
    name="fixes_many",
    firing_condition=f"{names.FEWEST_FIXES_TO_ALARM} fixes or more, {_ALARM_FREQUENCY_TEXT}",
    impact=_MANY_FIXES_IMPACT,
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)
FIXES_STILL_COMING_ALARM = AlarmDescription(
    name="fixes_still_coming",
    firing_condition=f"a fix in the last {RECENT_FIXES_PERIOD.to_minutes():.0f} minutes",
    impact="None by itself. While this alarm is off, the page of many fixes is not sent, or ends.",
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)
FIXES_OVER_CEILING_ALARM = AlarmDescription(
    name="fixes_over_ceiling",
    firing_condition=(
        f"{names.MINUTES_OF_WRITES_AT_FIX_CEILING} times as many fixes within "
        f"{_FIXES_PERIOD_TEXT} as the setting limits.writesPerMinute"
    ),
    impact=_MANY_FIXES_IMPACT,
    command="mendq freeze",
    runbook="fixes_spike",
    severity=Severity.URGENT,
    part=FIXES_SPIKE_STACK_PART,
    is_essential=True,
)
FIX_BEING_VERIFIED_ALARM = AlarmDescription(
    name="fix_being_verified",
    firing_condition=(
        f"for {MINUTES_IN_A_ROW_TO_SUPPRESS} minutes in a row, one of many fixes of the last "
        f"{_FIXES_PERIOD_TEXT} was being verified"
    ),
    impact="None. While this alarm is on, the page of many fixes is held back, but not for long.",
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)
LONG_VERIFICATION_ALARM = AlarmDescription(
    name="fix_verified_for_long",
    firing_condition=f"one of many fixes was being verified in {MAXIMUM_SUPPRESSED_MINUTES} of "
    f"{SUPPRESSION_WINDOW_MINUTES} minutes",
    impact="None. While this alarm is on, the page of many fixes is not held back.",
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)
# A composite alarm that notifies nobody: it only suppresses `fixes_spike`.
FIXES_HELD_BACK_ALARM = AlarmDescription(
    name="fixes_held_back",
    firing_condition="one of many fixes is being verified, and was not for "
    f"{MAXIMUM_SUPPRESSED_MINUTES} of the last {SUPPRESSION_WINDOW_MINUTES} minutes",
    impact="None. While this alarm is on, the page of many fixes is held back.",
    command=OPEN_CASES_COMMAND,
    runbook="fixes_spike",
    part=FIXES_SPIKE_STACK_PART,
)

# Every description above. `make check` names one that is missing here.
DESCRIPTIONS = (
    FIXES_SPIKE_ALARM,
    UNUSUAL_FIXES_ALARM,
    MANY_FIXES_ALARM,
    FIXES_STILL_COMING_ALARM,
    FIXES_OVER_CEILING_ALARM,
    FIX_BEING_VERIFIED_ALARM,
    LONG_VERIFICATION_ALARM,
    FIXES_HELD_BACK_ALARM,
)


def make_fix_ceiling_alarm(limits: Limits) -> MetricAlarm:
    """Return the alarm that rings if the number of fixes reaches the ceiling.

    The ceiling depends on the limits.
    """
    fixes_metric = make_own_metric(OwnMetric.AUTO_FIXES, "Sum", FIXES_PERIOD)
    return MetricAlarm(
        FIXES_OVER_CEILING_ALARM,
        fixes_metric,
        FiringRule(names.compute_fix_ceiling(limits), MISSING_DATA_IS_FINE),
    )


class SpikeRules:
    """The rules of `fixes_spike`: which alarms make it ring, and which suppress its page.

    Attributes:
        spike_rule: true if there are more fixes than usual, they are not few, and they still come.
            More fixes than usual are not enough: after a quiet week three are more than usual. Many
            fixes that have stopped are not enough either.
        suppression_rule: true while one of the many fixes is being verified, but only for a limited
            time.
    """

    def __init__(self, scope: Construct) -> None:
        fixes_metric = make_own_metric(OwnMetric.AUTO_FIXES, "Sum", FIXES_PERIOD)
        recent_fixes_metric = make_own_metric(OwnMetric.AUTO_FIXES, "Sum", RECENT_FIXES_PERIOD)
        unverified_fixes_metric = make_own_metric(
            OwnMetric.FIXES_BEING_VERIFIED, "Maximum", ONE_MINUTE
        )
        above_expected_band_rule = FiringRule(
            BAND_WIDTH_STANDARD_DEVIATIONS,
            MISSING_DATA_IS_FINE,
            BREACHING_FIXES_PERIODS,
            names.FIXES_ALARM_PERIODS,
            ABOVE_EXPECTED_BAND_OPERATOR,
        )
        many_fixes_rule = FiringRule(
            names.FEWEST_FIXES_TO_ALARM,
            MISSING_DATA_IS_FINE,
            BREACHING_FIXES_PERIODS,
            names.FIXES_ALARM_PERIODS,
        )
        any_fix_rule = FiringRule(1, MISSING_DATA_IS_FINE)
        minutes_in_a_row_rule = FiringRule(
            1, MISSING_DATA_IS_FINE, MINUTES_IN_A_ROW_TO_SUPPRESS, MINUTES_IN_A_ROW_TO_SUPPRESS
        )
        long_verification_rule = FiringRule(
            1, MISSING_DATA_IS_FINE, MAXIMUM_SUPPRESSED_MINUTES, SUPPRESSION_WINDOW_MINUTES
        )
        unusual_fixes_alarm = MetricAlarm(
            UNUSUAL_FIXES_ALARM, fixes_metric, above_expected_band_rule
        ).make_alarm(scope)
        many_fixes_alarm = MetricAlarm(MANY_FIXES_ALARM, fixes_metric, many_fixes_rule).make_alarm(
            scope
        )
        recent_fixes_alarm = MetricAlarm(
            FIXES_STILL_COMING_ALARM, recent_fixes_metric, any_fix_rule
        ).make_alarm(scope)
        verification_alarm = MetricAlarm(
            FIX_BEING_VERIFIED_ALARM, unverified_fixes_metric, minutes_in_a_row_rule
        ).make_alarm(scope)
        long_verification_alarm = MetricAlarm(
            LONG_VERIFICATION_ALARM, unverified_fixes_metric, long_verification_rule
        ).make_alarm(scope)
        no_long_verification_rule = cloudwatch.AlarmRule.not_(long_verification_alarm)
        self.spike_rule = cloudwatch.AlarmRule.all_of(
            unusual_fixes_alarm, many_fixes_alarm, recent_fixes_alarm
        )
        self.suppression_rule = cloudwatch.AlarmRule.all_of(
            verification_alarm, no_long_verification_rule
        )
