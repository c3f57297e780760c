from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mendq.heal.decide import is_repeat, is_repeat_of_a_scan
from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.limits import Timing
from mendq.model.steps import SetMessageRetention

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
A_DAY = timedelta(days=1)


def _case(state: State, after: int = 1_209_600) -> Case:
    return opened(
        state,
        queue_arn="arn:aws:sqs:us-east-1:123456789012:orders",
        symptom="dlq_retention_too_short",
        reason="it is short",
        evidence=Evidence((Sighting.of_measurement(NOW),)),
        steps=(SetMessageRetention(86_400, after),),
        now=NOW,
        actor="heal",
    )


PROPOSED = _case(State.PROPOSED)


def test_failed_calls_repeat_within_a_cooldown_what_is_found_within_a_day() -> None:
    observed = _case(State.OBSERVED)
    for age, calls, scan in (
        (timedelta(minutes=29), True, True),
        (timedelta(minutes=31), False, True),
        (A_DAY, False, False),
    ):
        assert is_repeat(observed, observed, NOW + age, Timing()) is calls
        assert is_repeat_of_a_scan(observed, observed, NOW + age) is scan


@pytest.mark.parametrize(
    ("ended", "quiet"),
    [
        (_case(State.DECLINED), timedelta(days=7)),
        (_case(State.EXPIRED), A_DAY),
        (replace(_case(State.CLOSED), came_from=State.ESCALATED), A_DAY),
    ],
)
def test_what_a_person_left_as_it_is_is_left_alone_for_a_while(
    ended: Case, quiet: timedelta
) -> None:
    assert is_repeat_of_a_scan(PROPOSED, ended, NOW + quiet - timedelta(seconds=1))
    assert not is_repeat_of_a_scan(PROPOSED, ended, NOW + quiet)


@pytest.mark.parametrize(
    "ended",
    [
        replace(_case(State.CLOSED), came_from=State.WATCHING),
        _case(State.ROLLED_BACK),
        _case(State.DECLINED, after=604_800),
        _case(State.EXPIRED, after=604_800),
    ],
)
def test_what_came_back_or_is_another_plan_is_reported_at_once(ended: Case) -> None:
    assert not is_repeat_of_a_scan(PROPOSED, ended, NOW + timedelta(minutes=1))
