"""The lifecycle of a case: which transitions there are, who makes them, and when.

`TABLE` holds the transitions that follow_up makes, by what the queue shows or by time.
`MANUAL_TRANSITIONS` holds those of heal, of the owners of a write and of people. `advance` reads
`TABLE` from the top, and the first row that fits the case's state and its evidence moves the case.
docs/states.md shows both tables. Its column "when" is the docstring of a row's condition.

The rules behind the order of the rows:

1. A queue that is gone or not managed any more ends its case first. Nothing can be proven about it.
2. A person's value comes before any proof. What Mendq wrote is not there any more, so whatever the
   queue shows now is not about the fix.
3. Harm comes before success. A change that may do harm is never counted as a fix.
4. Failed calls come before silence. A fix is proven only if the symptom is absent for long enough,
   no harm shows, and messages were deleted since. If the fault was in the configuration and no call
   failed, no deleted message is needed: a scan that does not find the fault again is the proof.
5. Time comes last. It ends what nothing else has ended, so that no case stays open for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from mendq.model.case import (
    FINAL,
    NOTIFIED_AGAIN_AFTER,
    PROVING,
    SILENT_DAYS,
    WROTE,
    Case,
    State,
    longest_in,
)
from mendq.model.evidence import Evidence
from mendq.model.harms import OWN_CHANGE, sign_of
from mendq.model.limits import Timing
from mendq.model.steps import SetVisibilityTimeout

# CloudTrail delivers within about five minutes on average and promises nothing.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_LAG = timedelta(minutes=15)
# A scan runs every hour and looks back six hours: what it has not found after both is gone.
A_SCAN_AND_ITS_WINDOW = timedelta(hours=7)
A_QUIET_DAY = timedelta(days=1)
# How often follow_up looks again at a case that waits for evidence.
ASK_AGAIN = timedelta(hours=1)
# How often follow_up calls the owner of a write that a case waits for.
CALL_AGAIN = timedelta(minutes=5)
# Less than the minute between two runs of follow_up, so that no run is left out.
TICK_AGAIN = timedelta(seconds=30)

# A failed call may end these states, so the case is looked at when one arrives.
WATCHED = (*PROVING, State.WATCHING)
# In these states nobody acts. Meanwhile the queue may be deleted, or taken away from Mendq.
WAITED_OUT = (State.WATCHING, State.OVERRIDDEN, State.ESCALATED)
# In these states the Lambda that owns the next write must act.
CALLING = (State.APPROVED, State.INEFFECTIVE)
# In these states a change is watched for the harm that its kind of step can do.
HARM_WATCHED = (*PROVING, State.WATCHING)
# A person must look at these states, and they end by themselves if the symptom stays away.
LEFT_TO_A_PERSON = (State.ESCALATED, State.OVERRIDDEN)
# In these states the case has written, and no other change has overruled it.
HAS_WRITTEN = (*WROTE, State.ESCALATED, State.CLOSED)

MAY_DO_HARM = "the change itself may do harm"
# Why a case is closed although nothing showed that the symptom stayed away.
GONE = "the queue is gone, or another one of its name"
UNMANAGED = "the queue is not managed any more"


class QueueStatus(Enum):
    """How a case's queue is, compared with what the case wrote."""

    OURS = "ours"
    OVERRULED = "overruled"
    GONE = "gone"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True)
class VerificationEvidence:
    """What a case's queue shows since the case's last transition.

    Args:
        timing: The times of the settings.
        failures: The newest failed calls. Only those from `counts_from` on speak against a fix.
        deletes: Messages deleted since the symptom is absent. None if it was not read, or if
            CloudWatch did not answer.
        queue_status: None if the queue was not read.
        of_configuration: True if the fault was in the configuration and no call failed. Then no
            deleted message is needed as proof.
        harm: Names the change and what shows that it may do harm. Empty if nothing does. None if it
            could not be measured: then nothing is verified.
    """

    timing: Timing
    failures: Evidence = field(default_factory=Evidence)
    deletes: int | None = None
    queue_status: QueueStatus | None = None
    of_configuration: bool = False
    harm: str | None = ""


def counts_from(case: Case, timing: Timing) -> datetime:
    """Return when failed calls begin to speak against the case's change.

    A change takes a while to arrive. Messages in flight keep the visibility timeout that they were
    received with, and a consumer that needs longer is late until the new one has passed as well.
    """
    if case.state not in PROVING:
        return case.at
    visibility_timeouts = [0]
    for step in case.steps:
        if step["attribute"] == SetVisibilityTimeout.attribute:
            visibility_timeouts += [int(step["before"]), int(step["after"])]
    wait_seconds = timing.propagation_seconds + max(visibility_timeouts)
    return case.at + timedelta(seconds=wait_seconds)


