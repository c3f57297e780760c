"""Days on which the scan is not run, fails, or sees nothing: who hears of it, and how soon."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mendq.model.names import OwnMetric
from tests.infra.alarms.simulated import (
    DAY,
    HOUR,
    SCAN_ENDS,
    SCANNED_EACH,
    Days,
    Minutes,
    in_order,
    own,
)
from tests.infra.alarms.test_days import ALARM, NOON, OK

FROM_NOON = NOON + SCAN_ENDS


def _failed_at(minutes: Iterable[int], queues: float = 1.0) -> Days:
    return Days(more={own(OwnMetric.SCAN_ERRORS.value): dict.fromkeys(minutes, queues)})


def _failing(minutes: Minutes) -> Days:
    return Days(errors={"ScanFunction": minutes})


def test_a_scan_that_is_late_or_fails_for_an_hour_notifies_nobody() -> None:
    assert Days(scan_down=range(NOON, NOON + 80)).run(1) == []
    assert _failing(range(FROM_NOON, FROM_NOON + 80, SCANNED_EACH)).run(1) == []


def test_one_scan_in_three_that_ends_well_is_enough() -> None:
    every = range(FROM_NOON, DAY, SCANNED_EACH)
    assert _failing([each for n, each in enumerate(every) if n % 3]).run(1) == []


def test_two_scans_that_fail_at_a_queue_notify_nobody() -> None:
    assert _failed_at([FROM_NOON, FROM_NOON + HOUR]).run(1) == []
    assert _failed_at(range(FROM_NOON, FROM_NOON + HOUR, SCANNED_EACH), queues=500.0).run(1) == []


@pytest.mark.parametrize(
    "days",
    [
        Days(scan_down=range(NOON, NOON + 6 * HOUR)),
        _failing(range(FROM_NOON, FROM_NOON + 6 * HOUR, SCANNED_EACH)),
    ],
    ids=["not run", "failing"],
)
def test_where_no_scan_ends_well_people_hear_of_it_within_three_hours(days: Days) -> None:
    begun, ended = days.run(1)
    assert in_order([begun, ended]) == [("scan-missing", ALARM), ("scan-missing", OK)]
    assert begun.topic.startswith("TopicsInfoTopic")
    assert 2 * HOUR - SCANNED_EACH <= begun.minute - NOON <= 3 * HOUR
    assert ended.minute == NOON + 6 * HOUR + SCAN_ENDS


@pytest.mark.parametrize(
    "apart", [HOUR, SCANNED_EACH], ids=["some queues, each hour", "all, each ten minutes"]
)
def test_queues_that_it_may_not_look_at_ring_within_three_hours(apart: int) -> None:
    begun, ended = _failed_at(range(FROM_NOON, FROM_NOON + 6 * HOUR, apart)).run(1)
    assert in_order([begun, ended]) == [("scan-errors", ALARM), ("scan-errors", OK)]
    assert begun.topic.startswith("TopicsInfoTopic")
    assert HOUR < begun.minute - FROM_NOON <= 3 * HOUR
    assert ended.minute <= FROM_NOON + 11 * HOUR


def test_a_queue_that_fails_for_days_hides_no_scan_that_is_not_run() -> None:
    days = _failed_at(range(SCAN_ENDS, 2 * DAY, HOUR))
    days.scan_down = range(DAY, DAY + 6 * HOUR)
    assert ("scan-missing", ALARM) in in_order(days.run(2))


def test_forged_metrics_hide_no_scan_that_is_dead() -> None:
    """That it ended well is AWS's own count: `AWS/` takes from nobody."""
    forged = {
        own(each.value): dict.fromkeys(range(-DAY, DAY), 1.0)
        for each in (OwnMetric.SCANNED_QUEUES, OwnMetric.SCAN_FINDINGS)
    }
    (begun,) = Days(scan_down=range(NOON, 2 * DAY), more=forged).run(1)
    assert (begun.alarm, str(begun.state)) == ("scan-missing", ALARM)
