"""How long the alarm on many fixes may wait for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.healing.limits import Limits
from functions.healing.spike import LEAST_FIXES, PERIOD, ceiling, fixes_being_verified
from functions.healing.states import State

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LIMITS = Limits()
MINUTE = timedelta(minutes=1)


def _waited_for(*cases: tuple[State, float]) -> int:
    """By state and the minutes since each was opened."""
    opened = [(state, NOW - minutes * MINUTE) for state, minutes in cases]
    return fixes_being_verified(opened, NOW, LIMITS)


def test_a_young_fix_is_waited_for_until_it_is_a_period_old() -> None:
    assert _waited_for((State.APPLIED, 14.9)) == 1
    assert _waited_for((State.APPLIED, 15)) == 0


@pytest.mark.parametrize("state", sorted(set(State) - {State.APPLIED}))
def test_what_is_not_being_verified_is_not_waited_for(state: State) -> None:
    assert _waited_for((state, 1)) == 0


def test_fixes_that_go_on_are_not_waited_for() -> None:
    young = [(State.APPLIED, 1.0)] * 3
    assert _waited_for(*young, *[(State.WATCHING, 28)] * 2) == 3
    assert _waited_for(*young, *[(State.WATCHING, 28)] * 3) == 0
    assert _waited_for(*young, *[(State.ESCALATED, 28)] * 9) == 3


def test_a_storm_is_not_waited_for() -> None:
    many = ceiling(LIMITS)
    assert _waited_for(*[(State.APPLIED, 2.0)] * (many - 1)) == many - 1
    assert _waited_for(*[(State.APPLIED, 2.0)] * many) == 0


@given(st.sets(st.integers(0, 240), min_size=2 * LEAST_FIXES, max_size=60))
def test_whenever_fixes_come_an_alarm_waits_a_period_at_most(minutes: set[int]) -> None:
    """Each fix stays open, as a watched one does, and at worst is being verified all the while."""
    longest = waited = 0
    for now in range(300):
        at = NOW + now * MINUTE
        opened = [NOW + each * MINUTE for each in minutes if each <= now]
        busy = [
            sum(at - (n + 1) * PERIOD < each <= at - n * PERIOD for each in opened) >= LEAST_FIXES
            for n in range(3)
        ]
        held = fixes_being_verified([(State.APPLIED, each) for each in opened], at, LIMITS)
        waited = waited + 1 if sum(busy) >= 2 and held else 0
        longest = max(longest, waited)
    assert longest * MINUTE <= PERIOD
