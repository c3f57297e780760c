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
from mendq.model.limits import Timing
from mendq.model.state import State
from tests.heal.situations import NOW, make_case, make_situation

A_DAY = timedelta(days=1)
A_SECOND = timedelta(seconds=1)
COOLDOWN = timedelta(minutes=Timing().cooldown_minutes)
OBSERVED = make_case(State.OBSERVED)
PROPOSED = make_case(State.PROPOSED)
DECLINED = make_case(State.DECLINED)
CLOSED = make_case(State.CLOSED)


def is_repeated_case(opens: Case, last: Case | None, after: timedelta, **over: Any) -> bool:
    return would_repeat_last_case(
        make_situation(view=CaseStoreView(case=last), now=NOW + after, **over), opens
    )


def is_repeated_finding(last: Case | None, after: timedelta, opens: Case = PROPOSED) -> bool:
    return is_repeated_case(opens, last, after, fresh_sightings=(Sighting.from_scan(NOW),))


def test_first_case_of_a_queue_is_no_repeat() -> None:
    assert not is_repeated_case(OBSERVED, None, timedelta())


def test_observed_case_after_failed_calls_is_a_repeat_until_the_cooldown_ends() -> None:
    assert is_repeated_case(OBSERVED, OBSERVED, COOLDOWN - A_SECOND)
    assert not is_repeated_case(OBSERVED, OBSERVED, COOLDOWN)


def test_observed_case_after_a_finding_is_a_repeat_for_a_day() -> None:
    assert is_repeated_finding(OBSERVED, A_DAY - A_SECOND, OBSERVED)
    assert not is_repeated_finding(OBSERVED, A_DAY, OBSERVED)


@pytest.mark.parametrize(
    ("ended", "silence"),
    [
        pytest.param(DECLINED, timedelta(days=7), id="a week after a person declined it"),
        pytest.param(make_case(State.EXPIRED), A_DAY, id="a day after it expired"),
        pytest.param(
            replace(CLOSED, came_from=State.ESCALATED),
            A_DAY,
            id="a day after a person closed an escalated case",
        ),
    ],
)
def test_same_finding_is_a_repeat_for_a_week_after_a_decline_and_a_day_after_expiry_or_closing(
    ended: Case, silence: timedelta
) -> None:
    assert is_repeated_finding(ended, silence - A_SECOND)
    assert not is_repeated_finding(ended, silence)


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(replace(CLOSED, came_from=State.WATCHING), id="a fix that helped"),
        pytest.param(make_case(State.ROLLED_BACK), id="a fix that was rolled back"),
        pytest.param(replace(DECLINED, steps=()), id="a declined case with another plan"),
    ],
)
def test_finding_is_no_repeat_of_a_finished_fix_or_of_another_plan(ended: Case) -> None:
    assert not is_repeated_finding(ended, A_SECOND)