def quiet_since(case: Case, evidence: VerificationEvidence) -> datetime:
    """Return since when no failed call is known."""
    failed_at = [sighting.event_time for sighting in evidence.failures.sightings]
    return max([counts_from(case, evidence.timing), *failed_at])


def quiet_at(case: Case, evidence: VerificationEvidence) -> datetime:
    """Return when the symptom will have been absent for long enough.

    If calls failed since the change, that takes a day, because they may fail now and then. If the
    case stands on a scan and not on failed calls, a scan must have looked again.
    """
    quiet = quiet_since(case, evidence)
    if evidence.failures.sightings:
        return quiet + A_QUIET_DAY
    if case.evidence["failed_calls"]:
        return quiet + CLOUDTRAIL_LAG
    return quiet + A_SCAN_AND_ITS_WINDOW


# The conditions of the table. docs/states.md shows their docstrings.


def _is_gone(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    """The queue is no more."""
    return evidence.queue_status is QueueStatus.GONE


def _is_unmanaged(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    """Neither tag nor settings manage it: heal notes no failed call of it any more."""
    return evidence.queue_status is QueueStatus.UNMANAGED


def _is_overruled(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    """What Mendq wrote stands there no more."""
    return evidence.queue_status is QueueStatus.OVERRULED


def _may_do_harm(_case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    """Measurements show that the change itself may do harm."""
    return bool(evidence.harm)


def _has_failed_again(case: Case, evidence: VerificationEvidence, _now: datetime) -> bool:
    """As many failed calls as the symptom needs as evidence, all from after the change."""
    return evidence.failures.since(counts_from(case, evidence.timing)).suffices


def _is_proven_by_deletes(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """The value is kept, the symptom is gone, messages were deleted, and no harm shows."""
    return _is_fixed_and_harmless(case, evidence, now) and bool(evidence.deletes)


def _is_proven_by_scan(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """A wrong configuration was fixed, no scan finds it again, and no harm shows."""
    return _is_fixed_and_harmless(case, evidence, now) and evidence.of_configuration


def _is_fixed_and_harmless(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """Return True if the value is kept, the symptom is gone, and harm was measured."""
    is_kept = evidence.queue_status is QueueStatus.OURS
    is_measured = evidence.harm is not None
    return is_kept and is_measured and _was_quiet(case, evidence, now)


def _was_quiet(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """The symptom was absent for long enough; if calls failed since the change, for a day."""
    return now >= quiet_at(case, evidence)


def _has_waited(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """It has been in this state as long as it may."""
    longest = longest_in(case.state, evidence.timing)
    return longest is not None and now >= case.at + longest


def _has_failed_to_the_end(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """It has been in this state as long as it may, and a call failed on the last day."""
    failed_lately = evidence.failures.since(now - A_QUIET_DAY).sightings
    return _has_waited(case, evidence, now) and bool(failed_lately)


def _has_stayed_away(case: Case, evidence: VerificationEvidence, now: datetime) -> bool:
    """No failed call in all the days of silence."""
    return now >= quiet_since(case, evidence) + timedelta(days=SILENT_DAYS)


def _always(_case: Case, _evidence: VerificationEvidence, _now: datetime) -> bool:
    """At once."""
    return True


@dataclass(frozen=True)
class FollowUpTransition:
    """A row of `TABLE`: a case in one of these states moves into another if the condition holds."""

    out_of: tuple[State, ...]
    into: State
    when: Callable[[Case, VerificationEvidence, datetime], bool]
    because: str


# The first row that fits is taken.
TABLE = (
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED, *WAITED_OUT),
        into=State.CLOSED,
        when=_is_gone,
        because=GONE,
    ),
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED, *WAITED_OUT),
        into=State.CLOSED,
        when=_is_unmanaged,
        because=UNMANAGED,
    ),
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED),
        into=State.OVERRIDDEN,
        when=_is_overruled,
        because="somebody has set another value since",
    ),
    FollowUpTransition(
        out_of=HARM_WATCHED,
        into=State.ESCALATED,
        when=_may_do_harm,
        because=MAY_DO_HARM,
    ),
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED),
        into=State.INEFFECTIVE,
        when=_has_failed_again,
        because="it shows as before",
    ),
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED),
        into=State.VERIFIED,
        when=_is_proven_by_deletes,
        because="it did not show again, and messages were deleted",
    ),
    FollowUpTransition(
        out_of=(State.APPLIED, State.UNVERIFIED),
        into=State.VERIFIED,
        when=_is_proven_by_scan,
        because="it stands, and no scan has found it again",
    ),
    FollowUpTransition(
        out_of=(State.APPLIED,),
        into=State.UNVERIFIED,
        when=_was_quiet,
        because="it did not show again; nothing proves yet that it helped",
    ),
    FollowUpTransition(
        out_of=(State.APPLIED,),
        into=State.ESCALATED,
        when=_has_waited,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        out_of=(State.UNVERIFIED,),
        into=State.ESCALATED,
        when=_has_failed_to_the_end,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        out_of=(State.UNVERIFIED,),
        into=State.CLOSED,
        when=_has_waited,
        because="for a week nothing proved it or spoke up",
    ),
    FollowUpTransition(
        out_of=(State.PROPOSED,),
        into=State.EXPIRED,
        when=_has_waited,
        because="nobody approved it in time",
    ),
    FollowUpTransition(
        out_of=(State.APPROVED,),
        into=State.EXPIRED,
        when=_has_waited,
        because="it was approved and could not be done in time",
    ),
    FollowUpTransition(
        out_of=(State.VERIFIED,),
        into=State.WATCHING,
        when=_always,
        because="watched, in case it comes back",
    ),
    FollowUpTransition(
        out_of=(State.WATCHING,),
        into=State.INEFFECTIVE,
        when=_has_failed_again,
        because="it came back",
    ),
    FollowUpTransition(
        out_of=(State.WATCHING,),
        into=State.ESCALATED,
        when=_has_failed_to_the_end,
        because="it still shows now and then",
    ),
    FollowUpTransition(
        out_of=(State.WATCHING,),
        into=State.CLOSED,
        when=_has_waited,
        because="it stayed away",
    ),
    FollowUpTransition(
        out_of=(State.INEFFECTIVE,),
        into=State.ESCALATED,
        when=_has_waited,
        because="no further step was possible in a day",
    ),
    FollowUpTransition(
        out_of=LEFT_TO_A_PERSON,
        into=State.CLOSED,
        when=_has_stayed_away,
        because=f"it stayed away for {SILENT_DAYS} days",
    ),
)


