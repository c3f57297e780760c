"""The lifecycle of a case: what becomes of it by evidence, by time and by people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import partial

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
# A scan looks back for six hours and comes round in one: what it has not found by then is gone.
A_SCAN_AND_ITS_WINDOW = timedelta(hours=7)
A_QUIET_DAY = timedelta(days=1)


class Stands(Enum):
    """What became of a case's queue and the values that it has written there."""

    OURS = "ours"
    OVERRULED = "overruled"
    GONE = "gone"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True)
class VerificationEvidence:
    """What was seen of a case's queue since its last transition.

    `stands` is None where nobody looked; `failures` are the newest failed calls from after
    `counts_from`; `deletes` the messages deleted since they ended, None where nobody asked or
    CloudWatch did not say. What was wrong `of_configuration` alone needs none to be proven fixed.
    `harm` names the change and what shows that it may do harm. It is empty if nothing does, and
    None if that could not be measured: then nothing is verified.
    """

    timing: Timing
    failures: Evidence = field(default_factory=Evidence)
    deletes: int | None = None
    stands: Stands | None = None
    of_configuration: bool = False
    harm: str | None = ""


def counts_from(case: Case, timing: Timing) -> datetime:
    """From when on a failed call speaks against what the case did.

    A change takes a while to arrive, and messages in flight keep the visibility timeout they were
    received with; their consumers, who take longer than that, are late for as long as the new
    visibility timeout lets them.
    """
    if case.state not in PROVING:
        return case.at
    visibilities = [
        int(each[value])
        for each in case.steps
        if each["attribute"] == SetVisibilityTimeout.attribute
        for value in ("before", "after")
    ]
    wait_seconds = timing.propagation_seconds + max(visibilities, default=0)
    return case.at + timedelta(seconds=wait_seconds)


def quiet_since(case: Case, evidence_since: VerificationEvidence) -> datetime:
    """Since when no failed call is known."""
    begins = counts_from(case, evidence_since.timing)
    return max([begins, *(each.event_time for each in evidence_since.failures.sightings)])


def quiet_at(case: Case, evidence_since: VerificationEvidence) -> datetime:
    """When silence will have lasted long enough: calls that fail now and then need a day of it.

    Where no call ever failed, what was measured has had to be measured anew.
    """
    quiet = quiet_since(case, evidence_since)
    if evidence_since.failures.sightings:
        return quiet + A_QUIET_DAY
    stands_on_calls = bool(case.evidence["failed_calls"])
    return quiet + (CLOUDTRAIL_LAG if stands_on_calls else A_SCAN_AND_ITS_WINDOW)


ASK_AGAIN = timedelta(hours=1)
CALL_AGAIN = timedelta(minutes=5)
# Less than the minute in which follow_up comes round: none is to be left out.
TICK_AGAIN = timedelta(seconds=30)
# A failed call may end it, so it is looked at when one comes.
WATCHED = (*PROVING, State.WATCHING)
# Nobody acts on it; while it waits, its queue may be taken away from Mendq.
WAITED_OUT = (State.WATCHING, State.OVERRIDDEN, State.ESCALATED)
# Somebody else is to act: the Lambda that owns the write.
CALLING = (State.APPROVED, State.INEFFECTIVE)
# In these states a change is watched for the harm that its kind of step can do.
HARM_WATCHED = (*PROVING, State.WATCHING)
MAY_DO_HARM = "the change itself may do harm"
# Why a case is closed although nothing showed that the symptom stayed away.
GONE = "the queue is gone, or another one of its name"
UNMANAGED = "the queue is not managed any more"


@dataclass(frozen=True)
class Row:
    """One line of the table: out of one of these states, into another, when, and in words."""

    out_of: tuple[State, ...]
    into: State
    when: Callable[[Case, VerificationEvidence, datetime], bool]
    because: str


def _failed_again(case: Case, evidence_since: VerificationEvidence, _now: datetime) -> bool:
    """As many failed calls as the symptom needs as evidence, all from after the change."""
    return evidence_since.failures.since(counts_from(case, evidence_since.timing)).suffices


