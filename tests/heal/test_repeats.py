"""Cases that would only repeat what people already know."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.cases.view import CaseStoreView
from mendq.heal.repeats import would_repeat_last_case
from mendq.model.case import Case
from mendq.model.evidence import Sighting
from mendq.model.state import State
from tests.heal.situations import NOW, make_case, make_situation

A_DAY = timedelta(days=1)
PROPOSED = make_case(State.PROPOSED)
CLOSED = make_case(State.CLOSED)


def is_repeated_case(opens: Case, last: Case | None, after: timedelta, **over: Any) -> bool:
    return would_repeat_last_case(
        make_situation(view=CaseStoreView(case=last), now=NOW + after, **over), opens
    )


def is_repeated_finding(last: Case | None, after: timedelta, opens: Case = PROPOSED) -> bool:
    return is_repeated_case(opens, last, after, fresh_sightings=(Sighting.from_scan(NOW),))


def test_observed_case_is_a_repeat_within_the_cooldown_for_calls_and_a_day_for_findings() -> None:
    observed = make_case(State.OBSERVED)
    assert not is_repeated_case(observed, None, timedelta())
    for minutes, calls, scan in ((29, True, True), (31, False, True), (24 * 60, False, False)):
        after = timedelta(minutes=minutes)
        assert is_repeated_case(observed, observed, after) is calls
        assert is_repeated_finding(observed, after, observed) is scan


@pytest.mark.parametrize(
    ("ended", "quiet"),
    [
        (make_case(State.DECLINED), timedelta(days=7)),
        (make_case(State.EXPIRED), A_DAY),
        (replace(CLOSED, came_from=State.ESCALATED), A_DAY),
        (replace(CLOSED, came_from=State.WATCHING), timedelta()),
        (make_case(State.ROLLED_BACK), timedelta()),
        (replace(make_case(State.DECLINED), steps=()), timedelta()),
    ],
)
def test_finding_that_a_person_declined_or_closed_is_a_repeat_for_a_while(
    ended: Case, quiet: timedelta
) -> None:
    assert is_repeated_finding(ended, quiet * 0.99) is bool(quiet)
    assert not is_repeated_finding(ended, quiet)
