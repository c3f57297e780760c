"""The life of a case: what becomes of it next, from what was seen since, and by time alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.healing.case import SILENT_DAYS, Case, longest_in
from functions.healing.signs import (
    A_QUIET_DAY,
    PROVING,
    Signs,
    Stands,
    counts_from,
    quiet_at,
    quiet_since,
)
from functions.healing.states import State

ASK_AGAIN = timedelta(hours=1)
CALL_AGAIN = timedelta(minutes=5)
# Less than the minute in which follow_up comes round: none is to be left out.
TICK_AGAIN = timedelta(seconds=30)
# A failed call may end it, so it is looked at when one comes.
WATCHED = (*PROVING, State.WATCHING)
# Nobody acts on it; while it waits, its queue may be taken away from Mendq.
WAITED_OUT = (State.WATCHING, State.CONTESTED, State.ESCALATED)
# Somebody else is to act: the Lambda that owns the write.
CALLING = frozenset({State.APPROVED, State.INEFFECTIVE})


# Why a case is closed although nothing showed that the symptom stayed away.
GONE = "the queue is gone, or another one of its name"
UNMANAGED = "the queue is not managed any more"


@dataclass(frozen=True)
class Row:
    """One line of the table: out of one of these states, into another, when, and in words."""

    out_of: tuple[State, ...]
    into: State
    when: Callable[[Case, Signs, datetime], bool]
    because: str


def _failed_again(case: Case, signs: Signs, _now: datetime) -> bool:
    """As many failed calls as the symptom needs as evidence, all from after the change."""
    since = signs.failures.since(counts_from(case, signs.timing))
    return since.suffices(signs.needed)


def _held(case: Case, signs: Signs, now: datetime) -> bool:
    """Quiet since the change has arrived and CloudTrail has had its time; messages were deleted."""
    return _was_quiet(case, signs, now) and bool(signs.deletes)


def _stands_unfound(case: Case, signs: Signs, now: datetime) -> bool:
    """A configuration was wrong: it stands as it was mended, and no sweep has found it again."""
    mended = signs.of_configuration and signs.stands is Stands.OURS
    return mended and _was_quiet(case, signs, now)


def _was_quiet(case: Case, signs: Signs, now: datetime) -> bool:
    """Quiet since the change has arrived and CloudTrail has had its time; a day after a call."""
    return now >= quiet_at(case, signs)


def _waited(case: Case, signs: Signs, now: datetime) -> bool:
    """It has been in this state as long as it may."""
    longest = longest_in(case.state, signs.timing)
    return longest is not None and now >= case.at + longest


def _fails_to_the_end(case: Case, signs: Signs, now: datetime) -> bool:
    """It has been in this state as long as it may, and a call failed on the last day."""
    lately = signs.failures.since(now - A_QUIET_DAY)
    return _waited(case, signs, now) and bool(lately.sightings)


def _is_gone(_case: Case, signs: Signs, _now: datetime) -> bool:
    """The queue is no more."""
    return signs.stands is Stands.GONE


def _is_unmanaged(_case: Case, signs: Signs, _now: datetime) -> bool:
    """Neither tag nor settings manage it: heal notes no failed call of it any more."""
    return signs.stands is Stands.UNMANAGED


def _overruled(_case: Case, signs: Signs, _now: datetime) -> bool:
    """What Mendq wrote stands there no more."""
    return signs.stands is Stands.OVERRULED


def _stayed_away(case: Case, signs: Signs, now: datetime) -> bool:
    """No failed call in all the days of silence."""
    return now >= quiet_since(case, signs) + timedelta(days=SILENT_DAYS)


def _at_once(_case: Case, _signs: Signs, _now: datetime) -> bool:
    """At once."""
    return True


# Of a state's rows the first that fits is taken.
TABLE = (
    Row((*PROVING, *WAITED_OUT), State.CLOSED, _is_gone, GONE),
    Row((*PROVING, *WAITED_OUT), State.CLOSED, _is_unmanaged, UNMANAGED),
    Row(PROVING, State.CONTESTED, _overruled, "somebody has set another value since"),
    Row(PROVING, State.INEFFECTIVE, _failed_again, "it shows as before"),
    Row(PROVING, State.VERIFIED, _held, "it did not show again, and messages were deleted"),
    Row(
        PROVING,
        State.VERIFIED,
        _stands_unfound,
        "it stands, and no sweep has found it again",
    ),
    Row(
        (State.APPLIED,),
        State.APPLIED_UNPROVEN,
        _was_quiet,
        "it did not show again, but no message was deleted",
    ),
    Row((State.APPLIED,), State.ESCALATED, _waited, "it still shows now and then"),
    Row(
        (State.APPLIED_UNPROVEN,),
        State.ESCALATED,
        _fails_to_the_end,
        "it still shows now and then, and no quiet hour proved it",
    ),
    Row(
        (State.APPLIED_UNPROVEN,),
        State.CLOSED,
        _waited,
        "for a week nothing proved it or spoke up",
    ),
    Row((State.PROPOSED,), State.EXPIRED, _waited, "nobody approved it in time"),
    Row((State.APPROVED,), State.EXPIRED, _waited, "it was approved and could not be done in time"),
    Row((State.VERIFIED,), State.WATCHING, _at_once, "watched, in case it comes back"),
    Row((State.WATCHING,), State.INEFFECTIVE, _failed_again, "it came back"),
    Row((State.WATCHING,), State.ESCALATED, _fails_to_the_end, "it still shows now and then"),
    Row((State.WATCHING,), State.CLOSED, _waited, "it stayed away"),
    Row(
        (State.INEFFECTIVE,),
        State.ESCALATED,
        _waited,
        "no further step was possible within a day",
    ),
    Row(
        (State.CONTESTED, State.ESCALATED),
        State.CLOSED,
        _stayed_away,
        f"it stayed away for {SILENT_DAYS} days",
    ),
)


def advance(case: Case, signs: Signs, now: datetime) -> Case | None:
    """The case's next transition; None while it stays as it is.

    What goes on its owner ends, unless there is no queue any more.
    """
    if case.goes_on and signs.stands is not Stands.GONE:
        return None
    rows = (row for row in TABLE if case.state in row.out_of)
    row = next((each for each in rows if each.when(case, signs, now)), None)
    if row is None:
        return None
    seen = signs.failures.added_to(case.evidence) if row.into is State.INEFFECTIVE else None
    return case.moved(row.into, row.because, now, evidence=seen or case.evidence)


def due_at(case: Case, signs: Signs, now: datetime) -> datetime:
    """When it is to be looked at next, if nobody speaks up before."""
    longest = longest_in(case.state, signs.timing)
    ends_at = case.at + longest if longest is not None else None
    if case.state in CALLING:
        return now if now <= case.at else now + CALL_AGAIN
    if case.goes_on:
        return now if now <= case.at else now + TICK_AGAIN
    if case.state in PROVING:
        proven_at = quiet_at(case, signs)
        asks_at = proven_at if proven_at > now else now + ASK_AGAIN
        return min(asks_at, ends_at) if ends_at is not None else asks_at
    if case.state is State.VERIFIED:
        return case.at
    if ends_at is not None:
        return ends_at
    silent_at = quiet_since(case, signs) + timedelta(days=SILENT_DAYS)
    # A gauge, and so an alarm, counts it: it is not to outlast the queue.
    return min(silent_at, now + ASK_AGAIN) if silent_at > now else silent_at
