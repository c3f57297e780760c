"""The metrics that Mendq sends, by name: what the Lambdas count and what alarms and pages watch.

A series that exists all month costs money, so none has a dimension but `symptom`, and that one only
where it is not zero. https://aws.amazon.com/cloudwatch/pricing/
"""

from __future__ import annotations

from enum import StrEnum

NAMESPACE = "Mendq"


class OwnMetric(StrEnum):
    """Those of the night stand in `night_watch.NightMetric`."""

    FAILED_CALLS_SEEN = "FailedCallsSeen"
    UNKNOWN_ERROR_CODES = "UnknownErrorCodes"
    UNREADABLE_EVENTS = "UnreadableEvents"
    HEAL_ERRORS = "HealErrors"
    FOLLOW_UP_ERRORS = "FollowUpErrors"
    AUTO_FIXES = "AutoFixes"
    REFUSALS = "Refusals"
    RECURRENCES = "Recurrences"
    TIME_TO_HEAL = "TimeToHeal"
    ESCALATED_CASES_OPEN = "EscalatedCasesOpen"
    PROPOSED_CASES_OPEN = "ProposedCasesOpen"
    OLDEST_OPEN_CASE_AGE = "OldestOpenCaseAgeSeconds"
    FIXES_BEING_VERIFIED = "FixesBeingVerified"
    PULSES_LOST = "PulsesLostInARow"
    REDRIVEN_MESSAGES = "RedrivenMessages"
    QUARANTINED_MESSAGES = "QuarantinedMessages"
    SWEPT_QUEUES = "SweptQueues"
    SWEEP_SKIPPED = "SweepSkipped"
    SWEEP_ERRORS = "SweepErrors"
    SWEEP_FINDINGS = "SweepFindings"
    REPORTS_DELIVERED = "ReportsDelivered"
    REPORTS_NOT_DELIVERED = "ReportsNotDelivered"
    WEEKS_FAILED = "WeeksFailed"


# follow_up sends it each minute, zero or not.
HEARTBEAT = OwnMetric.OLDEST_OPEN_CASE_AGE
# What comes with a failed call, an error, a redrive, a sweep of managed queues or a finding is
# billed for the hours in which it does, and is missing, not zero, in all others.
WHEN_SOMETHING_HAPPENS = frozenset(
    {
        OwnMetric.FAILED_CALLS_SEEN,
        OwnMetric.UNKNOWN_ERROR_CODES,
        OwnMetric.UNREADABLE_EVENTS,
        OwnMetric.HEAL_ERRORS,
        OwnMetric.FOLLOW_UP_ERRORS,
        OwnMetric.REFUSALS,
        OwnMetric.RECURRENCES,
        OwnMetric.SWEPT_QUEUES,
        OwnMetric.SWEEP_SKIPPED,
        OwnMetric.SWEEP_ERRORS,
        OwnMetric.TIME_TO_HEAL,
        OwnMetric.REDRIVEN_MESSAGES,
        OwnMetric.QUARANTINED_MESSAGES,
        OwnMetric.SWEEP_FINDINGS,
    }
)
