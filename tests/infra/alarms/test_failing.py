"""Days on which Lambdas end well and do nothing: who hears of it, and how soon."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from mendq.model.names import OwnMetric
from tests.infra.alarms.simulated import DAY, HOUR, Days, own

NOON = 12 * HOUR


def _announced(metric: OwnMetric, minutes: Collection[int]) -> list[tuple[str, int, bool]]:
    days = Days(more={own(metric.value): dict.fromkeys(minutes, 1.0)})
    notices = days.run(1)
    return [(e.alarm, e.minute, e.topic.startswith("TopicsUrgentTopic")) for e in notices]


def test_a_failed_call_that_heal_can_never_handle_rings_before_it_is_parked() -> None:
    """It comes again every six minutes, five times."""
    begun, ended = _announced(OwnMetric.HEAL_ERRORS, range(NOON, NOON + 30, 6))
    assert begun[0] == ended[0] == "heal-errors"
    assert begun[2]
    assert NOON < begun[1] <= NOON + 12
    assert ended[1] <= NOON + 100


@pytest.mark.parametrize("metric", [OwnMetric.HEAL_ERRORS, OwnMetric.FOLLOW_UP_ERRORS])
def test_what_the_third_try_does_notifies_nobody(metric: OwnMetric) -> None:
    assert _announced(metric, [NOON]) == []
    assert _announced(metric, [NOON, NOON + 6]) == []


@pytest.mark.parametrize("minutes_apart", [8, 16])
def test_what_fails_every_few_minutes_is_one_alarm(minutes_apart: int) -> None:
    begun, ended = _announced(OwnMetric.HEAL_ERRORS, range(NOON, DAY - 2 * HOUR, minutes_apart))
    assert NOON < begun[1] < ended[1] <= DAY - HOUR + 10


def test_what_fails_now_and_then_and_goes_well_after_is_none() -> None:
    assert _announced(OwnMetric.HEAL_ERRORS, range(NOON, DAY, 40)) == []


def test_one_queue_that_heal_can_do_nothing_for_hides_no_heal_that_is_gone() -> None:
    days = Days(
        more={own(OwnMetric.HEAL_ERRORS.value): dict.fromkeys(range(HOUR, NOON, 6), 1.0)},
        errors={"HealFunction": range(NOON, DAY)},
    )
    first, *others = [each.alarm for each in days.run(1) if each.state == "ALARM"]
    assert first == "heal-errors"
    assert "not-healing" in others


def test_a_follow_up_that_moves_nothing_rings_once_within_twenty_minutes() -> None:
    """A case that it could not look at is tried again every five to six minutes."""
    begun, ended = _announced(OwnMetric.FOLLOW_UP_ERRORS, range(NOON, DAY - 2 * HOUR, 6))
    assert begun[0] == ended[0] == "follow-up-errors"
    assert begun[2]
    assert NOON < begun[1] <= NOON + 20
    assert DAY - 2 * HOUR <= ended[1] <= DAY - HOUR
