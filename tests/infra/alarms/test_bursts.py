"""The alarm on many fixes stays silent for one fault, and notifies soon if fixes continue.

Simulates hundreds of bursts, minute by minute, with only the alarms on fixes. The edge of the
anomaly band is assumed to be below one fix, so every fix is unusual. The metrics may arrive late.
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
from tests.infra.alarms.simulated import (
    HOUR,
    list_open_cases,
    make_fixed_case,
    make_own_series,
    to_datetime,
)
from tests.infra.synthesized import template_of

PERIOD = names.FIXES_ALARM_PERIOD.seconds // 60
# Fixes within this many minutes belong to one fault.
FAULT_MINUTES = 22
GRACE_MINUTES = int(SUPPRESSOR_GRACE_PERIOD.to_minutes())
# The numbers of fixes in a burst, at most one a minute, which is below the limit.
FIX_COUNTS = (1, 2, 3, 5, 6, 8, 11, 14, 18, 23, 31, 40)
# Three fixes each: two days, one day and an hour and a half before.
EARLIER_FIXES = [before + n for before in (-47 * HOUR, -24 * HOUR, -90) for n in range(3)]
# The metrics of a burst's last fix and of its verification may be up to two minutes late.
LATE_MINUTES = st.integers(0, 2)
# The minutes until the alarms and then the composite alarm react.
NOTICE_MINUTES = 2
# The minutes that the simulation continues after the last fix.
OBSERVED_MINUTES = 80


@dataclass(frozen=True)
class FixesPage:
    """The notification about many fixes. `rings_at` is when both combined alarms fire first."""

    rings_at: int
    began: Sequence[int]
    ended: Sequence[int]
    alarms: Collection[str]


def simulate_fixes(
    fixes: Sequence[int],
    earlier: Sequence[int] = (),
    verified: Collection[int] | None = None,
    late: tuple[int, int] = (0, 0),
) -> FixesPage:
    """Simulate fixes at these minutes, from 0 on, after `earlier` ones.

    `verified` forges the minutes in which a fix is reported as being verified.
    """
    minutes = range(-HOUR, fixes[-1] + OBSERVED_MINUTES)
    fix_count = Counter(fixes)
    fixes_late, verified_late = late
    sent = {minute + fixes_late: float(fix_count[minute]) for minute in minutes}
    cases = list_open_cases(
        [make_fixed_case(minute) for minute in (*earlier, *fixes)], minutes.stop
    )
    waits = {
        minute + verified_late: _count_waiting_fixes(cases.get(minute, ()), minute)
        if verified is None
        else float(minute in verified)
        for minute in minutes
    }
    metrics = {
        make_own_series(OwnMetric.AUTO_FIXES): sent,
        make_own_series(OwnMetric.FIXES_BEING_VERIFIED): waits,
    }
    evaluator = Evaluator.of(template_of("named"), "fix")
    evaluator.run(Data(metrics), minutes, lambda _minute: 0.5)
    rang = [min(evaluator.rang.get(alarm, [minutes.stop])) for alarm in _COMBINED_ALARMS]
    spike = [notice for notice in evaluator.notices if notice.alarm == "fixes-spike"]
    began = [notice.minute for notice in spike if notice.state is State.ALARM]
    ended = [notice.minute for notice in spike if notice.state is State.OK]
    return FixesPage(max(rang), began, ended, {notice.alarm for notice in evaluator.notices})


_COMBINED_ALARMS = ("fixes-unusual", "fixes-many")


def _count_waiting_fixes(cases: Iterable[OpenCase], minute: int) -> float:
    opened = [(case.state, case.opened_at) for case in cases]
    return float(count_fixes_being_verified(opened, to_datetime(minute), Limits()))


@pytest.mark.parametrize("earlier", [[], EARLIER_FIXES], ids=["", "after others"])
@pytest.mark.parametrize("spacing", range(6))
def test_fixes_alarm_stays_silent_for_one_fault_and_pages_once_if_fixes_continue(
    spacing: int, earlier: list[int]
) -> None:
    for count in FIX_COUNTS:
        fixes = [spacing * n for n in range(count)]
        page = simulate_fixes(fixes, earlier)
        lasts = fixes[-1]
        assert len(page.began) <= 1, count
        assert len(page.began) == len(page.ended), count
        if lasts <= FAULT_MINUTES:
            assert not page.began, count
        elif lasts >= 2 * PERIOD + 2 * spacing + NOTICE_MINUTES:
            (began,) = page.began
            assert 0 <= began - page.rings_at <= PERIOD
            soon = PERIOD // names.FEWEST_FIXES_TO_ALARM + NOTICE_MINUTES
            assert any(0 <= began - fix < soon for fix in fixes), (
                "the notification comes while fixes continue"
            )


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, FAULT_MINUTES), min_size=6, max_size=29),
    LATE_MINUTES,
    LATE_MINUTES,
    st.booleans(),
)
@example([0, 0, 0, 16, 16, 16], 0, 1, False)
@example([5, 5, 5, 22, 22, 22], 0, 2, False)
def test_fixes_alarm_stays_silent_for_any_spread_of_one_faults_fixes(
    minutes: list[int], fixes_late: int, verified_late: int, after_others: bool
) -> None:
    earlier = EARLIER_FIXES if after_others else []
    assert not simulate_fixes(sorted(minutes), earlier, late=(fixes_late, verified_late)).alarms


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=20, max_size=40))
def test_continuing_fixes_page_within_one_alarm_period_after_the_threshold(
    gaps: list[int],
) -> None:
    fixes = [sum(gaps[:n]) for n in range(len(gaps) + 1)]
    page = simulate_fixes(fixes)
    if fixes[-1] >= 2 * PERIOD + fixes[names.FEWEST_FIXES_TO_ALARM - 1] + NOTICE_MINUTES:
        assert len(page.began) == 1
        assert len(page.ended) == 1
        assert 0 <= page.began[0] - page.rings_at <= PERIOD


@pytest.mark.parametrize("only_forged", [False, True], ids=["real and forged", "only forged"])
@pytest.mark.parametrize("spacing", [1, 3, 5])
def test_forged_verification_metric_delays_the_fixes_page_by_at_most_the_suppression_limit(
    spacing: int, only_forged: bool
) -> None:
    """The forged metric begins at any time: each minute, each second one, or with gaps."""
    fixes = range(0, 100, spacing)
    cases = list_open_cases(map(make_fixed_case, fixes), 100).items()
    real = {
        minute
        for minute, open_cases in cases
        if not only_forged and _count_waiting_fixes(open_cases, minute)
    }
    for begins in range(-20, 40, 6):
        minutes = range(begins, fixes[-1])
        for forged in (minutes, minutes[::2], [minute for minute in minutes if minute % 10]):
            page = simulate_fixes(fixes, verified={*forged, *real})
            delay = page.began[0] - max(page.rings_at, 0)
            assert delay <= MAXIMUM_SUPPRESSED_MINUTES + GRACE_MINUTES + NOTICE_MINUTES, (
                begins,
                forged,
            )
