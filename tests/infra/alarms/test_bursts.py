"""A healed fault pages nobody, however many fixes it took; fixes that go on are paged soon.

The band's edge is assumed below one fix throughout: nothing is usual.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infra.alarms.fixes import HELD_AT_MOST, SETTLING
from mendq.model import names
from mendq.model.limits import Limits
from tests.infra.alarms.bursts import Burst, Paged
from tests.infra.alarms.simulated import HOUR

PERIOD = names.PERIOD.seconds // 60
# Fixes that come for no longer than that are one fault, which is healed.
A_FAULT = 22
SETTLES = int(SETTLING.to_minutes())
# A fix a minute or rarer: that is less than the ceiling.
COUNTS = (1, 2, 3, 5, 6, 8, 11, 14, 18, 23, 31, 40)
# Three at once, two days, a day and an hour and a half before.
EARLIER = [before + n for before in (-47 * HOUR, -24 * HOUR, -90) for n in range(3)]
# The last fix of a burst, and what sees it, may each be a minute or two late.
LATE = st.integers(0, 2)
# What alarms need to notice, and the composite's own minute.
NOTICED = 2


@pytest.mark.parametrize("earlier", [[], EARLIER], ids=["", "after others"])
@pytest.mark.parametrize("spacing", range(6))
def test_a_healed_fault_pages_nobody_and_what_goes_on_pages_once(
    spacing: int, earlier: list[int]
) -> None:
    for count in COUNTS:
        burst = Burst([spacing * n for n in range(count)], earlier)
        notified = burst.notified()
        lasts = burst.fixes[-1]
        assert len(notified.began) == len(notified.ended) <= 1, count
        if lasts <= A_FAULT:
            assert not notified.began, count
        elif lasts >= 2 * PERIOD + 2 * spacing + NOTICED:
            _is_soon_and_while_fixes_come(burst, notified)


def _is_soon_and_while_fixes_come(burst: Burst, notified: Paged) -> None:
    (began,) = notified.began
    assert 0 <= began - notified.rings_at <= PERIOD
    assert any(0 <= began - each < PERIOD // names.LEAST_FIXES + NOTICED for each in burst.fixes)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, A_FAULT), min_size=6, max_size=29), LATE, LATE, st.booleans())
@example([0, 0, 0, 16, 16, 16], 0, 1, False)
@example([5, 5, 5, 22, 22, 22], 0, 2, False)
def test_however_the_fixes_of_a_fault_lie_it_pages_nobody(
    minutes: list[int], fixes_late: int, verified_late: int, after_others: bool
) -> None:
    earlier = EARLIER if after_others else []
    burst = Burst(sorted(minutes), earlier, fixes_late=fixes_late, verified_late=verified_late)
    assert burst.notified().notices == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=20, max_size=40))
def test_however_fixes_go_on_they_are_paged_a_period_after_they_ring_at_most(
    gaps: list[int],
) -> None:
    fixes = [sum(gaps[:n]) for n in range(len(gaps) + 1)]
    burst = Burst(fixes)
    notified = burst.notified()
    if fixes[-1] >= 2 * PERIOD + fixes[names.LEAST_FIXES - 1] + NOTICED:
        assert len(notified.began) == len(notified.ended) == 1
        assert 0 <= notified.began[0] - notified.rings_at <= PERIOD


def test_a_fault_that_takes_the_ceiling_is_paged_by_that() -> None:
    many = names.ceiling(Limits())
    assert Burst([n // 10 for n in range(many - 1)]).notified().notices == []
    announced = {each.alarm for each in Burst([n // 10 for n in range(many)]).notified().notices}
    assert announced == {"fixes-over-ceiling"}


@pytest.mark.parametrize("unsaid", [False, True], ids=["said too", "unsaid"])
@pytest.mark.parametrize("spacing", [1, 3, 5])
def test_whoever_says_that_fixes_are_verified_holds_the_page_back_no_longer_than_that(
    spacing: int, unsaid: bool
) -> None:
    """Begun whenever it may, all the time, every second minute, or with a minute left out."""
    fixes = range(0, 100, spacing)
    for begins in range(-20, 40, 6):
        minutes = range(begins, fixes[-1])
        for forged in (minutes, minutes[::2], [each for each in minutes if each % 10]):
            notified = Burst(fixes, forged=forged, unsaid=unsaid).notified()
            held = notified.began[0] - max(notified.rings_at, 0)
            assert held <= HELD_AT_MOST + SETTLES + NOTICED, (begins, forged)


@pytest.mark.parametrize("apart", [70, 90, 120])
def test_a_second_fault_more_than_an_hour_later_pages_nobody_either(apart: int) -> None:
    """What held back for the first is not counted any more."""
    fixes = [begins + n for begins in (0, apart) for n in range(21)]
    assert Burst(fixes).notified().notices == []
