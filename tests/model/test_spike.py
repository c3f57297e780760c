"""How long the alarm on many fixes may wait for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.lifecycle import CLOUDTRAIL_LAG
from mendq.model.limits import Limits
from mendq.model.names import FEWEST_FIXES_TO_ALARM, FIXES_ALARM_PERIOD, count_fixes_being_verified
from mendq.model.state import State
from tests.model.tables import table

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LIMITS = Limits()
MINUTE = timedelta(minutes=1)
# With these an alarm may ring, and they are too young to have made it ring for long.
EARLIER = [(State.WATCHING, 20.0)] * FEWEST_FIXES_TO_ALARM


def waited_for(*cases: tuple[State, float]) -> int:
    """By state and the minutes since each was opened."""
    opened = [(State(state), NOW - minutes * MINUTE) for state, minutes in cases]
    return count_fixes_being_verified(opened, NOW, LIMITS)


def test_no_fix_proves_good_before_the_wait_is_over() -> None:
    """Or what is healed would page as soon as that is proven."""
    assert FIXES_ALARM_PERIOD <= CLOUDTRAIL_LAG


@pytest.mark.parametrize("state", sorted(set(State) - {State.APPLIED}))
def test_what_is_not_being_verified_is_not_waited_for(state: State) -> None:
    assert waited_for(*EARLIER, (state, 1)) == 0


@pytest.mark.parametrize(("cases", "waits"), table("waits"))
def test_which_fixes_are_waited_for(cases: list[tuple[State, float]], waits: int) -> None:
    assert waited_for(*cases) == waits
