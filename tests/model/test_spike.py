"""How long the alarm on many fixes may wait for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.case import State
from mendq.model.lifecycle import CLOUDTRAIL_LAG
from mendq.model.limits import Limits
from mendq.model.names import LEAST_FIXES, PERIOD, ceiling, fixes_being_verified

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LIMITS = Limits()
MINUTE = timedelta(minutes=1)
# With these an alarm may ring, and they are too young to have made it ring for long.
EARLIER = [(State.WATCHING, 20.0)] * LEAST_FIXES


def _waited_for(*cases: tuple[State, float]) -> int:
    """By state and the minutes since each was opened."""
    opened = [(state, NOW - minutes * MINUTE) for state, minutes in cases]
    return fixes_being_verified(opened, NOW, LIMITS)


def test_a_young_fix_is_waited_for_until_it_is_a_period_old() -> None:
    assert _waited_for(*EARLIER, (State.APPLIED, 14.9)) == 1
    assert _waited_for(*EARLIER, (State.APPLIED, 15)) == 0


def test_no_fix_proves_good_before_the_wait_is_over() -> None:
    """Or what is healed would page as soon as that is proven."""
    assert PERIOD <= CLOUDTRAIL_LAG


@pytest.mark.parametrize("state", sorted(set(State) - {State.APPLIED}))
def test_what_is_not_being_verified_is_not_waited_for(state: State) -> None:
    assert _waited_for(*EARLIER, (state, 1)) == 0


@pytest.mark.parametrize("minutes", [0, 11.9, 45, 47 * 60])
def test_nothing_is_waited_for_where_no_alarm_can_ring(minutes: float) -> None:
    """Waiting is counted, and ended where there was too much of it in an hour."""
    newest = (State.APPLIED, 1.0)
    assert _waited_for(newest, *[(State.APPLIED, minutes)] * 9) == 0
    assert _waited_for(newest, *[(State.APPLIED, 14.0)] * (LEAST_FIXES - 1)) == 0
    assert _waited_for(newest, *[(State.APPLIED, 14.0)] * LEAST_FIXES) == 1 + LEAST_FIXES


def test_fixes_that_go_on_are_not_waited_for() -> None:
    young = [(State.APPLIED, 1.0)] * 3
    assert _waited_for(*young, *EARLIER, *[(State.WATCHING, 28)] * 2) == 3
    assert _waited_for(*young, *EARLIER, *[(State.WATCHING, 28)] * 3) == 0
    assert _waited_for(*young, *EARLIER, *[(State.ESCALATED, 28)] * 9) == 3


def test_fixes_that_went_on_and_are_over_are_waited_for() -> None:
    went_on = [(State.WATCHING, minutes) for minutes in (20, 28, 29, 30)]
    assert _waited_for(*went_on, (State.APPLIED, 4.9)) == 0
    assert _waited_for(*went_on, (State.APPLIED, 5)) == 1


@pytest.mark.parametrize("hours", [1, 24, 47])
def test_what_was_fixed_before_the_last_hour_ends_no_waiting(hours: float) -> None:
    before = [(State.WATCHING, 60 * hours)] * 9
    assert _waited_for(*before, *EARLIER, (State.APPLIED, 1)) == 1


def test_a_storm_is_not_waited_for() -> None:
    many = ceiling(LIMITS)
    assert _waited_for(*EARLIER, *[(State.APPLIED, 2.0)] * (many - 1)) == many - 1
    assert _waited_for(*EARLIER, *[(State.APPLIED, 2.0)] * many) == 0


@given(st.sets(st.integers(0, 240), min_size=2 * LEAST_FIXES, max_size=60))
def test_whenever_fixes_come_an_alarm_waits_a_period_at_most(minutes: set[int]) -> None:
    """For each fix that comes after it, all of which are being verified at worst."""
    rings = 0
    for now in range(300):
        at = NOW + now * MINUTE
        opened = [NOW + each * MINUTE for each in minutes if each <= now]
        busy = [
            sum(at - (n + 1) * PERIOD < each <= at - n * PERIOD for each in opened) >= LEAST_FIXES
            for n in range(3)
        ]
        rings = rings + 1 if sum(busy) >= 2 else 0
        held = fixes_being_verified([(State.APPLIED, each) for each in opened], at, LIMITS)
        assert not (held and now in minutes and rings * MINUTE > PERIOD)
