"""The parts of a week's document: queues, people, times, names, and how its nights were read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.days import days_of
from analytics.week import not_seen, reached_a_person, scanned
from analytics.week_parts import (
    FURTHER,
    MAXIMUM_PLACES,
    MAXIMUM_SYMPTOMS,
    Largest,
    NightlyRows,
    incidents_of,
    largest,
    nearest_rank,
    places,
    queue_days,
    spread,
    times_to_heal,
    with_few_symptoms,
)
from mendq.catalogue import CATALOGUE
from mendq.nightly.verdict import NightlyRead
from mendq.report import summary as reports
from tests.analytics.week_authored import (
    DAYS,
    MADE_AT,
    MONDAY,
    WEEK,
    arn,
    file,
    incident,
    life,
    nightly,
)

WEEK_DAYS = days_of(WEEK)


def test_queues_are_ranked_by_incidents_then_failed_calls_then_arn() -> None:
    unresolved = incident(queue_arn="unresolved", outcome="not_seen")
    loud, silent = incident(queue_arn="c", failed_calls=9), incident(queue_arn="b")
    first = nightly(incident(queue_arn="d"), loud, silent, unresolved)
    found = queue_days(WEEK_DAYS, {DAYS[0]: first, DAYS[6]: nightly(unresolved)})
    assert [each["queue_arn"] for each in found["queues"]] == ["unresolved", "c", "b", "d"]
    assert found["queues"][0] == {
        "queue_arn": "unresolved",
        "incidents": [1, 0, 0, 0, 0, 0, 1],
        "failed_calls": 6,
        "not_healed": 2,
    }
    assert (found["queues_left_out"], found["incidents_left_out"]) == (0, 0)


def test_what_was_fixed_after_approval_is_not_among_the_not_healed() -> None:
    outcomes = ("approved", "healed", "applied", "proposed", "not_seen")
    nightly_runs = {DAYS[0]: nightly(*(incident(outcome=each) for each in outcomes))}
    assert queue_days(WEEK_DAYS, nightly_runs)["queues"][0]["not_healed"] == 3


def test_the_queues_beyond_are_counted() -> None:
    rows = [incident(queue_arn=arn(f"q{n:02}")) for n in range(23)]
    found = queue_days(WEEK_DAYS, {DAYS[2]: nightly(*rows, rows[0]), DAYS[4]: nightly(*rows)})
    assert [each["queue_arn"] for each in found["queues"]] == [arn(f"q{n:02}") for n in range(20)]
    assert (found["queues_left_out"], found["incidents_left_out"]) == (3, 6)


# People.


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
    assert reached_a_person(WEEK_DAYS, [case])["cases"] == [
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
    ]


def test_nobody_was_paged_this_week() -> None:
    lives = [
        life(("escalated", "11-10 09:00")),
        life(("escalated", "11-08 09:00"), ("closed", "11-10 09:00"), notified=(1,)),
        life(("escalated", "11-16 00:00"), notified=(1,)),
    ]
    assert reached_a_person(WEEK_DAYS, lives) == {"cases": [], "cases_left_out": 0, "total": 0}


def test_the_earliest_pages_are_listed_and_the_rest_counted() -> None:
    lives = [
        life(("escalated", f"11-10 09:{n:02}"), notified=(1,), case_id=f"c{n:02}")
        for n in reversed(range(53))
    ]
    found = reached_a_person(WEEK_DAYS, lives)
    assert [each["case_id"] for each in found["cases"]] == [f"c{n:02}" for n in range(50)]
    assert (found["cases_left_out"], found["total"]) == (3, 53)
    assert (found["cases"][0]["ended_at"], found["cases"][0]["seconds_open"]) == (None, None)


def test_a_clock_that_goes_backwards_gives_no_negative_time() -> None:
    case = life(("escalated", "11-10 09:00"), ("closed", "11-10 08:00"), notified=(1,))
    assert reached_a_person(WEEK_DAYS, [case])["cases"][0]["seconds_open"] is None


def test_what_only_a_scan_saw_is_counted_where_it_was_opened_this_week() -> None:
    stopped = ("escalated", "11-10 09:00")
    lives = [
        life(("observed", "11-10 09:00"), failed_calls=0),
        life(("verified", "11-10 09:00"), failed_calls=0),
        life(stopped, failed_calls=0, symptom="consumer_stopped", notified=(1,)),
        life(("observed", "11-08 09:00"), failed_calls=0),
        life(("observed", "11-10 09:00"), failed_calls=0, first_n=2),
        life(("observed", "11-10 09:00"), failed_calls=1),
    ]
    assert scanned(WEEK_DAYS, lives) == {
        "cases": 3,
        "by_symptom": {"consumer_stopped": 1, "visibility_timeout_too_short": 2},
        "healed": 1,
        "notified": 1,
    }


# Times.


@pytest.mark.parametrize(("count", "p90"), [(0, None), (4, None), (5, 5), (11, 10), (100, 90)])
def test_no_percentile_below_five(count: int, p90: int | None) -> None:
    rows = [incident(seconds_to_heal=float(each)) for each in range(count, 0, -1)]
    for times in times_to_heal(rows):
        assert times["p90_seconds"] == p90
        assert times["median_seconds"] == ceil(count / 2)
        assert times["incidents"] == count


def test_symptoms_with_most_come_first_and_only_what_was_healed_counts() -> None:
    rows = [
        *(incident(symptom=each) for each in ("kms_throttled", "b", "b", "a", "a")),
        incident(symptom="never_timed", seconds_to_heal=None),
        incident(symptom="approved", outcome="approved"),
        incident(symptom="a", outcome="applied"),
    ]
    assert [(each["symptom"], each["incidents"]) for each in times_to_heal(rows)] == [
        ("a", 2), ("b", 2), ("kms_throttled", 1),
    ]  # fmt: skip


RANKED = st.lists(st.integers(0, 1_000), min_size=1, max_size=700).map(sorted)


@given(RANKED, st.integers(1, 100))
def test_a_percentile_was_measured_and_so_many_do_not_exceed_it(
    ranked: list[int], percent: int
) -> None:
    found = nearest_rank(ranked, percent)
    assert found in ranked
    assert 100 * sum(each <= found for each in ranked) >= percent * len(ranked)
    assert 100 * sum(each < found for each in ranked) < percent * len(ranked)


def test_a_sample_is_evenly_spaced_by_rank_with_both_ends() -> None:
    sample = spread(range(1_000), 200)
    assert {later - earlier for earlier, later in pairwise(sample)} == {5, 6}
    assert (len(sample), sample[0], sample[-1]) == (200, 0, 999)
    assert spread([1, 2], 200) == [1, 2]


# Names.


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (3, Largest({"a": 2, "b": 9, "c": 2})),
        (2, Largest({"a": 2, "b": 9}, 1, 2)),
        (0, Largest({}, 3, 13)),
    ],
)
def test_the_largest_stay_and_the_others_are_counted(most: int, found: Largest) -> None:
    for names in ("abc", "cba"):
        assert largest({each: 9 if each == "b" else 2 for each in names}, most) == found
    assert list(largest({"c": 2, "b": 9}, 2).counts) == ["b", "c"]


def test_of_places_those_with_most_rows() -> None:
    rows = [incident(account=f"{n:012}") for n in range(MAXIMUM_PLACES + 5)]
    assert places(rows, "account") == ([f"{n:012}" for n in range(MAXIMUM_PLACES)], 5)
    again = incident(account=f"{MAXIMUM_PLACES + 4:012}")
    assert places([*rows, again], "account")[0][-1] == again["account"]
    assert places([incident(account="x" * 99)], "account") == (["x" * 61 + "..."], 0)


def test_symptoms_beyond_are_one_and_what_mendq_symptoms_stays() -> None:
    codes = [incident(symptom=f"unknown:C{n:03}") for n in range(MAXIMUM_SYMPTOMS + 10)]
    many = [incident(symptom="unknown:C105"), incident(symptom="unknown:C106", failed_calls=9)]
    own = incident(symptom="visibility_timeout_too_short", failed_calls=1)
    nightly_runs = {DAYS[0]: nightly(*codes, own), DAYS[1]: nightly(*many)}
    few, left_out = with_few_symptoms(WEEK_DAYS, nightly_runs)
    symptoms = [each["symptom"] for each in incidents_of(WEEK_DAYS, few)]
    assert len(symptoms) == len(codes) + 3
    assert len(set(symptoms)) == MAXIMUM_SYMPTOMS
    assert {"visibility_timeout_too_short", "unknown:C105", "unknown:C106", FURTHER} < set(symptoms)
    assert "unknown:C095" in symptoms
    assert "unknown:C096" not in symptoms
    assert (left_out, symptoms.count(FURTHER)) == (12, 12)
    fitting = {DAYS[0]: nightly(*codes[:MAXIMUM_SYMPTOMS])}
    assert with_few_symptoms(WEEK_DAYS, fitting) == (fitting, 0)


def test_mendq_s_own_symptoms_always_fit_and_the_report_knows_the_other() -> None:
    assert len(CATALOGUE) < MAXIMUM_SYMPTOMS
    assert reports.FURTHER == FURTHER


# How its nights were read.

READ = NightlyRead(MONDAY, MADE_AT, "native", "", files=9, records=10_000, failed_calls=3)
REGULAR = {
    day: replace(READ, day=day)
    for day in (MONDAY + timedelta(days=number) for number in range(-14, 7))
}


def counted(read: NightlyRead) -> NightlyRows:
    """Tables that agree with what a nightly run says of itself."""
    first = file("a", records=read.records, bytes=read.bytes)
    others = [file(f"{n}", records=0, bytes=0) for n in range(read.files - 1)]
    return NightlyRows([], [first, *others] if read.files else [])


def nightly_runs(reads: dict[Any, NightlyRead], tables: Any = None) -> list[dict[str, Any]]:
    """With tables that agree, unless others are given."""
    if tables is None:
        tables = {day: counted(read) for day, read in reads.items()}
    found: list[dict[str, Any]] = not_seen(WEEK_DAYS, tables, reads)["nightly_runs"]
    return found


def test_each_nightly_has_its_own_verdict() -> None:
    reads = {
        **REGULAR,
        DAYS[1]: replace(READ, day=DAYS[1], records=1_999),
        DAYS[2]: replace(READ, day=DAYS[2], records=0, failed_calls=0),
        DAYS[3]: replace(READ, day=DAYS[3], reader="standard_library", why_fallback="no isal"),
    }
    del reads[DAYS[6]]
    found = nightly_runs(reads)
    assert [each["verdict"] for each in found] == [
        "read", "far_fewer", "nothing_read", "read", "read", "read", "missing",
    ]  # fmt: skip
    assert [each["day"] for each in found] == [str(day) for day in DAYS]
    assert found[3] == {
        "day": "2026-11-12",
        "reader": "standard_library",
        "why_fallback": "no isal",
        "records": 10_000,
        "usual_records": 10_000,
        "verdict": "read",
    }
    assert found[6]["usual_records"] is None


def test_tables_that_are_not_what_the_nightly_counted_are_torn() -> None:
    whole = counted(READ)
    torn = {
        DAYS[0]: whole,
        DAYS[1]: NightlyRows(whole.incidents, whole.quality[:-1]),
        DAYS[2]: NightlyRows([{"symptom": "visibility_timeout_too_short"}], whole.quality),
        DAYS[3]: NightlyRows([], [{**row, "bytes": 7} for row in whole.quality]),
        DAYS[4]: NightlyRows([], [{**row, "records": 7} for row in whole.quality]),
    }
    found = nightly_runs(REGULAR, torn)
    assert [each["verdict"] for each in found] == ["read", *["torn"] * 6]
    assert found[1]["usual_records"] == 10_000


def test_an_older_nightly_is_known_by_its_tables_alone() -> None:
    tables = {MONDAY: NightlyRows([], [file("a"), file("b")]), DAYS[1]: nightly()}
    older, empty, *missing = nightly_runs({}, tables)
    assert (older["verdict"], older["records"], older["reader"]) == ("read", 20, "")
    assert {each["verdict"] for each in [empty, *missing]} == {"missing"}
