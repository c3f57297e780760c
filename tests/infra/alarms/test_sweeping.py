"""Days on which the sweep is not run, fails, or sees nothing: who hears of it, and how soon."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from functions.healing.own_metrics import OwnMetric
from tests.infra.alarms.simulated import (
    DAY,
    HOUR,
    SWEEP_ENDS,
    SWEPT_EACH,
    Days,
    Minutes,
    in_order,
    own,
)
from tests.infra.alarms.test_days import ALARM, NOON, OK

FROM_NOON = NOON + SWEEP_ENDS


def _failed_at(minutes: Iterable[int], queues: float = 1.0) -> Days:
    return Days(more={own(OwnMetric.SWEEP_ERRORS.value): dict.fromkeys(minutes, queues)})


def _failing(minutes: Minutes) -> Days:
    return Days(errors={"SweepFunction": minutes})


def test_a_sweep_that_is_late_or_fails_for_an_hour_is_told_to_nobody() -> None:
    assert Days(sweep_down=range(NOON, NOON + 80)).run(1) == []
    assert _failing(range(FROM_NOON, FROM_NOON + 80, SWEPT_EACH)).run(1) == []


def test_one_sweep_in_three_that_ends_well_is_enough() -> None:
    every = range(FROM_NOON, DAY, SWEPT_EACH)
    assert _failing([each for n, each in enumerate(every) if n % 3]).run(1) == []


def test_two_rounds_that_fail_at_a_queue_are_told_to_nobody() -> None:
    assert _failed_at([FROM_NOON, FROM_NOON + HOUR]).run(1) == []
    assert _failed_at(range(FROM_NOON, FROM_NOON + HOUR, SWEPT_EACH), queues=500.0).run(1) == []


@pytest.mark.parametrize(
    "days",
    [
        Days(sweep_down=range(NOON, NOON + 6 * HOUR)),
        _failing(range(FROM_NOON, FROM_NOON + 6 * HOUR, SWEPT_EACH)),
    ],
    ids=["not run", "failing"],
)
def test_where_no_sweep_ends_well_people_hear_of_it_within_three_hours(days: Days) -> None:
    begun, ended = days.run(1)
    assert in_order([begun, ended]) == [("sweep-missing", ALARM), ("sweep-missing", OK)]
    assert begun.topic.startswith("TopicsInfoTopic")
    assert 2 * HOUR - SWEPT_EACH <= begun.minute - NOON <= 3 * HOUR
    assert ended.minute == NOON + 6 * HOUR + SWEEP_ENDS


@pytest.mark.parametrize(
    "apart", [HOUR, SWEPT_EACH], ids=["some queues, each round", "all, each ten minutes"]
)
def test_queues_that_it_is_not_let_look_at_are_told_of_within_three_hours(apart: int) -> None:
    begun, ended = _failed_at(range(FROM_NOON, FROM_NOON + 6 * HOUR, apart)).run(1)
    assert in_order([begun, ended]) == [("sweep-errors", ALARM), ("sweep-errors", OK)]
    assert begun.topic.startswith("TopicsInfoTopic")
    assert HOUR < begun.minute - FROM_NOON <= 3 * HOUR
    assert ended.minute <= FROM_NOON + 11 * HOUR


def test_a_queue_that_fails_for_days_hides_no_sweep_that_is_not_run() -> None:
    days = _failed_at(range(SWEEP_ENDS, 2 * DAY, HOUR))
    days.sweep_down = range(DAY, DAY + 6 * HOUR)
    assert ("sweep-missing", ALARM) in in_order(days.run(2))


def test_forged_metrics_hide_no_sweep_that_is_dead() -> None:
    """That it ended well is AWS's own count: `AWS/` takes from nobody."""
    forged = {
        own(each.value): dict.fromkeys(range(-DAY, DAY), 1.0)
        for each in (OwnMetric.SWEPT_QUEUES, OwnMetric.SWEEP_FINDINGS)
    }
    (begun,) = Days(sweep_down=range(NOON, 2 * DAY), more=forged).run(1)
    assert (begun.alarm, str(begun.state)) == ("sweep-missing", ALARM)
