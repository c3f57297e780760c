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
# The alarm looks back over this number of periods.
PERIODS = 3
CEILING_MINUTES = 3
# The time that an alarm needs to notice.
_NOTICING = timedelta(minutes=3)
# If no fix came for this time, the series of fixes is over. The alarm still waits when it notices
# that.
STILL_COMING = PERIOD - _NOTICING
# Fixes with longer gaps than this are fewer than LEAST_FIXES in a PERIOD.
_APART = PERIOD / LEAST_FIXES


def most_fixes(limits: Limits) -> int:
    """Return the number of fixes in one PERIOD that is too many, whatever is usual."""
    return CEILING_MINUTES * limits.writes_per_minute


def count_fixes_being_verified(
    cases: Iterable[tuple[State, datetime]], now: datetime, limits: Limits
) -> int:
    """Return the number of fixes of the last PERIOD that an alarm on many fixes must wait for.

    A fix of an older case, such as one that a person approved, does not count. A fix that failed
    calls asked for needs at least one PERIOD to prove itself.

    Args:
        cases: State and opening time of every open case.
        now: The present time.
        limits: The account's limits.

    Returns:
        0 if the alarm cannot ring yet, if fixes have come for a longer time, or if there are too
        many.
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
    """Return True if enough fixes came in the last PERIODS periods for the alarm to ring. The
    newest do not count, because they may still come.
    """
    return sum(STILL_COMING <= age < PERIODS * PERIOD for age in ages) >= LEAST_FIXES


def _go_on(ages: Sequence[timedelta]) -> bool:
    """Return True if fixes still come, and the alarm would have rung almost a PERIOD ago.

    Waiting may end as much later as it may begin later, so the noticing time counts twice.
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
