"""What would only say again what people have heard, and for how long it is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.heal.decide import is_repeat, is_repeat_of_a_scan
from mendq.model.case import Case, State
from mendq.model.limits import Timing
from tests.heal.test_guardrails import NOW, case

A_DAY = timedelta(days=1)
PROPOSED, CLOSED = case(State.PROPOSED), case(State.CLOSED)


def test_failed_calls_repeat_within_a_cooldown_what_is_found_within_a_day() -> None:
    observed = case(State.OBSERVED)
    assert not is_repeat(observed, None, NOW, Timing())
    for minutes, calls, scan in ((29, True, True), (31, False, True), (24 * 60, False, False)):
        now = NOW + timedelta(minutes=minutes)
        assert is_repeat(observed, observed, now, Timing()) is calls
        assert is_repeat_of_a_scan(observed, observed, now) is scan


@pytest.mark.parametrize(
    ("ended", "quiet"),
    [
        (case(State.DECLINED), timedelta(days=7)),
        (case(State.EXPIRED), A_DAY),
        (replace(CLOSED, came_from=State.ESCALATED), A_DAY),
        (replace(CLOSED, came_from=State.WATCHING), timedelta()),
        (case(State.ROLLED_BACK), timedelta()),
        (replace(case(State.DECLINED), steps=()), timedelta()),
    ],
)
def test_what_a_person_left_as_it_is_is_left_alone_for_a_while(
    ended: Case, quiet: timedelta
) -> None:
    assert is_repeat_of_a_scan(PROPOSED, ended, NOW + quiet * 0.99) is bool(quiet)
    assert not is_repeat_of_a_scan(PROPOSED, ended, NOW + quiet)