def advance(case: Case, evidence: VerificationEvidence, now: datetime) -> Case | None:
    """Return the case with its next transition, None if it stays as it is.

    A redrive is ended by its owner, except if its queue is gone.
    """
    if case.goes_on and evidence.queue_status is not QueueStatus.GONE:
        return None
    for row in TABLE:
        if case.state in row.out_of and row.when(case, evidence, now):
            return _follow(row, case, evidence, now)
    return None


def _follow(
    row: FollowUpTransition, case: Case, evidence: VerificationEvidence, now: datetime
) -> Case:
    """Return the case moved as the row says."""
    if row.when is _may_do_harm:
        return case.moved(row.into, evidence.harm or "", now, code=OWN_CHANGE)
    if row.into is State.INEFFECTIVE:
        failed_calls_too = evidence.failures.added_to(case.evidence)
        return case.moved(row.into, row.because, now, evidence=failed_calls_too)
    return case.moved(row.into, row.because, now)


def due_at(case: Case, evidence: VerificationEvidence, now: datetime) -> datetime:
    """Return when follow_up must look at the case next, if nothing is heard about it before."""
    if case.goes_on:
        return now if now <= case.at else now + TICK_AGAIN
    if case.state in CALLING:
        return now if now <= case.at else now + CALL_AGAIN
    if case.state is State.VERIFIED:
        return case.at
    longest = longest_in(case.state, evidence.timing)
    is_measured = case.state in HARM_WATCHED and sign_of(case) is not None
    if case.state in PROVING:
        proven_at = quiet_at(case, evidence)
        due = proven_at if proven_at > now else now + ASK_AGAIN
    elif longest is not None:
        due = case.at + longest
    else:
        due = quiet_since(case, evidence) + timedelta(days=SILENT_DAYS)
        # An alarm counts the case, so it must not stay open long after its queue is gone.
        if due > now:
            due = min(due, now + ASK_AGAIN)
    if is_measured:
        due = min(due, now + ASK_AGAIN)
    return due if longest is None else min(due, case.at + longest)


