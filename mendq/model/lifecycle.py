"""The lifecycle of a case: when follow_up moves it, and into which state.

`FOLLOW_UP_TRANSITIONS` is a table of the transitions that follow_up makes, because of the queue's
facts or because of time. `make_next_transition` reads it from the top, and the first row that fits
the case's state and its evidence moves the case. `CHECK_BY_CONDITION` has the check for each
condition in the table. `mendq.model.other_transitions` has the transitions that heal, the owners of
fixes and people make. docs/states.md shows both tables to operators, in the words of
`CaseCondition`.

The rules behind the order of the rows:

1. A deleted or unmanaged queue comes first. It ends the case, because nothing can be proven about
   the queue.
2. A person's value comes before any proof. The queue no longer has Mendq's value, so its failed
   calls and metrics say nothing about the fix.
3. Harm comes before success. A change that may do harm is never counted as a fix. If CloudWatch
   has too little data to show harm, the fix is not counted either: the case waits as unverified, is
   checked again each EVIDENCE_CHECK_INTERVAL, and says so at its end. It is never rolled back for
   want of data.
4. Failed calls come before silence. A fix is proven only if the symptom is absent for long enough,
   no harm shows, and messages were deleted since. If the fault was in the configuration and no call
   failed, no deleted message is needed: a scan that does not find the fault again is the proof.
5. Time comes last. It ends the cases that nothing else has ended, so that no case stays open
   forever. `find_state_time_limit` (mendq.model.state) has the time limit of each state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from mendq.model.case import Case
from mendq.model.evidence import Evidence
from mendq.model.harms import OWN_CHANGE_CODE, find_harm_sign
from mendq.model.limits import Timing
from mendq.model.state import (
    SILENT_DAYS,
    STATES_UNDER_VERIFICATION,
    STATES_WITH_FIX_IN_PLACE,
    State,
)
from mendq.model.steps import SetVisibilityTimeout

# How long Mendq waits for CloudTrail to deliver failed calls. AWS says about five minutes on
# average, and guarantees nothing.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_LAG = timedelta(minutes=15)
# A scan runs every hour and measures six hours. If no scan finds a symptom in the sum of both, it
# is absent.
SCAN_INTERVAL_AND_WINDOW = timedelta(hours=7)
QUIET_TIME_AFTER_FAILURES = timedelta(days=1)
# How often follow_up checks a case that waits for evidence.
EVIDENCE_CHECK_INTERVAL = timedelta(hours=1)
# How often follow_up calls the owner of the write for which a case waits.
OWNER_CALL_INTERVAL = timedelta(minutes=5)
# The shortest time between two ticks of a redrive. It is less than the minute between two runs of
# follow_up, so that each run starts a tick.
REDRIVE_TICK_INTERVAL = timedelta(seconds=30)

# The states that failed calls may end. A case in one of them is checked when a call arrives.
STATES_ENDED_BY_FAILED_CALLS = (*STATES_UNDER_VERIFICATION, State.WATCHING)
# In these states Mendq only waits. Meanwhile the queue may be deleted or become unmanaged.
WAITING_STATES = (State.WATCHING, State.OVERRIDDEN, State.ESCALATED)
# In these states a Lambda that applies fixes (the owner of the steps) must act next.
STATES_THAT_CALL_OWNER = (State.APPROVED, State.INEFFECTIVE)
# In these states a change is watched for the harm that its kind of step can do.
STATES_WATCHED_FOR_HARM = (*STATES_UNDER_VERIFICATION, State.WATCHING)
# A person must look at cases in these states. follow_up closes them if the symptom stays away.
STATES_WAITING_FOR_PERSON = (State.ESCALATED, State.OVERRIDDEN)
# In these states the queue may have a value that the case wrote.
STATES_WITH_WRITTEN_VALUE = (*STATES_WITH_FIX_IN_PLACE, State.ESCALATED, State.CLOSED)

MAY_DO_HARM_REASON = "the change itself may do harm"
# Why a case is closed although nothing showed that the symptom stayed away.
QUEUE_GONE_REASON = "the queue is gone, or another one of its name"
QUEUE_UNMANAGED_REASON = "the queue is not managed any more"


class QueueStatus(Enum):
    """The state of a case's queue, compared with the values that the case wrote.

    OURS: the queue has these values. OVERRULED: the queue has other values. GONE: the queue was
    deleted, or created again. UNMANAGED: Mendq no longer manages the queue.
    """

    OURS = "ours"
    OVERRULED = "overruled"
    GONE = "gone"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True)
class VerificationEvidence:
    """The facts about a case's queue since the case's last transition.

    Args:
        timing: The account's waiting times.
        failures: The newest failed calls since that transition. Calls before
            `find_start_of_counted_failures` are no evidence against a fix.
        deletes: The number of messages deleted since `find_start_of_quiet`. None if it was not
            read, or if CloudWatch did not answer.
        queue_status: The state of the queue; None if it was not read, or if it does not matter.
        is_fault_of_configuration: True if the fault was in the configuration and no call failed. No
            deleted message is then needed as proof.
        harm: A text with the change and the measured sign of its harm; empty if there is no sign.
            None if AWS could not be read, or if `lacks_harm_data`; the fix is then not verified.
        lacks_harm_data: True if CloudWatch answered and has too little data to show harm.
    """

    timing: Timing
    failures: Evidence = field(default_factory=Evidence)
    deletes: int | None = None
    queue_status: QueueStatus | None = None
    is_fault_of_configuration: bool = False
    harm: str | None = ""
    lacks_harm_data: bool = False


def find_start_of_counted_failures(case: Case, timing: Timing) -> datetime:
    """Return the time from which failed calls show that the case's change did not help.

    A change takes `propagation_seconds` to reach all of SQS. After a change of the visibility
    timeout, add the longer of the old and the new timeout: messages that were in flight at the
    change keep the old timeout, so their calls may still fail. If the case is in no state of
    STATES_UNDER_VERIFICATION, return the time of its transition.
    """
    if case.state not in STATES_UNDER_VERIFICATION:
        return case.at
    visibility_timeouts = [0]
    for step in case.steps:
        if step["attribute"] == SetVisibilityTimeout.attribute:
            visibility_timeouts += [int(step["before"]), int(step["after"])]
    wait_seconds = timing.propagation_seconds + max(visibility_timeouts)
    return case.at + timedelta(seconds=wait_seconds)


def find_start_of_quiet(case: Case, evidence: VerificationEvidence) -> datetime:
    """Return the time since which no call has failed.

    This is the time of the last failed call, but at least `find_start_of_counted_failures`.
    """
    failure_times = [sighting.event_time for sighting in evidence.failures.sightings]
    return max([find_start_of_counted_failures(case, evidence.timing), *failure_times])


def find_end_of_required_quiet(case: Case, evidence: VerificationEvidence) -> datetime:
    """Return the time at which the symptom will have been absent for long enough.

    It is `find_start_of_quiet` plus one of these times:

    - a day if calls failed since the change, because calls may fail only now and then;
    - CLOUDTRAIL_LAG if failed calls opened the case, so that CloudTrail can deliver new ones;
    - SCAN_INTERVAL_AND_WINDOW if a scan found the symptom and no call failed, so that another scan
      can find it again.
    """
    last_failure_at = find_start_of_quiet(case, evidence)
    if evidence.failures.sightings:
        return last_failure_at + QUIET_TIME_AFTER_FAILURES
    if case.evidence["failed_calls"]:
        return last_failure_at + CLOUDTRAIL_LAG
    return last_failure_at + SCAN_INTERVAL_AND_WINDOW


class CaseCondition(StrEnum):
    """The condition of a row of FOLLOW_UP_TRANSITIONS, in the words of docs/states.md."""

    QUEUE_GONE = "the queue was deleted, or made again under the same name"
    QUEUE_UNMANAGED = "neither tag nor settings manage the queue any more"
    VALUE_REPLACED = "the queue holds another value than Mendq wrote"
    CHANGE_MAY_DO_HARM = "measurements show that the change itself may do harm"
    FAILED_AGAIN = "as many calls failed after the change as the symptom needs as evidence"
    PROVEN_BY_DELETES = (
        "the value is kept, the symptom is gone, messages were deleted, and no harm shows"
    )
    PROVEN_BY_SCAN = "a wrong configuration was fixed, no scan finds it again, and no harm shows"
    SYMPTOM_ABSENT_WITHOUT_HARM_DATA = (
        "the symptom was absent for long enough, and CloudWatch has too little data to show harm"
    )
    SYMPTOM_ABSENT = (
        "the symptom was absent for long enough; if calls failed since the change, for a day"
    )
    NOT_QUIET_IN_TIME = (
        "the time to watch a fix is over, and the symptom was not absent for long enough"
    )
    FAILED_ON_LAST_DAY = "the longest time in this state is over, and a call failed on its last day"
    NO_HARM_DATA_AFTER_A_WEEK = (
        "the week in which something may prove the fix is over, and CloudWatch has too little data "
        "to show harm"
    )
    UNPROVEN_FOR_A_WEEK = "the week in which something may prove the fix is over"
    NOT_APPROVED_IN_TIME = "the time in which a person may approve the plan is over"
    NOT_WRITTEN_IN_TIME = "the time in which the approved plan may be written is over"
    WATCHED_TO_THE_END = "the time to watch a verified fix is over"
    NO_NEXT_STEP_IN_A_DAY = "a day is over in which the owner of the write made no next step"
    NO_FAILURE_FOR_A_WEEK = f"no call has failed for {SILENT_DAYS} days"
    ALWAYS = "at once"


@dataclass(frozen=True)
class FollowUpTransition:
    """A row of FOLLOW_UP_TRANSITIONS: a case moves to another state if the condition is true.

    Attributes:
        states_before: The states from which the transition is possible.
        condition: The condition for the transition.
        state_after: The state after the transition.
        because: The reason for people. For CHANGE_MAY_DO_HARM, the measured harm replaces it.
        code: The refusal code of the new transition; empty if there is none.
    """

    states_before: tuple[State, ...]
    condition: CaseCondition
    state_after: State
    because: str
    code: str = ""


# The transitions that follow_up makes. The first row that fits is used.
FOLLOW_UP_TRANSITIONS = (
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED, *WAITING_STATES),
        condition=CaseCondition.QUEUE_GONE,
        state_after=State.CLOSED,
        because=QUEUE_GONE_REASON,
    ),
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED, *WAITING_STATES),
        condition=CaseCondition.QUEUE_UNMANAGED,
        state_after=State.CLOSED,
        because=QUEUE_UNMANAGED_REASON,
    ),
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED),
        condition=CaseCondition.VALUE_REPLACED,
        state_after=State.OVERRIDDEN,
        because="somebody has set another value since",
    ),
    FollowUpTransition(
        states_before=STATES_WATCHED_FOR_HARM,
        condition=CaseCondition.CHANGE_MAY_DO_HARM,
        state_after=State.ESCALATED,
        because=MAY_DO_HARM_REASON,
        code=OWN_CHANGE_CODE,
    ),
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED),
        condition=CaseCondition.FAILED_AGAIN,
        state_after=State.INEFFECTIVE,
        because="it shows as before",
    ),
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED),
        condition=CaseCondition.PROVEN_BY_DELETES,
        state_after=State.VERIFIED,
        because="it did not show again, and messages were deleted",
    ),
    FollowUpTransition(
        states_before=(State.APPLIED, State.UNVERIFIED),
        condition=CaseCondition.PROVEN_BY_SCAN,
        state_after=State.VERIFIED,
        because="it stands, and no scan has found it again",
    ),
    FollowUpTransition(
        states_before=(State.APPLIED,),
        condition=CaseCondition.SYMPTOM_ABSENT_WITHOUT_HARM_DATA,
        state_after=State.UNVERIFIED,
        because=(
            "the fault did not show again, and CloudWatch has too little data to tell whether the "
            "fix does harm"
        ),
    ),
    FollowUpTransition(
        states_before=(State.APPLIED,),
        condition=CaseCondition.SYMPTOM_ABSENT,
        state_after=State.UNVERIFIED,
        because="it did not show again; nothing proves yet that it helped",
    ),
    FollowUpTransition(
        states_before=(State.APPLIED,),
        condition=CaseCondition.NOT_QUIET_IN_TIME,
        state_after=State.ESCALATED,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        states_before=(State.UNVERIFIED,),
        condition=CaseCondition.FAILED_ON_LAST_DAY,
        state_after=State.ESCALATED,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        states_before=(State.UNVERIFIED,),
        condition=CaseCondition.NO_HARM_DATA_AFTER_A_WEEK,
        state_after=State.CLOSED,
        because=(
            "the fix stays and was never verified: in a week CloudWatch had too little data to "
            "tell whether it does harm. Check that the queue's consumers work"
        ),
    ),
    FollowUpTransition(
        states_before=(State.UNVERIFIED,),
        condition=CaseCondition.UNPROVEN_FOR_A_WEEK,
        state_after=State.CLOSED,
        because="for a week nothing proved it or spoke up",
    ),
    FollowUpTransition(
        states_before=(State.PROPOSED,),
        condition=CaseCondition.NOT_APPROVED_IN_TIME,
        state_after=State.EXPIRED,
        because="nobody approved it in time",
    ),
    FollowUpTransition(
        states_before=(State.APPROVED,),
        condition=CaseCondition.NOT_WRITTEN_IN_TIME,
        state_after=State.EXPIRED,
        because="it was approved and could not be done in time",
    ),
    FollowUpTransition(
        states_before=(State.VERIFIED,),
        condition=CaseCondition.ALWAYS,
        state_after=State.WATCHING,
        because="watched, in case it comes back",
    ),
    FollowUpTransition(
        states_before=(State.WATCHING,),
        condition=CaseCondition.FAILED_AGAIN,
        state_after=State.INEFFECTIVE,
        because="it came back",
    ),
    FollowUpTransition(
        states_before=(State.WATCHING,),
        condition=CaseCondition.FAILED_ON_LAST_DAY,
        state_after=State.ESCALATED,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        states_before=(State.WATCHING,),
        condition=CaseCondition.WATCHED_TO_THE_END,
        state_after=State.CLOSED,
        because="it stayed away",
    ),
    FollowUpTransition(
        states_before=(State.INEFFECTIVE,),
        condition=CaseCondition.NO_NEXT_STEP_IN_A_DAY,
        state_after=State.ESCALATED,
        because="no further step was possible in a day",
    ),
    FollowUpTransition(
        states_before=STATES_WAITING_FOR_PERSON,
        condition=CaseCondition.NO_FAILURE_FOR_A_WEEK,
        state_after=State.CLOSED,
        because=f"it stayed away for {SILENT_DAYS} days",
    ),
)


# How each condition is checked.


def _is_queue_gone(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    return evidence.queue_status is QueueStatus.GONE


def _is_queue_unmanaged(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    return evidence.queue_status is QueueStatus.UNMANAGED


def _is_value_replaced(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    return evidence.queue_status is QueueStatus.OVERRULED


def _may_change_do_harm(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    return bool(evidence.harm)


def _has_failed_again(case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    return evidence.failures.since(
        find_start_of_counted_failures(case, evidence.timing)
    ).is_sufficient


def _is_proven_by_deletes(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    return _is_fixed_and_harmless(case, evidence, now) and bool(evidence.deletes)


def _is_proven_by_scan(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    return _is_fixed_and_harmless(case, evidence, now) and evidence.is_fault_of_configuration


def _is_fixed_and_harmless(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """Return True if the value is kept, the symptom is absent, and harm could be measured.

    An earlier row of the table handles measured harm.
    """
    is_value_kept = evidence.queue_status is QueueStatus.OURS
    was_harm_measured = evidence.harm is not None
    return is_value_kept and was_harm_measured and _is_symptom_absent(case, evidence, now)


def _is_symptom_absent(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    return now >= find_end_of_required_quiet(case, evidence)


def _is_symptom_absent_without_harm_data(
    case: Case, evidence: VerificationEvidence, now: datetime
) -> bool:
    return evidence.lacks_harm_data and _is_symptom_absent(case, evidence, now)


def _is_time_limit_over_without_harm_data(
    case: Case, evidence: VerificationEvidence, now: datetime
) -> bool:
    return evidence.lacks_harm_data and _is_time_limit_over(case, evidence, now)


def _is_time_limit_over(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """Return True if the time limit of the case's state is over."""
    time_limit = case.find_time_limit(evidence.timing)
    return time_limit is not None and now >= case.at + time_limit


