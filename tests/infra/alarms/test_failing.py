"""Days on which Lambdas end well and do nothing: who hears of it, and how soon."""

from __future__ import annotations

from collections.abc import Collection

from functions.healing.own_metrics import OwnMetric
from tests.infra.alarms.simulated import DAY, HOUR, Days, own

NOON = 12 * HOUR


def _told(metric: OwnMetric, minutes: Collection[int]) -> list[tuple[str, int, bool]]:
    days = Days(more={own(metric.value): dict.fromkeys(minutes, 1.0)})
    notices = days.run(1)
    return [(e.alarm, e.minute, e.topic.startswith("TopicsUrgentTopic")) for e in notices]


def test_one_failed_call_that_heal_can_never_do_is_told_before_it_is_parked() -> None:
    """It comes again every six minutes, five times."""
    begun, ended = _told(OwnMetric.HEAL_ERRORS, range(NOON, NOON + 30, 6))
    assert begun[0] == ended[0] == "not-healing"
    assert begun[2]
    assert NOON < begun[1] <= NOON + 12
    assert ended[1] <= NOON + 70


def test_what_the_second_try_does_is_told_to_nobody() -> None:
    assert _told(OwnMetric.HEAL_ERRORS, [NOON]) == []
    assert _told(OwnMetric.FOLLOW_UP_ERRORS, [NOON, NOON + 6]) == []


def test_a_follow_up_that_moves_nothing_is_told_within_twenty_minutes_and_once() -> None:
    """A case that it could not look at is tried again every five to six minutes."""
    begun, ended = _told(OwnMetric.FOLLOW_UP_ERRORS, range(NOON, DAY - 2 * HOUR, 6))
    assert begun[0] == ended[0] == "follow-up-errors"
    assert begun[2]
    assert NOON < begun[1] <= NOON + 20
    assert DAY - 2 * HOUR <= ended[1] <= DAY - HOUR