class Mover(StrEnum):
    """Whose function moves the case."""

    FOLLOW_UP = "follow_up"
    HEAL = "heal"
    OWNER = "the owner of the write"
    PERSON = "a person"
    ROLLBACK = "a person, by rollback"
    NEXT_RUN = "whichever run comes next"


@dataclass(frozen=True)
class ManualTransition:
    """A transition that follow_up does not make. `out_of` is empty if the case opens with it."""

    out_of: tuple[State, ...]
    into: State
    because: str
    who: Mover


APPROVE = ManualTransition(
    out_of=(State.PROPOSED,),
    into=State.APPROVED,
    who=Mover.PERSON,
    because="a person approved the plan",
)
DECLINE = ManualTransition(
    out_of=(State.PROPOSED, State.APPROVED),
    into=State.DECLINED,
    who=Mover.PERSON,
    because="a person declined the plan; where it is still wanted it is proposed again, and pages "
    f"no sooner than {NOTIFIED_AGAIN_AFTER // timedelta(hours=1)} hours after its last page",
)
CLOSE = ManualTransition(
    out_of=LEFT_TO_A_PERSON,
    into=State.CLOSED,
    who=Mover.PERSON,
    because="a person closed it",
)
# No other transition ends such a case: follow_up does not know what its symptom needs.
CLOSE_UNKNOWN = ManualTransition(
    out_of=tuple(state for state in State if state not in FINAL),
    into=State.CLOSED,
    who=Mover.PERSON,
    because="a person closed it: this Mendq knows its symptom no more",
)

MANUAL_TRANSITIONS = (
    ManualTransition(
        out_of=(),
        into=State.OBSERVED,
        who=Mover.HEAL,
        because="the mode is observe: this is what it would have done",
    ),
    ManualTransition(
        out_of=(),
        into=State.REFUSED,
        who=Mover.HEAL,
        because="the queue's own facts or a guardrail speak against it",
    ),
    ManualTransition(
        out_of=(),
        into=State.PROPOSED,
        who=Mover.HEAL,
        because="mode, autonomy or the plan want a person to see it first",
    ),
    ManualTransition(
        out_of=(),
        into=State.APPROVED,
        who=Mover.HEAL,
        because="settings let another Lambda write it without a person",
    ),
    ManualTransition(
        out_of=(),
        into=State.APPLIED,
        who=Mover.HEAL,
        because="the change stands in the queue",
    ),
    ManualTransition(
        out_of=(),
        into=State.ESCALATED,
        who=Mover.HEAL,
        because="a person has to act: Mendq may not, or cannot",
    ),
    ManualTransition(
        out_of=(),
        into=State.OVERRIDDEN,
        who=Mover.HEAL,
        because="somebody else overruled what Mendq had written",
    ),
    APPROVE,
    DECLINE,
    CLOSE,
    CLOSE_UNKNOWN,
    ManualTransition(
        out_of=CALLING,
        into=State.APPLIED,
        who=Mover.OWNER,
        because="facts and guardrails, asked anew, agree",
    ),
    ManualTransition(
        out_of=CALLING,
        into=State.OVERRIDDEN,
        who=Mover.OWNER,
        because="somebody else overruled what Mendq had written",
    ),
    ManualTransition(
        out_of=(State.APPROVED,),
        into=State.EXPIRED,
        who=Mover.OWNER,
        because="by now the plan is another, or may not be made",
    ),
    ManualTransition(
        out_of=(State.INEFFECTIVE,),
        into=State.ESCALATED,
        who=Mover.OWNER,
        because="no further step is within the bounds",
    ),
    ManualTransition(
        out_of=(State.APPLIED,),
        into=State.VERIFIED,
        who=Mover.OWNER,
        because="every DLQ message went back, or lies in quarantine",
    ),
    ManualTransition(
        out_of=(State.APPLIED,),
        into=State.ESCALATED,
        who=Mover.OWNER,
        because="a redrive was halted, or a restored policy is public",
    ),
    ManualTransition(
        out_of=(State.ESCALATED,),
        into=State.ESCALATED,
        who=Mover.HEAL,
        because="by now others' calls fail",
    ),
    ManualTransition(
        out_of=HAS_WRITTEN,
        into=State.ROLLED_BACK,
        who=Mover.ROLLBACK,
        because="what it wrote was taken back",
    ),
    ManualTransition(
        out_of=(*HAS_WRITTEN, State.APPROVED),
        into=State.OVERRIDDEN,
        who=Mover.NEXT_RUN,
        because="a run died at its write, and what stands there may be a person's",
    ),
)
