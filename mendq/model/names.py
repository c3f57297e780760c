"""Names of Mendq's own metrics, roles and queues, and the number of fixes that raises an alarm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from mendq.model.case import WROTE, State
from mendq.model.limits import Limits

NAMESPACE = "Mendq"


class OwnMetric(StrEnum):
    """Mendq's own metrics, except those of the nightly job (`mendq/nightly/outcome.py`)."""

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
HEARTBEAT = OwnMetric.OLDEST_OPEN_CASE_AGE

# follow_up sends these too. It sends zeros if alarms need them.
GAUGES = frozenset(
    {
        OwnMetric.ESCALATED_CASES_OPEN,
        OwnMetric.PROPOSED_CASES_OPEN,
        OwnMetric.FIXES_BEING_VERIFIED,
    }
)
# All other metrics are sent only with a failed call, an error, a redrive, a scan of managed queues
# or a finding. AWS bills them only for the hours in which they are sent. In all other hours they
# are missing, not zero.
_SENT_ANYWAY = frozenset(
    {
        OwnMetric.AUTO_FIXES,
        OwnMetric.PROBES_LOST,
        HEARTBEAT,
        *GAUGES,
        OwnMetric.REPORTS_DELIVERED,
        OwnMetric.REPORTS_NOT_DELIVERED,
        OwnMetric.WEEKS_FAILED,
    }
)
WHEN_SOMETHING_HAPPENS = frozenset(OwnMetric) - _SENT_ANYWAY

# Mendq records AWS Health events about these services.
HEALTH_SOURCE = "aws.health"
HEALTH_SERVICES = ("KMS", "LAMBDA", "SQS")

REDRIVE = "redrive"
SCHEDULE = "schedule"
NIGHTLY = "nightly"
PROBE = "probe"
# The role with which EventBridge calls a paging tool. It has no SQS rights.
PAGING = "paging"
# The role with which CloudFormation calls the template hook. It has no SQS rights.
ASKING = "template-hook-caller"

# The EventBridge rule excludes calls by these roles, so that a failing call by Mendq never starts a
# fix. The probe's role is not among them, because its call must be seen.
LEFT_OUT = (
    "heal",
    "attach-dlq",
    "restore-policy",
    REDRIVE,
    "start-nightly",
    "watch-nightly",
    SCHEDULE,
    NIGHTLY,
    "deliver-report",
    "follow-up",
    "approve",
    "rollback",
    "scan",
)

ROLE_PURPOSES = (*LEFT_OUT, PROBE)


# The name of a role by purpose and region: `mendq-heal-eu-west-1`.
role_name = "mendq-{}-{}".format
# The name of the case bucket by account and region. An organization's hub reads it by this name.
case_bucket_name = "mendq-cases-{}-{}".format

PERIOD = timedelta(minutes=15)
LEAST_FIXES = 3
# The alarm on fixes reads its metrics for this number of periods.
PERIODS = 3
CEILING_MINUTES = 3
# The time that an alarm needs to notice a change of its metric.
_NOTICING = timedelta(minutes=3)
# If no fix came for this time, the series of fixes is over. It is shorter than PERIOD, so that the
# alarm still waits at the time when it notices the end.
STILL_COMING = PERIOD - _NOTICING
# If fixes come at longer intervals than this, fewer than LEAST_FIXES come in a PERIOD.
_APART = PERIOD / LEAST_FIXES


def most_fixes(limits: Limits) -> int:
    """Return the ceiling of fixes: the number of fixes in one PERIOD at which an alarm rings.

    The alarm rings at this number or more, even if so many fixes are usual in this account.
    """
    return CEILING_MINUTES * limits.writes_per_minute


def count_fixes_being_verified(
    cases: Iterable[tuple[State, datetime]], now: datetime, limits: Limits
) -> int:
    """Return the number of new fixes that are not verified yet, for the alarm on many fixes.

    The alarm does not ring while this number is above 0: Mendq needs at least one PERIOD after a
    fix to see if calls still fail. Fixes of cases that were opened before the last PERIOD, for
    example after a person's approval, do not count.

    Args:
        cases: State and opening time of every open case.
        now: The present time.
        limits: The account's limits.

    Returns:
        0 if there are too few fixes for the alarm to ring, if fixes have come for so long that it
        must ring now, or if `most_fixes` is reached.
    """
    ages: list[timedelta] = []
    young: list[State] = []
    for state, opened_at in cases:
        if state in WROTE:
            age = now - opened_at
            ages.append(age)
            if age < PERIOD:
                young.append(state)
    if not _may_ring(ages) or _go_on(ages) or len(young) >= most_fixes(limits):
        return 0
    return young.count(State.APPLIED)


def _may_ring(ages: Sequence[timedelta]) -> bool:
    """Return True if enough fixes for the alarm came in the last PERIODS periods.

    Fixes that are younger than STILL_COMING do not count, because more may follow them.
    """
    return sum(STILL_COMING <= age < PERIODS * PERIOD for age in ages) >= LEAST_FIXES


def _go_on(ages: Sequence[timedelta]) -> bool:
    """Return True if fixes still come, and the alarm would have rung almost a PERIOD ago.

    The alarm needs the time `_NOTICING` to see that waiting begins, and again to see that it ends.
    So this time counts twice.
    """
    old = sum(2 * PERIOD - 2 * _NOTICING < age < (PERIODS + 1) * PERIOD for age in ages)
    return old >= LEAST_FIXES and any(age < _APART for age in ages)


PROBE_QUEUE = "mendq-probe.fifo"
# The user agent of calls by the `mendq` command begins so.
OPERATOR_AGENT = "mendq/cli"
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
