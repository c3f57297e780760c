"""When many fixes are an alarm of their own, and how long one may wait for fixes to prove good.

The alarm fires where there were LEAST_FIXES or more, and more than usual, in two of three PERIODs,
and fixes still come; or CEILING_MINUTES times the writes of a minute in one. The first is held back
while a fix of the last PERIOD is being verified, and goes out where fixes go on for another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from functions.healing.limits import Limits
from functions.healing.states import State

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
_WROTE = frozenset(
    {
        State.APPLIED,
        State.APPLIED_UNPROVEN,
        State.VERIFIED,
        State.WATCHING,
        State.INEFFECTIVE,
    }
)


def ceiling(limits: Limits) -> int:
    """So many fixes in one PERIOD are too many, whatever is usual."""
    return CEILING_MINUTES * limits.writes_per_minute


def fixes_being_verified(
    cases: Iterable[tuple[State, datetime]], now: datetime, limits: Limits
) -> int:
    """How many fixes of the last PERIOD an alarm on many of them waits for.

    0 where none can ring yet, or fixes go on or storm. `cases` are the open ones: their state, and
    when they were opened. A fix whose case is older, as one that a person approved, is not waited
    for; one that failed calls asked for proves good in no less than a PERIOD.
    """
    fixes = [(state, now - opened_at) for state, opened_at in cases if state in _WROTE]
    ages = [age for _, age in fixes]
    young = [state for state, age in fixes if age < PERIOD]
    if not _may_ring(ages) or _go_on(ages) or len(young) >= ceiling(limits):
        return 0
    return young.count(State.APPLIED)


def _may_ring(ages: Sequence[timedelta]) -> bool:
    """One of its two PERIODs is not the newest."""
    return sum(STILL_COMING <= age < PERIODS * PERIOD for age in ages) >= LEAST_FIXES


def _go_on(ages: Sequence[timedelta]) -> bool:
    """They still come, and if the alarm fired, it did so almost a whole PERIOD ago."""
    old = sum(2 * PERIOD - _NOTICING < age < (PERIODS + 1) * PERIOD for age in ages)
    return old >= LEAST_FIXES and any(age < _APART for age in ages)
