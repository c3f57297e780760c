"""Test how long the alarm on many fixes waits while Mendq still verifies them."""

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
# Enough fixes for the alarm to ring, too recent for it to have rung for long.
EARLIER = [(State.WATCHING, 20.0)] * FEWEST_FIXES_TO_ALARM


def count_waited_for(*cases: tuple[State, float]) -> int:
    """Count the fixes that the alarm waits for. A case is its state and its age in minutes."""
    opened = [(State(state), NOW - minutes * MINUTE) for state, minutes in cases]
    return count_fixes_being_verified(opened, NOW, LIMITS)


def test_fixes_alarm_period_is_no_longer_than_the_cloudtrail_lag() -> None:
    """Otherwise the alarm would page as soon as a fix is verified."""
    assert FIXES_ALARM_PERIOD <= CLOUDTRAIL_LAG


@pytest.mark.parametrize("state", sorted(set(State) - {State.APPLIED}))
def test_fixes_alarm_does_not_wait_for_a_fix_outside_the_applied_state(state: State) -> None:
    assert count_waited_for(*EARLIER, (state, 1)) == 0


@pytest.mark.parametrize(("cases", "waits"), table("waits"))
def test_fixes_alarm_waits_for_the_recent_applied_fixes_within_the_limits(
    cases: list[tuple[State, float]], waits: int
) -> None:
    assert count_waited_for(*cases) == waits
