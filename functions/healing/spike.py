"""When many fixes are an alarm of their own, and how long one may wait for fixes to prove good.

The alarm fires where there were LEAST_FIXES or more, and more than usual, in two of three PERIODs,
or CEILING times the writes of a minute in one. It is held back while a fix is being verified: for
at most as long as a PERIOD.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from functions.healing.limits import Limits
from functions.healing.states import State

PERIOD = timedelta(minutes=15)
LEAST_FIXES = 3
CEILING_MINUTES = 3
# By then an alarm that these fixes can have caused has waited long enough: it takes LEAST_FIXES at
# least a whole PERIOD before it fires. Less what an alarm needs to notice.
_NO_LONGER = 2 * PERIOD - timedelta(minutes=3)
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
    """How many fixes of the last PERIOD are still to prove good; 0 where fixes go on or storm.

    `cases` are the open ones: their state, and when they were opened. A fix whose case is older, as
    one that a person approved, is not waited for.
    """
    fixes = [(state, now - opened_at) for state, opened_at in cases if state in _WROTE]
    young = [state for state, age in fixes if age < PERIOD]
    old = sum(age > _NO_LONGER for _, age in fixes)
    if old >= LEAST_FIXES or len(young) >= ceiling(limits):
        return 0
    return young.count(State.APPLIED)
