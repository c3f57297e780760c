"""Test how long the alarm on many fixes waits while Mendq still verifies them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.lifecycle import CLOUDTRAIL_LAG
from mendq.model.limits import Limits
from mendq.model.names import (
    FEWEST_FIXES_TO_ALARM,
    FIXES_ALARM_PERIOD,
    compute_fix_ceiling,
    count_fixes_being_verified,
)
from mendq.model.state import State

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LIMITS = Limits()
MINUTE = timedelta(minutes=1)
WATCHING = State.WATCHING
APPLIED = State.APPLIED
Fix = tuple[State, timedelta]


def make_fixes(state: State, minutes_ago: float, count: int = 1) -> list[Fix]:
    """Make cases in this state that were opened at the same time, each as state and age."""
    return [(state, minutes_ago * MINUTE)] * count


# Enough fixes for the alarm to ring, too recent for it to have rung for long.
ENOUGH_FOR_ALARM = make_fixes(WATCHING, minutes_ago=20, count=FEWEST_FIXES_TO_ALARM)
NINE = 9
FIX_CEILING = compute_fix_ceiling(LIMITS)


def count_waited_for(*fixes: Fix) -> int:
    """Count the fixes that the alarm waits for."""
    return count_fixes_being_verified([(state, NOW - age) for state, age in fixes], NOW, LIMITS)


def test_alarm_on_many_fixes_has_a_period_no_longer_than_cloudtrails_lag() -> None:
    """Otherwise the alarm would page as soon as a fix is verified."""
    assert FIXES_ALARM_PERIOD <= CLOUDTRAIL_LAG


@pytest.mark.parametrize("state", sorted(set(State) - {APPLIED}))
def test_alarm_on_many_fixes_does_not_wait_for_a_case_in_another_state_than_applied(
    state: State,
) -> None:
    assert count_waited_for(*ENOUGH_FOR_ALARM, (state, MINUTE)) == 0


@pytest.mark.parametrize(("minutes_ago", "waits_for"), [(14.9, 1), (15, 0)])
def test_alarm_on_many_fixes_waits_for_an_applied_fix_only_during_one_alarm_period(
    minutes_ago: float, waits_for: int
) -> None:
    assert count_waited_for(*ENOUGH_FOR_ALARM, *make_fixes(APPLIED, minutes_ago)) == waits_for


@pytest.mark.parametrize("age_of_the_others_minutes", [0, 11.9, 45, 2_820])
def test_alarm_on_many_fixes_waits_for_none_if_the_fixes_are_too_new_or_too_old_to_ring(
    age_of_the_others_minutes: float,
) -> None:
    others = make_fixes(APPLIED, age_of_the_others_minutes, count=NINE)
    assert count_waited_for(*make_fixes(APPLIED, minutes_ago=1), *others) == 0


@pytest.mark.parametrize(("older_fixes", "waits_for"), [(2, 0), (3, 4)])
def test_alarm_on_many_fixes_waits_only_if_enough_fixes_came_for_it_to_ring(
    older_fixes: int, waits_for: int
) -> None:
    newest = make_fixes(APPLIED, minutes_ago=1)
    older = make_fixes(APPLIED, minutes_ago=14, count=older_fixes)
    assert count_waited_for(*newest, *older) == waits_for


@pytest.mark.parametrize(
    ("earliest", "waits_for"),
    [
        pytest.param(make_fixes(WATCHING, 28, count=2), 3, id="two in an earlier period"),
        pytest.param(make_fixes(WATCHING, 28, count=3), 0, id="three in an earlier period"),
        pytest.param(make_fixes(State.ESCALATED, 28, count=NINE), 3, id="nine without a fix"),
        pytest.param(make_fixes(WATCHING, 60, count=NINE), 3, id="nine an hour ago"),
        pytest.param(make_fixes(WATCHING, 1_440, count=NINE), 3, id="nine a day ago"),
        pytest.param(make_fixes(WATCHING, 2_820, count=NINE), 3, id="nine two days ago"),
    ],
)
def test_alarm_on_many_fixes_waits_for_none_only_if_three_fixes_came_in_the_period_before_too(
    earliest: list[Fix], waits_for: int
) -> None:
    newest = make_fixes(APPLIED, minutes_ago=1, count=3)
    assert count_waited_for(*newest, *ENOUGH_FOR_ALARM, *earliest) == waits_for


@pytest.mark.parametrize(("minutes_ago", "waits_for"), [(4.9, 0), (5, 1)])
def test_alarm_on_many_fixes_waits_for_none_if_the_newest_of_a_long_series_is_under_5_minutes_old(
    minutes_ago: float, waits_for: int
) -> None:
    series = [(WATCHING, age * MINUTE) for age in (20, 28, 29, 30)]
    assert count_waited_for(*series, *make_fixes(APPLIED, minutes_ago)) == waits_for


@pytest.mark.parametrize(
    ("applied_fixes", "waits_for"), [(FIX_CEILING - 1, FIX_CEILING - 1), (FIX_CEILING, 0)]
)
def test_alarm_on_many_fixes_waits_for_none_at_the_ceiling_of_fixes_in_one_period(
    applied_fixes: int, waits_for: int
) -> None:
    applied = make_fixes(APPLIED, minutes_ago=2, count=applied_fixes)
    assert count_waited_for(*ENOUGH_FOR_ALARM, *applied) == waits_for
