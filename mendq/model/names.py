"""Names of Mendq's own metrics and roles, and when many fixes are an alarm."""

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


# follow_up sends it each minute, zero or not.
HEARTBEAT = OwnMetric.OLDEST_OPEN_CASE_AGE

# follow_up sends them too, their zeros where alarms stand on them.
GAUGES = frozenset(
    {
        *(OwnMetric.ESCALATED_CASES_OPEN, OwnMetric.PROPOSED_CASES_OPEN),
        OwnMetric.FIXES_BEING_VERIFIED,
    }
)
# All others come with a failed call, an error, a redrive, a scan of managed queues or a finding:
# they are billed for the hours in which they do, and are missing, not zero, in all others.
_SENT_ANYWAY = frozenset(
    {
        *(OwnMetric.AUTO_FIXES, OwnMetric.PROBES_LOST, HEARTBEAT, *GAUGES),
        *(OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED, OwnMetric.WEEKS_FAILED),
    }
)
WHEN_SOMETHING_HAPPENS = frozenset(OwnMetric) - _SENT_ANYWAY

# Of which AWS Health's events are noted.
HEALTH_SOURCE, HEALTH_SERVICES = "aws.health", ("KMS", "LAMBDA", "SQS")

REDRIVE = "redrive"
SCHEDULE = "schedule"
NIGHTLY = "nightly"
PROBE = "probe"
# What EventBridge takes on to call a paging tool: it asks nothing of SQS.
PAGING = "paging"
# What CloudFormation takes on to ask the template hook, the same.
ASKING = "template-hook-caller"

# Left out by the rule, so that a failing call of ours never starts a fix. The role of
# the probe is not among them: its call is meant to be seen.
LEFT_OUT = (
    *("heal", "attach-dlq", "restore-policy", REDRIVE),
    *("start-nightly", "watch-nightly", SCHEDULE, NIGHTLY, "deliver-report"),
    *("follow-up", "approve", "rollback", "scan"),
)

ROLE_PURPOSES = (*LEFT_OUT, PROBE)


# The name of a role, by its purpose and region: `mendq-heal-eu-west-1`.
role_name = "mendq-{}-{}".format
# The case bucket of an account and region, where an organization's hub reads it: by its name.
case_bucket_name = "mendq-cases-{}-{}".format

PERIOD = timedelta(minutes=15)
LEAST_FIXES = 3
# The alarm looks back as far.
PERIODS = 3
CEILING_MINUTES = 3
# What an alarm needs to notice.
_NOTICING = timedelta(minutes=3)
# No fix for so long, and they are over: what holds back still does when the alarm sees that.
STILL_COMING = PERIOD - _NOTICING
# Those that come more rarely are fewer than LEAST_FIXES in a PERIOD.
_APART = PERIOD / LEAST_FIXES


def ceiling(limits: Limits) -> int:
    """So many fixes in one PERIOD are too many, whatever is usual."""
    return CEILING_MINUTES * limits.writes_per_minute


def count_fixes_being_verified(
    cases: Iterable[tuple[State, datetime]], now: datetime, limits: Limits
) -> int:
    """How many fixes of the last PERIOD an alarm on many of them waits for.

    0 where none can ring yet, or fixes go on or storm. `cases` are the open ones: their state, and
    when they were opened. A fix whose case is older, as one that a person approved, is not waited
    for; one that failed calls asked for proves good in no less than a PERIOD.
    """
    fixes = [(state, now - opened_at) for state, opened_at in cases if state in WROTE]
    ages = [age for _, age in fixes]
    young = [state for state, age in fixes if age < PERIOD]
    if not _may_ring(ages) or _go_on(ages) or len(young) >= ceiling(limits):
        return 0
    return young.count(State.APPLIED)


def _may_ring(ages: Sequence[timedelta]) -> bool:
    """One of its two PERIODs is not the newest."""
    return sum(STILL_COMING <= age < PERIODS * PERIOD for age in ages) >= LEAST_FIXES


def _go_on(ages: Sequence[timedelta]) -> bool:
    """They still come, and if the alarm fired, it did so almost a whole PERIOD ago.

    What holds back ends as long after this as it may take to begin: hence twice.
    """
    old = sum(2 * PERIOD - 2 * _NOTICING < age < (PERIODS + 1) * PERIOD for age in ages)
    return old >= LEAST_FIXES and any(age < _APART for age in ages)


PROBE_QUEUE = "mendq-probe.fifo"
# How the user agent of `mendq`'s calls begins, made with an operator's own credentials.
OPERATOR_AGENT = "mendq/cli"
# The SQS calls that CloudTrail counts as data events.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/logging-using-cloudtrail.html
DATA_EVENT_NAMES = (
    *("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"),
    *("DeleteMessage", "DeleteMessageBatch"),
    *("GetQueueAttributes", "GetQueueUrl"),
    *("ListDeadLetterSourceQueues", "ListQueues", "ListQueueTags"),
    *("ReceiveMessage", "SendMessage", "SendMessageBatch"),
)
