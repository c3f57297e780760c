"""Names of Mendq's metrics, roles and queues, and the rules of the alarm on many fixes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from mendq.model.limits import Limits
from mendq.model.state import STATES_WITH_FIX_IN_PLACE, State

METRIC_NAMESPACE = "Mendq"


class OwnMetric(StrEnum):
    """Mendq's own metrics, except those of a nightly run (`mendq/nightly/outcome.py`)."""

    FAILED_CALLS_SEEN = "FailedCallsSeen"
    UNKNOWN_ERROR_CODES = "UnknownErrorCodes"
    HEAL_ERRORS = "HealErrors"
    FOLLOW_UP_ERRORS = "FollowUpErrors"
    AUTO_FIXES = "AutoFixes"
    REFUSALS = "Refusals"
    RECURRENCES = "Recurrences"
    ESCALATIONS = "Escalations"
    TIME_TO_HEAL = "TimeToHeal"
    ESCALATED_CASES_OPEN = "EscalatedCasesOpen"
    PROPOSED_CASES_OPEN = "ProposedCasesOpen"
    OLDEST_OPEN_CASE_AGE = "OldestOpenCaseAgeSeconds"
    FIXES_BEING_VERIFIED = "FixesBeingVerified"
    PROBES_LOST = "ProbesLostInARow"
    REDRIVEN_MESSAGES = "RedrivenMessages"
    QUARANTINED_MESSAGES = "QuarantinedMessages"
    SCAN_ERRORS = "ScanErrors"
    REPORTS_DELIVERED = "ReportsDelivered"
    REPORTS_NOT_DELIVERED = "ReportsNotDelivered"
    WEEKS_FAILED = "WeeksFailed"


# follow_up sends this metric each minute, even if it is 0.
HEARTBEAT_METRIC = OwnMetric.OLDEST_OPEN_CASE_AGE

# follow_up sends these metrics too. It sends zeros if alarms need them.
GAUGE_METRICS = frozenset(
    {
        OwnMetric.ESCALATED_CASES_OPEN,
        OwnMetric.PROPOSED_CASES_OPEN,
        OwnMetric.FIXES_BEING_VERIFIED,
    }
)
# All other metrics are sent only on events: a failed call, an error, a redrive, a scan of managed
# queues or a finding. AWS charges for them only in hours in which they are sent. In other hours
# they are missing, not zero.
_METRICS_SENT_REGULARLY = frozenset(
    {
        OwnMetric.AUTO_FIXES,
        OwnMetric.PROBES_LOST,
        HEARTBEAT_METRIC,
        *GAUGE_METRICS,
        OwnMetric.REPORTS_DELIVERED,
        OwnMetric.REPORTS_NOT_DELIVERED,
        OwnMetric.WEEKS_FAILED,
    }
)
METRICS_SENT_ON_EVENTS = frozenset(OwnMetric) - _METRICS_SENT_REGULARLY

# Mendq records AWS Health events about these services.
AWS_HEALTH_EVENT_SOURCE = "aws.health"
AWS_HEALTH_SERVICES = ("KMS", "LAMBDA", "SQS")

REDRIVE_ROLE_PURPOSE = "redrive"
SCHEDULE_ROLE_PURPOSE = "schedule"
NIGHTLY_ROLE_PURPOSE = "nightly"
PROBE_ROLE_PURPOSE = "probe"
# The role with which EventBridge calls a paging tool. It has no SQS rights.
PAGING_ROLE_PURPOSE = "paging"
# The role with which CloudFormation calls the template hook. It has no SQS rights.
HOOK_CALLER_ROLE_PURPOSE = "template-hook-caller"

# The EventBridge rule excludes calls by these roles, so that a failing call by Mendq never starts a
# fix. The probe's role is not in the list, because heal must see its call.
ROLE_PURPOSES_EXCLUDED_FROM_EVENTS = (
    "heal",
    "attach-dlq",
    "restore-policy",
    REDRIVE_ROLE_PURPOSE,
    "start-nightly",
    "watch-nightly",
    SCHEDULE_ROLE_PURPOSE,
    NIGHTLY_ROLE_PURPOSE,
    "deliver-report",
    "follow-up",
    "approve",
    "rollback",
    "scan",
)

ROLE_PURPOSES = (*ROLE_PURPOSES_EXCLUDED_FROM_EVENTS, PROBE_ROLE_PURPOSE)


# The name of a role by purpose and region: `mendq-heal-eu-west-1`.
role_name = "mendq-{}-{}".format
# The name of the case bucket by account and region. An organization's hub reads it by this name.
case_bucket_name = "mendq-cases-{}-{}".format

