"""Days of an account, minute by minute: who is paged of what, when, and for how long.

The alarms are read from the synthesized template. What CloudWatch's anomaly model would learn is
not known here: where it counts, the upper edge of its band is assumed, and the test says as what.
"""

from __future__ import annotations

import pytest

from mendq.model.case import State
from tests.infra.alarms.simulated import (
    DAY,
    HOUR,
    NIGHTLY_ENDS,
    SCAN_ENDS,
    Days,
    Life,
    healed,
    in_order,
)

ALARM, OK = "ALARM", "OK"
NOON = 12 * HOUR
# Where fixes are rare, the band lies below one.
NOTHING_IS_USUAL = 0.5


def _urgent(topic: str) -> bool:
    return topic.startswith("TopicsUrgentTopic")


def test_quiet_days_tell_nobody_anything() -> None:
    days = Days()
    assert days.run(3, NOTHING_IS_USUAL) == []
    assert days.rang == {}


def test_a_healed_fault_pages_nobody() -> None:
    assert Days(lives=[healed(NOON)]).run(3, NOTHING_IS_USUAL) == []


def test_one_fault_on_many_queues_that_is_healed_pages_nobody() -> None:
    """Eight fixes in four minutes ring wherever the quarters of an hour part them: it is held back.

    The band's edge is assumed below one fix.
    """
    days = Days(lives=[healed(NOON + n // 2) for n in range(8)])
    assert days.run(1, NOTHING_IS_USUAL) == []
    assert {"fixes-unusual", "fixes-many", "fix-being-verified"} <= set(days.rang)


def test_an_escalation_pages_once_and_lasts_as_long_as_its_case() -> None:
    begins, ends = NOON, 2 * DAY + 17 * HOUR
    days = Days(
        lives=[Life({begins: State.ESCALATED, ends: State.CLOSED})],
        follow_up_down=range(DAY, DAY + 8),
    )
    begun, ended = days.run(4)
    assert in_order([begun, ended]) == [
        ("escalated-cases-open", ALARM),
        ("escalated-cases-open", OK),
    ]
    assert _urgent(begun.topic)
    assert (begun.minute, ended.minute) == (begins, ends)


def test_a_second_escalation_is_not_paged_again_and_keeps_the_first_ones_alarm() -> None:
    lives = [
        Life({NOON: State.ESCALATED, NOON + 90: State.CLOSED}),
        Life({NOON + 60: State.ESCALATED, NOON + 300: State.CLOSED}),
    ]
    begun, ended = Days(lives=lives).run(1)
    assert (begun.minute, ended.minute) == (NOON, NOON + 300)


def test_a_proposal_tells_those_who_hear_of_everything() -> None:
    lives = [Life({NOON: State.PROPOSED, NOON + DAY: State.EXPIRED})]
    begun, ended = Days(lives=lives).run(3)
    assert in_order([begun, ended]) == [("proposed-cases-open", ALARM), ("proposed-cases-open", OK)]
    assert not _urgent(begun.topic)
    assert ended.minute - begun.minute == DAY


def test_a_storm_meets_the_ceiling_and_nothing_holds_that_back() -> None:
    """Ten fixes a minute; the band's edge is assumed so high that it never counts."""
    storm = [healed(NOON + n // 10) for n in range(100)]
    days = Days(lives=storm)
    begun, _ended = days.run(1)
    assert begun.alarm == "fixes-over-ceiling"
    assert _urgent(begun.topic)
    assert "fixes-unusual" not in days.rang
    assert begun.minute - NOON <= 5


def test_fixes_that_go_on_are_paged_a_quarter_of_an_hour_later_at_most() -> None:
    """Five fixes a quarter of an hour; the band's edge is assumed to be two."""
    drip = [healed(NOON + 3 * n) for n in range(60)]
    days = Days(lives=drip)
    begun, ended = days.run(1, 2)
    rings_at = max(days.rang["fixes-unusual"][0], days.rang["fixes-many"][0])
    assert 0 < begun.minute - rings_at <= 15
    assert ended.minute > NOON + 3 * HOUR


def test_as_many_fixes_as_usual_page_nobody() -> None:
    """The same; the band's edge is assumed to be six: an account in which that is every day."""
    assert Days(lives=[healed(NOON + 3 * n) for n in range(60)]).run(1, 6) == []


def test_a_follow_up_that_is_down_is_heard_of_within_a_quarter_of_an_hour() -> None:
    begun, ended = Days(follow_up_down=range(NOON, NOON + 90)).run(1)
    assert in_order([begun, ended]) == [("heartbeat-missing", ALARM), ("heartbeat-missing", OK)]
    assert _urgent(begun.topic)
    assert 10 <= begun.minute - NOON <= 15
    assert ended.minute == NOON + 90


def test_a_follow_up_that_misses_nine_minutes_pages_nobody() -> None:
    assert Days(follow_up_down=range(NOON, NOON + 9)).run(1) == []


def test_where_nothing_is_sent_all_day_people_hear_of_it_and_open_cases_stay() -> None:
    days = Days(
        lives=[Life({HOUR: State.ESCALATED, 3 * DAY: State.CLOSED})],
        silent=range(NOON, NOON + DAY),
    )
    notices = days.run(2)
    assert in_order(notices) == [
        ("escalated-cases-open", ALARM),
        ("heartbeat-missing", ALARM),
        ("probe-lost", ALARM),
        ("nightly-failing", ALARM),
        ("heartbeat-missing", OK),
        ("probe-lost", OK),
    ]


def test_two_probes_that_are_lost_page_and_one_that_is_seen_ends_it() -> None:
    begun, ended = Days(probes_unseen=range(NOON, NOON + 5 * HOUR)).run(1)
    assert in_order([begun, ended]) == [("probe-lost", ALARM), ("probe-lost", OK)]
    second = NOON + 15 + 2 * HOUR
    assert begun.minute == second
    assert 0 <= ended.minute - (NOON + 15 + 6 * HOUR) <= HOUR + 10


def test_one_probe_that_is_lost_pages_nobody() -> None:
    assert Days(probes_unseen=range(NOON, NOON + HOUR)).run(1) == []


def test_probes_that_are_not_made_any_more_are_missed() -> None:
    (begun,) = Days(probe_down=range(NOON, 2 * DAY)).run(1)
    assert begun.alarm == "probe-lost"
    assert 2 * HOUR <= begun.minute - NOON <= 4 * HOUR


def test_a_failed_nightly_run_rings_until_one_is_written() -> None:
    begun, ended = Days(nightly_runs={0: "failed"}).run(2)
    assert in_order([begun, ended]) == [("nightly-failing", ALARM), ("nightly-failing", OK)]
    assert not _urgent(begun.topic)
    assert (begun.minute, ended.minute) == (NIGHTLY_ENDS, DAY + NIGHTLY_ENDS)


def test_a_nightly_that_does_not_come_is_missed_after_27_hours() -> None:
    days = Days(nightly_runs={0: "none"})
    begun, ended = days.run(2)
    (rang,) = days.rang["nightly-missing"]
    assert begun.minute == rang
    assert 27 * HOUR <= begun.minute - (NIGHTLY_ENDS - DAY) <= 30 * HOUR
    assert ended.minute == DAY + NIGHTLY_ENDS


def test_a_nightly_that_read_nothing_is_doubtful_until_the_next() -> None:
    days = Days(nightly_runs={1: "little"})
    begun, ended = days.run(3)
    assert set(days.rang) == {"nightly-doubtful"}
    assert (begun.minute, ended.minute) == (DAY + NIGHTLY_ENDS, 2 * DAY + NIGHTLY_ENDS)


def test_an_undelivered_report_rings_until_one_is_delivered() -> None:
    tries = {NOON: False, NOON + 2: False, NOON + 5: False, DAY + NOON: True}
    begun, ended = Days(deliveries=tries).run(3)
    assert in_order([begun, ended]) == [
        ("report-not-delivered", ALARM),
        ("report-not-delivered", OK),
    ]
    assert (begun.minute, ended.minute) == (NOON, DAY + NOON)


def test_without_a_sender_no_report_is_missed() -> None:
    assert Days(settings="default", deliveries={NOON: False}).run(1) == []


def test_a_dlq_of_ours_rings_until_it_is_emptied() -> None:
    messages = {"StartNightlyDlq": range(NOON, NOON + 3 * DAY)}
    begun, ended = Days(messages=messages).run(5)
    assert in_order([begun, ended]) == [
        ("own-dlq-start-nightly", ALARM),
        ("own-dlq-start-nightly", OK),
    ]
    assert not _urgent(begun.topic)
    assert begun.minute == NOON
    assert 0 <= ended.minute - (NOON + 3 * DAY) <= 5


def test_failed_calls_that_cannot_be_handed_over_page_at_once() -> None:
    begun, *_ = Days(messages={"IntakeUndelivered": range(NOON, NOON + HOUR)}).run(1)
    assert (begun.alarm, _urgent(begun.topic), begun.minute) == (
        "failed-calls-undelivered",
        True,
        NOON,
    )


@pytest.mark.parametrize(
    ("function", "minutes", "announced"),
    [
        ("HealFunction", [NOON], []),
        ("HealFunction", range(NOON, NOON + 15), ["not-healing"]),
        ("RedriveFunction", [NOON], []),
        ("RedriveFunction", [NOON, NOON + 5], ["lambda-failing-redrive"]),
    ],
)
def test_one_failure_is_nothing_and_several_are(
    function: str, minutes: list[int], announced: list[str]
) -> None:
    notices = Days(errors={function: minutes}).run(1)
    assert [each.alarm for each in notices if str(each.state) == ALARM] == announced
    assert len(notices) == 2 * len(announced)


def test_a_first_deployment_says_what_is_true_and_ends_it_soon() -> None:
    """Until the first scan and probe, here 5 and 15 minutes later; until the first nightly run."""
    notices = Days(starts=NOON, nightly_runs=dict.fromkeys(range(-20, 1), "none")).run(2)
    alive, *_ = [each.minute for each in notices if in_order([each]) == [("probe-lost", OK)]]
    assert {each.alarm for each in notices} == {"probe-lost", "scan-missing", "nightly-failing"}
    assert alive - NOON <= 15
    scanned = [each.minute for each in notices if in_order([each]) == [("scan-missing", OK)]]
    assert [each - NOON for each in scanned] == [SCAN_ENDS]
    assert notices[-1].minute == DAY + NIGHTLY_ENDS
    assert in_order(notices[-1:]) == [("nightly-failing", OK)]
