"""What rings already, or is put by others, hides no other cause for long."""

from __future__ import annotations

import pytest

from mendq.model.names import HEARTBEAT, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from tests.infra.alarms.simulated import (
    DAY,
    HOUR,
    NIGHTLY_ENDS,
    WEEK_ENDS,
    Days,
    Minutes,
    healed,
    in_order,
    own,
)
from tests.infra.alarms.test_days import ALARM, NOON, OK


def _begun(days: Days, number: int) -> dict[str, int]:
    """What people are told of, and the minute in which it first begins."""
    found: dict[str, int] = {}
    for each in days.run(number):
        if str(each.state) == ALARM:
            found.setdefault(each.alarm, each.minute)
    return found


def test_a_message_that_lies_for_days_hides_no_follow_up_that_dies_and_no_probe() -> None:
    begun = _begun(
        Days(
            messages={"IntakeUndelivered": range(HOUR, 3 * DAY)},
            follow_up_down=range(DAY, 2 * DAY),
            probes_unseen=range(DAY, 2 * DAY),
            errors={"HealFunction": range(DAY, DAY + 30)},
        ),
        3,
    )
    assert list(begun) == [
        "failed-calls-undelivered",
        "not-healing",
        "heartbeat-missing",
        "probe-lost",
    ]
    assert begun["heartbeat-missing"] - DAY <= 15
    assert begun["probe-lost"] - DAY <= 3 * HOUR


def test_one_odd_message_hides_neither_another_queues_nor_a_lambda_that_fails() -> None:
    begun = _begun(
        Days(
            messages={
                "IntakeDlq": range(HOUR, 3 * DAY),
                "StartNightlyDlq": range(DAY, 3 * DAY),
            },
            errors={"RedriveFunction": range(DAY + HOUR, 2 * DAY, 5)},
        ),
        3,
    )
    assert list(begun) == [
        "own-dlq-intake",
        "own-dlq-start-nightly",
        "lambda-failing-redrive",
    ]


def test_a_report_that_was_not_delivered_hides_no_nightly() -> None:
    begun = _begun(Days(deliveries={NOON: False}, nightly_runs={1: "none", 2: "failed"}), 3)
    assert list(begun) == ["report-not-delivered", "nightly-failing"]
    assert begun["nightly-failing"] < 2 * DAY


def test_a_failed_week_rings_at_once_and_a_missing_report_two_days_later() -> None:
    notices = Days(weeks={-14: True, -7: True, 0: False, 7: True}).run(9)
    assert in_order(notices) == [
        ("week-failed", ALARM),
        ("report-missing", ALARM),
        ("week-failed", OK),
        ("report-missing", OK),
    ]
    assert [each.minute for each in notices] == [
        WEEK_ENDS,
        2 * DAY + NIGHTLY_ENDS,
        7 * DAY + WEEK_ENDS,
        8 * DAY + NIGHTLY_ENDS,
    ]


def test_a_week_that_nobody_began_is_missed() -> None:
    assert in_order(Days(weeks={-14: True, -7: True}).run(3)) == [("report-missing", ALARM)]


def test_the_ceiling_pages_whatever_is_being_verified() -> None:
    forged = dict.fromkeys(range(NOON - 5, NOON + 400), 1.0)
    days = Days(
        lives=[healed(NOON + n // 10) for n in range(100)],
        more={own(OwnMetric.FIXES_BEING_VERIFIED): forged},
    )
    begun, *_ = days.run(1)
    assert begun.alarm == "fixes-over-ceiling"
    assert begun.minute - NOON <= 5


@pytest.mark.parametrize("how", ["follow_up_down", "follow_up_failing"])
def test_forged_signs_of_life_hide_no_follow_up_that_is_dead(how: str) -> None:
    dead: dict[str, Minutes] = {how: range(NOON, NOON + 90)}
    forged = dict.fromkeys(range(-DAY, DAY), 0.0)
    days = Days(**dead, more={own(HEARTBEAT): forged})  # type: ignore[arg-type]
    begun, ended = days.run(1)
    assert in_order([begun, ended]) == [("heartbeat-missing", ALARM), ("heartbeat-missing", OK)]
    assert begun.minute - NOON <= 15


def test_forged_nightly_runs_hide_that_none_was_written() -> None:
    """The threat model says so: CloudWatch takes such a figure from whoever may put it."""
    forged = dict.fromkeys(range(0, 3 * DAY, HOUR), 1.0)
    days = Days(
        nightly_runs={0: "none", 1: "none", 2: "none"}, more={own(NightlyMetric.WRITTEN): forged}
    )
    assert days.run(3) == []