FIXES_ALARM_PERIOD = timedelta(minutes=15)
FEWEST_FIXES_TO_ALARM = 3
# The number of periods for which the alarm on fixes reads its metrics.
FIXES_ALARM_PERIODS = 3
MINUTES_OF_WRITES_AT_FIX_CEILING = 3
# The time that an alarm needs to notice a change of its metric.
_ALARM_DELAY = timedelta(minutes=3)
# If no fix came for this time, the series of fixes is over. The time is shorter than
# FIXES_ALARM_PERIOD, so that the alarm still waits when it notices the end.
FIX_SERIES_ENDS_AFTER = FIXES_ALARM_PERIOD - _ALARM_DELAY
# At longer intervals between fixes than this, fewer than FEWEST_FIXES_TO_ALARM fixes come in a
# FIXES_ALARM_PERIOD.
_LONGEST_GAP_BETWEEN_FIXES = FIXES_ALARM_PERIOD / FEWEST_FIXES_TO_ALARM


def compute_fix_ceiling(limits: Limits) -> int:
    """Return the number of fixes in one FIXES_ALARM_PERIOD at which the alarm always rings.

    With fewer fixes, the alarm rings only if the number is unusual in this account.
    """
    return MINUTES_OF_WRITES_AT_FIX_CEILING * limits.writes_per_minute


def count_fixes_being_verified(
    states_and_opening_times: Iterable[tuple[State, datetime]], now: datetime, limits: Limits
) -> int:
    """Return the number of new fixes that are not verified yet, for the alarm on many fixes.

    The alarm does not ring while this number is above 0, because Mendq needs at least one
    FIXES_ALARM_PERIOD after a fix to see if calls still fail. Only cases that were opened in the
    last FIXES_ALARM_PERIOD count, so a late fix of an older case does not count.

    Args:
        states_and_opening_times: The state and opening time of every open case.
        now: The present time.
        limits: The account's limits.

    Returns:
        The number of fixes in state APPLIED. 0 if there are too few fixes for the alarm to ring, or
        if the alarm must ring now, because fixes have continued for too long or
        `compute_fix_ceiling` is reached.
    """
    fix_ages: list[timedelta] = []
    states_of_recent_fixes: list[State] = []
    for state, opened_at in states_and_opening_times:
        if state in STATES_WITH_FIX_IN_PLACE:
            fix_age = now - opened_at
            fix_ages.append(fix_age)
            if fix_age < FIXES_ALARM_PERIOD:
                states_of_recent_fixes.append(state)
    if (
        not _can_alarm_ring(fix_ages)
        or _do_fixes_continue(fix_ages)
        or len(states_of_recent_fixes) >= compute_fix_ceiling(limits)
    ):
        return 0
    return states_of_recent_fixes.count(State.APPLIED)


def _can_alarm_ring(fix_ages: Sequence[timedelta]) -> bool:
    """Return True if enough fixes for the alarm came in the last FIXES_ALARM_PERIODS periods.

    Fixes younger than FIX_SERIES_ENDS_AFTER do not count, because more fixes may follow. `fix_ages`
    are the times since the cases were opened.
    """
    return (
        sum(
            FIX_SERIES_ENDS_AFTER <= fix_age < FIXES_ALARM_PERIODS * FIXES_ALARM_PERIOD
            for fix_age in fix_ages
        )
        >= FEWEST_FIXES_TO_ALARM
    )


def _do_fixes_continue(fix_ages: Sequence[timedelta]) -> bool:
    """Return True if fixes still come, and enough fixes for the alarm came long ago.

    The alarm must then ring without waiting longer. "Long ago" means at least two
    FIXES_ALARM_PERIODs ago, but within the last FIXES_ALARM_PERIODS + 1 periods. The two periods
    are shortened by two `_ALARM_DELAY`s, because the alarm notices the start and the end of its
    wait late.
    """
    earlier_fix_count = sum(
        2 * FIXES_ALARM_PERIOD - 2 * _ALARM_DELAY
        < fix_age
        < (FIXES_ALARM_PERIODS + 1) * FIXES_ALARM_PERIOD
        for fix_age in fix_ages
    )
    return earlier_fix_count >= FEWEST_FIXES_TO_ALARM and any(
        fix_age < _LONGEST_GAP_BETWEEN_FIXES for fix_age in fix_ages
    )


PROBE_QUEUE = "mendq-probe.fifo"
# The beginning of the user agent of calls by the `mendq` command.
OPERATOR_USER_AGENT = "mendq/cli"
# The SQS calls that CloudTrail counts as data events.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
DATA_EVENT_NAMES = (
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
    "DeleteMessage",
    "DeleteMessageBatch",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListDeadLetterSourceQueues",
    "ListQueues",
    "ListQueueTags",
    "ReceiveMessage",
    "SendMessage",
    "SendMessageBatch",
)