def _held(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """The value is kept, the symptom is gone, messages were deleted, and no harm shows."""
    stands = evidence_since.stands is Stands.OURS
    is_proven = stands and _was_quiet(case, evidence_since, now) and bool(evidence_since.deletes)
    return is_proven and evidence_since.harm is not None


def _stands_unfound(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """A wrong configuration was fixed, no scan finds it again, and no harm shows."""
    fixed = evidence_since.of_configuration and evidence_since.stands is Stands.OURS
    is_proven = fixed and _was_quiet(case, evidence_since, now)
    return is_proven and evidence_since.harm is not None


def _was_quiet(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """The symptom was absent for long enough; if calls failed since the change, for a day."""
    return now >= quiet_at(case, evidence_since)


def _waited(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """It has been in this state as long as it may."""
    longest = longest_in(case.state, evidence_since.timing)
    return longest is not None and now >= case.at + longest


def _fails_to_the_end(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """It has been in this state as long as it may, and a call failed on the last day."""
    lately = evidence_since.failures.since(now - A_QUIET_DAY)
    return _waited(case, evidence_since, now) and bool(lately.sightings)


def _is_gone(_case: Case, evidence_since: VerificationEvidence, _now: datetime) -> bool:
    """The queue is no more."""
    return evidence_since.stands is Stands.GONE


def _is_unmanaged(_case: Case, evidence_since: VerificationEvidence, _now: datetime) -> bool:
    """Neither tag nor settings manage it: heal notes no failed call of it any more."""
    return evidence_since.stands is Stands.UNMANAGED


def _overruled(_case: Case, evidence_since: VerificationEvidence, _now: datetime) -> bool:
    """What Mendq wrote stands there no more."""
    return evidence_since.stands is Stands.OVERRULED


def _stayed_away(case: Case, evidence_since: VerificationEvidence, now: datetime) -> bool:
    """No failed call in all the days of silence."""
    return now >= quiet_since(case, evidence_since) + timedelta(days=SILENT_DAYS)


def _does_harm(_case: Case, evidence_since: VerificationEvidence, _now: datetime) -> bool:
    """Measurements show that the change itself may do harm."""
    return bool(evidence_since.harm)


def _at_once(_case: Case, _signs: VerificationEvidence, _now: datetime) -> bool:
    """At once."""
    return True


_APPLIED, _UNVERIFIED = (State.APPLIED,), (State.UNVERIFIED,)
_SETTLED = (State.ESCALATED, State.OVERRIDDEN)
_NOW_AND_THEN = "it still shows now and then"
_UNPROVEN = "it did not show again; nothing proves yet that it helped"
# Of a state's rows the first that fits is taken.
TABLE = (
    Row((*PROVING, *WAITED_OUT), State.CLOSED, _is_gone, GONE),
    Row((*PROVING, *WAITED_OUT), State.CLOSED, _is_unmanaged, UNMANAGED),
    Row(PROVING, State.OVERRIDDEN, _overruled, "somebody has set another value since"),
    Row(HARM_WATCHED, State.ESCALATED, _does_harm, MAY_DO_HARM),
    Row(PROVING, State.INEFFECTIVE, _failed_again, "it shows as before"),
    Row(PROVING, State.VERIFIED, _held, "it did not show again, and messages were deleted"),
    Row(PROVING, State.VERIFIED, _stands_unfound, "it stands, and no scan has found it again"),
    Row(_APPLIED, State.UNVERIFIED, _was_quiet, _UNPROVEN),
    Row(_APPLIED, State.ESCALATED, _waited, _NOW_AND_THEN),
    Row(_UNVERIFIED, State.ESCALATED, _fails_to_the_end, _NOW_AND_THEN),
    Row(_UNVERIFIED, State.CLOSED, _waited, "for a week nothing proved it or spoke up"),
    Row((State.PROPOSED,), State.EXPIRED, _waited, "nobody approved it in time"),
    Row((State.APPROVED,), State.EXPIRED, _waited, "it was approved and could not be done in time"),
    Row((State.VERIFIED,), State.WATCHING, _at_once, "watched, in case it comes back"),
    Row((State.WATCHING,), State.INEFFECTIVE, _failed_again, "it came back"),
    Row((State.WATCHING,), State.ESCALATED, _fails_to_the_end, _NOW_AND_THEN),
    Row((State.WATCHING,), State.CLOSED, _waited, "it stayed away"),
    Row((State.INEFFECTIVE,), State.ESCALATED, _waited, "no further step was possible in a day"),
    Row(_SETTLED, State.CLOSED, _stayed_away, f"it stayed away for {SILENT_DAYS} days"),
)


def advance(case: Case, evidence_since: VerificationEvidence, now: datetime) -> Case | None:
    """The case's next transition; None while it stays as it is.

    What goes on its owner ends, unless there is no queue any more.
    """
    if case.goes_on and evidence_since.stands is not Stands.GONE:
        return None
    for row in TABLE:
        if case.state in row.out_of and row.when(case, evidence_since, now):
            if row.because == MAY_DO_HARM:
                return case.moved(row.into, evidence_since.harm or "", now, code=OWN_CHANGE)
            is_back, seen = row.into is State.INEFFECTIVE, evidence_since.failures
            evidence = seen.added_to(case.evidence) if is_back else case.evidence
            return case.moved(row.into, row.because, now, evidence=evidence)
    return None


def due_at(case: Case, evidence_since: VerificationEvidence, now: datetime) -> datetime:
    """When it is to be looked at next, if nobody speaks up before."""
    longest = longest_in(case.state, evidence_since.timing)
    ends_at = case.at + longest if longest is not None else None
    if case.state in CALLING or case.goes_on:
        again = TICK_AGAIN if case.goes_on else CALL_AGAIN
        return now if now <= case.at else now + again
    if case.state in PROVING:
        proven_at = quiet_at(case, evidence_since)
        asks_at = proven_at if proven_at > now else now + ASK_AGAIN
        if sign_of(case) is not None:
            asks_at = min(asks_at, now + ASK_AGAIN)
        return min(asks_at, ends_at) if ends_at is not None else asks_at
    if case.state is State.VERIFIED:
        return case.at
    if ends_at is not None:
        is_measured = case.state in HARM_WATCHED and sign_of(case) is not None
        return min(ends_at, now + ASK_AGAIN) if is_measured else ends_at
    silent_at = quiet_since(case, evidence_since) + timedelta(days=SILENT_DAYS)
    # A gauge, and so an alarm, counts it: it is not to outlast the queue.
    return min(silent_at, now + ASK_AGAIN) if silent_at > now else silent_at


class Who(StrEnum):
    """Whose function moves the case."""

    FOLLOW_UP = "follow_up"
    HEAL = "heal"
    OWNER = "the owner of the write"
    PERSON = "a person"
    ROLLBACK = "a person, by rollback"
    NEXT_RUN = "whichever run comes next"


@dataclass(frozen=True)
class ManualTransition:
    """Out of no state: the case opens."""

    out_of: tuple[State, ...]
    into: State
    because: str
    who: Who


# The states of a case that has written, and that nobody else has overruled.
HAS_WRITTEN = (*WROTE, State.ESCALATED, State.CLOSED)


_opens = partial(ManualTransition, (), who=Who.HEAL)
_by_owner = partial(ManualTransition, who=Who.OWNER)
_by_person = partial(ManualTransition, who=Who.PERSON)

APPROVE = _by_person((State.PROPOSED,), State.APPROVED, "a person approved the plan")
DECLINE = _by_person(
    (State.PROPOSED, State.APPROVED),
    State.DECLINED,
    "a person declined the plan; where it is still wanted it is proposed again, and pages no "
    f"sooner than {NOTIFIED_AGAIN_AFTER // timedelta(hours=1)} hours after its last page",
)
CLOSE = _by_person(_SETTLED, State.CLOSED, "a person closed it")
# Nobody else ends such a case: follow_up has no entry to go by.
CLOSE_UNKNOWN = _by_person(
    tuple(state for state in State if state not in FINAL),
    State.CLOSED,
    "a person closed it: this Mendq knows its symptom no more",
)
_OVERRULED = "somebody else overruled what Mendq had written"

MANUAL_TRANSITIONS = (
    _opens(State.OBSERVED, "the mode is observe: this is what it would have done"),
    _opens(State.REFUSED, "the queue's own facts or a guardrail speak against it"),
    _opens(State.PROPOSED, "mode, autonomy or the plan want a person to see it first"),
    _opens(State.APPROVED, "settings let another Lambda write it without a person"),
    _opens(State.APPLIED, "the change stands in the queue"),
    _opens(State.ESCALATED, "a person has to act: Mendq may not, or cannot"),
    _opens(State.OVERRIDDEN, _OVERRULED),
    *(APPROVE, DECLINE, CLOSE, CLOSE_UNKNOWN),
    _by_owner(CALLING, State.APPLIED, "facts and guardrails, asked anew, agree"),
    _by_owner(CALLING, State.OVERRIDDEN, _OVERRULED),
    _by_owner((State.APPROVED,), State.EXPIRED, "by now the plan is another, or may not be made"),
    _by_owner((State.INEFFECTIVE,), State.ESCALATED, "no further step is within the bounds"),
    _by_owner(_APPLIED, State.VERIFIED, "every DLQ message went back, or lies in quarantine"),
    _by_owner(_APPLIED, State.ESCALATED, "a redrive was halted, or a restored policy is public"),
    ManualTransition((State.ESCALATED,), State.ESCALATED, "by now others' calls fail", Who.HEAL),
    ManualTransition(HAS_WRITTEN, State.ROLLED_BACK, "what it wrote was taken back", Who.ROLLBACK),
    ManualTransition(
        (*HAS_WRITTEN, State.APPROVED),
        State.OVERRIDDEN,
        "a run died at its write, and what stands there may be a person's",
        Who.NEXT_RUN,
    ),
)


# A time line of more keeps its beginning and its end.
MOST_POINTS, FIRST_POINTS = 12, 4


@dataclass(frozen=True)
class Point:
    """Something that happened in a case: a state or another word of `docs/states.md`."""

    what: str
    at: datetime
    says: str = ""

    @property
    def words(self) -> str:
        return self.what.replace("_", " ")


def time_line(
    transitions: Sequence[Case], timing: Timing | None = None, *, is_whole: bool = False
) -> list[Point]:
    """What happened in a case, the earliest first, as far as its transitions know it.

    Where the first of them are missing, so is what they would have said. `timing` says when a
    change had arrived and nothing was in flight from before; that is left out while it is to come.
    Where it `is_whole`, each transition is a point; else a long life loses its middle.
    """
    points = [*_seen_first(transitions[0])]
    for before, each in zip((None, *transitions), transitions, strict=False):
        if before and before.state is State.APPLIED and timing:
            arrived = counts_from(before, timing)
            points += [Point("propagated", arrived)] if arrived <= each.at else []
        if is_whole or before is None or before.state is not each.state:
            points.append(Point(str(each.state), each.at, _written(each)))
    points.sort(key=lambda each: each.at)
    left_out = 0 if is_whole else max(0, len(points) - MOST_POINTS)
    return points[:FIRST_POINTS] + points[FIRST_POINTS + left_out :]


def _seen_first(first: Case) -> Iterator[Point]:
    """What it stood on as it opened; of a later transition, only when it began."""
    calls, is_opening = first.evidence.get("failed_calls"), first.n == 1
    moments = [first.evidence.get(name) for name in ("first_at", "last_at")]
    begun, complete = (datetime.fromisoformat(each) if each else None for each in moments)
    if begun:
        yield Point("first_failure" if calls else "found_by_scan", begun)
    if complete and calls and calls > 1 and is_opening:
        yield Point("evidence_complete", complete, f"{calls} failed calls")
    if first.opened_at and not is_opening:
        yield Point("opened", first.opened_at)


def _written(case: Case) -> str:
    """The numbers that it wrote into the queue; a policy is none."""
    changed = [each for each in case.steps if case.state is State.APPLIED or case.undoes]
    values = ([str(each.get(it)) for it in ("attribute", "before", "after")] for each in changed)
    return ", ".join(f"{name} {old} -> {new}" for name, old, new in values if new.isdigit())