def _has_failed_on_last_day(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    recent_failures = evidence.failures.since(now - QUIET_TIME_AFTER_FAILURES).sightings
    return _is_time_limit_over(case, evidence, now) and bool(recent_failures)


def _was_quiet_for_a_week(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    return now >= find_start_of_quiet(case, evidence) + timedelta(days=SILENT_DAYS)


def _is_always_true(_case: Case, _evidence: VerificationEvidence, _now: datetime) -> bool:
    return True


CHECK_BY_CONDITION: Mapping[
    CaseCondition, Callable[[Case, VerificationEvidence, datetime], bool]
] = {
    CaseCondition.QUEUE_GONE: _is_queue_gone,
    CaseCondition.QUEUE_UNMANAGED: _is_queue_unmanaged,
    CaseCondition.VALUE_REPLACED: _is_value_replaced,
    CaseCondition.CHANGE_MAY_DO_HARM: _may_change_do_harm,
    CaseCondition.FAILED_AGAIN: _has_failed_again,
    CaseCondition.PROVEN_BY_DELETES: _is_proven_by_deletes,
    CaseCondition.PROVEN_BY_SCAN: _is_proven_by_scan,
    CaseCondition.SYMPTOM_ABSENT_WITHOUT_HARM_DATA: _is_symptom_absent_without_harm_data,
    CaseCondition.SYMPTOM_ABSENT: _is_symptom_absent,
    CaseCondition.NOT_QUIET_IN_TIME: _is_time_limit_over,
    CaseCondition.FAILED_ON_LAST_DAY: _has_failed_on_last_day,
    CaseCondition.NO_HARM_DATA_AFTER_A_WEEK: _is_time_limit_over_without_harm_data,
    CaseCondition.UNPROVEN_FOR_A_WEEK: _is_time_limit_over,
    CaseCondition.NOT_APPROVED_IN_TIME: _is_time_limit_over,
    CaseCondition.NOT_WRITTEN_IN_TIME: _is_time_limit_over,
    CaseCondition.WATCHED_TO_THE_END: _is_time_limit_over,
    CaseCondition.NO_NEXT_STEP_IN_A_DAY: _is_time_limit_over,
    CaseCondition.NO_FAILURE_FOR_A_WEEK: _was_quiet_for_a_week,
    CaseCondition.ALWAYS: _is_always_true,
}


def make_next_transition(case: Case, evidence: VerificationEvidence, now: datetime) -> Case | None:
    """Return the case with its next transition; None if the case stays in its state.

    The redrive Lambda moves the case of a running redrive, so return None for it, unless its queue
    was deleted.
    """
    if case.is_redriving and evidence.queue_status is not QueueStatus.GONE:
        return None
    for transition_row in FOLLOW_UP_TRANSITIONS:
        if case.state in transition_row.states_before and CHECK_BY_CONDITION[
            transition_row.condition
        ](case, evidence, now):
            return _apply_transition_row(transition_row, case, evidence, now)
    return None


def _apply_transition_row(
    transition_row: FollowUpTransition, case: Case, evidence: VerificationEvidence, now: datetime
) -> Case:
    """Return the case with the transition that the row describes.

    If calls failed again after the fix, add them to the case's evidence.
    """
    reason = transition_row.because
    if transition_row.condition is CaseCondition.CHANGE_MAY_DO_HARM:
        reason = evidence.harm or ""
    case_evidence = case.evidence
    if transition_row.condition is CaseCondition.FAILED_AGAIN:
        case_evidence = evidence.failures.merge_into(case.evidence)
    return case.move_to(
        transition_row.state_after, reason, now, code=transition_row.code, evidence=case_evidence
    )


def due_at(case: Case, evidence: VerificationEvidence, now: datetime) -> datetime:
    """Return when follow_up must check the case next, if no failed call arrives earlier."""
    if case.is_redriving:
        return now if now <= case.at else now + REDRIVE_TICK_INTERVAL
    if case.state in STATES_THAT_CALL_OWNER:
        return now if now <= case.at else now + OWNER_CALL_INTERVAL
    if case.state is State.VERIFIED:
        return case.at
    time_limit = case.find_time_limit(evidence.timing)
    next_check_at = _compute_wait_end(case, evidence, now, time_limit)
    if case.state in STATES_WATCHED_FOR_HARM and find_harm_sign(case) is not None:
        next_check_at = min(next_check_at, now + EVIDENCE_CHECK_INTERVAL)
    return next_check_at if time_limit is None else min(next_check_at, case.at + time_limit)


def _compute_wait_end(
    case: Case, evidence: VerificationEvidence, now: datetime, time_limit: timedelta | None
) -> datetime:
    """Return the time for which the case's state waits. `due_at` may choose an earlier time.

    - For a fix under verification, it is the time at which the proof can be complete. If that time
      is past, it is EVIDENCE_CHECK_INTERVAL from now.
    - For another state with a time limit, it is the end of the limit.
    - For a state without a limit, it is the end of SILENT_DAYS without failed calls, but at most
      EVIDENCE_CHECK_INTERVAL from now.
    """
    if case.state in STATES_UNDER_VERIFICATION:
        proven_at = find_end_of_required_quiet(case, evidence)
        return proven_at if proven_at > now else now + EVIDENCE_CHECK_INTERVAL
    if time_limit is not None:
        return case.at + time_limit
    silent_days_end = find_start_of_quiet(case, evidence) + timedelta(days=SILENT_DAYS)
    # An alarm counts open cases, so a case must not stay open long after its queue was deleted.
    return (
        min(silent_days_end, now + EVIDENCE_CHECK_INTERVAL)
        if silent_days_end > now
        else silent_days_end
    )
