from __future__ import annotations

from analytics.days import days_of
from analytics.week import reached_a_person, scanned
from tests.analytics.week_authored import WEEK, arn, life

DAYS = days_of(WEEK)


def test_a_case_is_said_by_its_first_page_of_the_week() -> None:
    case = life(
        ("proposed", "11-08 09:00", "old"),
        ("applied", "11-09 09:00"),
        ("ineffective", "11-10 09:00", "it shows as before"),
        ("escalated", "11-11 09:00", "no further step"),
        ("closed", "11-17 09:00", "a person closed it"),
        notified=(1, 3, 4),
        failed_calls=0,
    )
    assert reached_a_person(DAYS, [case]) == {
        "cases": [
            {
                "case_id": "visibility_timeout_too_short-0123456789ab",
                "queue_arn": arn("orders"),
                "symptom": "visibility_timeout_too_short",
                "state": "closed",
                "opened_at": "2026-11-08T09:00:00Z",
                "notified_at": "2026-11-10T09:00:00Z",
                "pages": 2,
                "reason": "it shows as before",
                "ended_at": "2026-11-17T09:00:00Z",
                "seconds_open": 9 * 86_400.0,
                "scanned": True,
            }
        ],
        "cases_left_out": 0,
        "total": 1,
    }


def test_nobody_was_paged_this_week() -> None:
    lives = [
        life(("escalated", "11-10 09:00")),
        life(("escalated", "11-08 09:00"), ("closed", "11-10 09:00"), notified=(1,)),
        life(("escalated", "11-16 00:00"), notified=(1,)),
    ]
    assert reached_a_person(DAYS, lives) == {"cases": [], "cases_left_out": 0, "total": 0}


def test_the_earliest_pages_are_listed_and_the_rest_counted() -> None:
    lives = [
        life(("escalated", f"11-10 09:{n:02}"), notified=(1,), case_id=f"c{n:02}")
        for n in reversed(range(53))
    ]
    found = reached_a_person(DAYS, lives)
    assert [each["case_id"] for each in found["cases"]] == [f"c{n:02}" for n in range(50)]
    assert (found["cases_left_out"], found["total"]) == (3, 53)
    assert (found["cases"][0]["ended_at"], found["cases"][0]["seconds_open"]) == (None, None)


def test_a_clock_that_goes_backwards_gives_no_negative_time() -> None:
    found = reached_a_person(
        DAYS, [life(("escalated", "11-10 09:00"), ("closed", "11-10 08:00"), notified=(1,))]
    )
    assert found["cases"][0]["seconds_open"] is None


def test_what_only_a_scan_saw_is_counted_where_it_was_opened_this_week() -> None:
    lives = [
        life(("observed", "11-10 09:00"), failed_calls=0),
        life(("verified", "11-10 09:00"), failed_calls=0),
        life(
            ("escalated", "11-10 09:00"), failed_calls=0, symptom="consumer_stopped", notified=(1,)
        ),
        life(("observed", "11-08 09:00"), failed_calls=0),
        life(("observed", "11-10 09:00"), failed_calls=0, first_n=2),
        life(("observed", "11-10 09:00"), failed_calls=1),
    ]
    assert scanned(DAYS, lives) == {
        "cases": 3,
        "by_symptom": {"consumer_stopped": 1, "visibility_timeout_too_short": 2},
        "healed": 1,
        "notified": 1,
    }
