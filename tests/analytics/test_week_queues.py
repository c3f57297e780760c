from __future__ import annotations

from analytics.days import days_of
from analytics.week_parts import queue_days
from tests.analytics.week_authored import DAYS, WEEK, arn, incident, nightly


def test_queues_are_ranked_by_incidents_then_failed_calls_then_arn() -> None:
    nightly_runs = {
        DAYS[0]: nightly(
            incident(queue_arn="d"),
            incident(queue_arn="c", failed_calls=9),
            incident(queue_arn="b"),
            incident(queue_arn="unresolved", outcome="not_seen"),
        ),
        DAYS[6]: nightly(incident(queue_arn="unresolved", outcome="not_seen")),
    }
    found = queue_days(days_of(WEEK), nightly_runs)
    assert [each["queue_arn"] for each in found["queues"]] == ["unresolved", "c", "b", "d"]
    assert found["queues"][0] == {
        "queue_arn": "unresolved",
        "incidents": [1, 0, 0, 0, 0, 0, 1],
        "failed_calls": 6,
        "not_healed": 2,
    }
    assert found["queues"][1]["not_healed"] == 0
    assert (found["queues_left_out"], found["incidents_left_out"]) == (0, 0)


def test_what_was_fixed_after_approval_is_not_among_the_not_healed() -> None:
    outcomes = ("approved", "healed", "applied", "proposed", "not_seen")
    nightly_runs = {DAYS[0]: nightly(*(incident(outcome=each) for each in outcomes))}
    assert queue_days(days_of(WEEK), nightly_runs)["queues"][0]["not_healed"] == 3


def test_the_rest_is_counted() -> None:
    rows = [incident(queue_arn=arn(f"q{n:02}")) for n in range(23)]
    found = queue_days(days_of(WEEK), {DAYS[2]: nightly(*rows, rows[0]), DAYS[4]: nightly(*rows)})
    assert [each["queue_arn"] for each in found["queues"]] == [arn(f"q{n:02}") for n in range(20)]
    assert (found["queues_left_out"], found["incidents_left_out"]) == (3, 6)
