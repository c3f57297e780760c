"""A healed fault pages nobody, however many fixes it took; fixes that go on are paged soon.

Hundreds of bursts, minute by minute, by the alarms on fixes alone. The band's edge is assumed below
one fix throughout: nothing is usual. What is sent of them may reach the alarms late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infra.alarms.fixes import MAXIMUM_SUPPRESSED_MINUTES, SUPPRESSOR_GRACE_PERIOD
from mendq.cases.table import OpenCase
from mendq.model import names
from mendq.model.limits import Limits
from mendq.model.names import OwnMetric, count_fixes_being_verified
from tests.infra.alarms.evaluator import Data, Evaluator, State
from tests.infra.alarms.simulated import HOUR, at, healed, listed, own
from tests.infra.synthesized import template_of

PERIOD = names.FIXES_ALARM_PERIOD.seconds // 60
# Fixes that come for no longer than that are one fault, which is healed.
A_FAULT = 22
SETTLES = int(SUPPRESSOR_GRACE_PERIOD.to_minutes())
# A fix a minute or rarer: that is less than the ceiling.
COUNTS = (1, 2, 3, 5, 6, 8, 11, 14, 18, 23, 31, 40)
# Three at once, two days, a day and an hour and a half before.
EARLIER = [before + n for before in (-47 * HOUR, -24 * HOUR, -90) for n in range(3)]
# The last fix of a burst, and what sees it, may each be a minute or two late.
LATE = st.integers(0, 2)
# What alarms need to notice, and the composite's own minute.
NOTICED = 2
# What is over by then is paged no more.
AFTERWARDS = 80


@dataclass(frozen=True)
class Paged:
    """The page of many fixes; `rings_at` is when many and unusual ring first."""

    rings_at: int
    began: Sequence[int]
    ended: Sequence[int]
    alarms: Collection[str]


def paged(
    fixes: Sequence[int],
    earlier: Sequence[int] = (),
    verified: Collection[int] | None = None,
    late: tuple[int, int] = (0, 0),
) -> Paged:
    """Fixes by their minutes, from 0 on, and what came before them.

    `verified` are the minutes in which one is said to be waited for, where that is not the truth.
    """
    minutes = range(-HOUR, fixes[-1] + AFTERWARDS)
    made, (fixes_late, verified_late) = Counter(fixes), late
    sent = {each + fixes_late: float(made[each]) for each in minutes}
    cases = listed([healed(each) for each in (*earlier, *fixes)], minutes.stop)
    waits = {
        each + verified_late: _waited_for(cases.get(each, ()), each)
        if verified is None
        else float(each in verified)
        for each in minutes
    }
    metrics = {own(OwnMetric.AUTO_FIXES): sent, own(OwnMetric.FIXES_BEING_VERIFIED): waits}
    evaluator = Evaluator.of(template_of("named"), "fix")
    evaluator.run(Data(metrics), minutes, lambda _minute: 0.5)
    rang = [min(evaluator.rang.get(each, [minutes.stop])) for each in _TOGETHER]
    spike = [each for each in evaluator.notices if each.alarm == "fixes-spike"]
    began, ended = (
        [each.minute for each in spike if each.state is state] for state in (State.ALARM, State.OK)
    )
    return Paged(max(rang), began, ended, {each.alarm for each in evaluator.notices})


_TOGETHER = ("fixes-unusual", "fixes-many")


def _waited_for(cases: Iterable[OpenCase], minute: int) -> float:
    opened = [(each.state, each.opened_at) for each in cases]
    return float(count_fixes_being_verified(opened, at(minute), Limits()))


@pytest.mark.parametrize("earlier", [[], EARLIER], ids=["", "after others"])
@pytest.mark.parametrize("spacing", range(6))
def test_fixes_alarm_stays_silent_for_one_fault_and_pages_once_if_fixes_continue(
    spacing: int, earlier: list[int]
) -> None:
    for count in COUNTS:
        fixes = [spacing * n for n in range(count)]
        found, lasts = paged(fixes, earlier), fixes[-1]
        assert len(found.began) == len(found.ended) <= 1, count
        if lasts <= A_FAULT:
            assert not found.began, count
        elif lasts >= 2 * PERIOD + 2 * spacing + NOTICED:
            (began,) = found.began
            assert 0 <= began - found.rings_at <= PERIOD
            soon = PERIOD // names.FEWEST_FIXES_TO_ALARM + NOTICED
            assert any(0 <= began - each < soon for each in fixes), "while fixes come"


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, A_FAULT), min_size=6, max_size=29), LATE, LATE, st.booleans())
@example([0, 0, 0, 16, 16, 16], 0, 1, False)
@example([5, 5, 5, 22, 22, 22], 0, 2, False)
def test_fixes_alarm_stays_silent_for_any_spread_of_one_faults_fixes(
    minutes: list[int], fixes_late: int, verified_late: int, after_others: bool
) -> None:
    earlier = EARLIER if after_others else []
    assert not paged(sorted(minutes), earlier, late=(fixes_late, verified_late)).alarms


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=20, max_size=40))
def test_continuing_fixes_page_within_one_alarm_period_after_the_threshold(
    gaps: list[int],
) -> None:
    fixes = [sum(gaps[:n]) for n in range(len(gaps) + 1)]
    found = paged(fixes)
    if fixes[-1] >= 2 * PERIOD + fixes[names.FEWEST_FIXES_TO_ALARM - 1] + NOTICED:
        assert len(found.began) == len(found.ended) == 1
        assert 0 <= found.began[0] - found.rings_at <= PERIOD


@pytest.mark.parametrize("unsaid", [False, True], ids=["said too", "unsaid"])
@pytest.mark.parametrize("spacing", [1, 3, 5])
def test_forged_verification_metric_delays_the_fixes_page_by_at_most_the_suppression_limit(
    spacing: int, unsaid: bool
) -> None:
    """Begun whenever it may, all the time, every second minute, or with a minute left out."""
    fixes = range(0, 100, spacing)
    cases = listed(map(healed, fixes), 100).items()
    said = {minute for minute, each in cases if not unsaid and _waited_for(each, minute)}
    for begins in range(-20, 40, 6):
        minutes = range(begins, fixes[-1])
        for forged in (minutes, minutes[::2], [each for each in minutes if each % 10]):
            found = paged(fixes, verified={*forged, *said})
            held = found.began[0] - max(found.rings_at, 0)
            assert held <= MAXIMUM_SUPPRESSED_MINUTES + SETTLES + NOTICED, (begins, forged)
