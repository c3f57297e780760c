"""summary.json, from rows and cases to the document; `test_week_bounds` has an absurd one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

import pytest

from analytics.week import make_summary
from analytics.week_parts import (
    MAXIMUM_CASES,
    MAXIMUM_SYMPTOMS,
    OTHER_CODES_SYMPTOM,
    list_most_frequent_values,
    list_times_to_heal,
    pick_evenly,
)
from analytics.weekly import to_json_bytes
from mendq.catalogue import CATALOGUE
from mendq.nightly.verdict import NightlyCounts
from mendq.report import summary_parts as reports
from mendq.report.summary import read_summary
from tests.analytics.builders import make_time
from tests.analytics.counted_week import WEEK_FILE, count_week
from tests.analytics.week_builders import (
    DAYS,
    MADE_AT,
    MONDAY,
    WEEK,
    make_case_files,
    make_file_row,
    make_incident,
    make_queue_arn,
    make_timeline,
    make_week_input,
    make_week_summary,
)
from tests.golden.checks import fail_if_stale

OF_CASES = {"reached_a_person", "open_now", "open_now_left_out", "impact", "earned",
            "do_this_week", "do_this_week_left_out"}  # fmt: skip


def test_week_without_nightly_runs_reports_them_missing_and_counts_nothing() -> None:
    document = make_week_summary({})
    missing = document["not_seen"]["nightly_runs_missing"]
    assert [row["date"] for row in document["per_day"]] == missing
    assert {row["symptom"] for row in document["per_day"]} == {None}
    assert set(document["totals"].values()) == {0, None}
    assert document["previous_weeks"] == document["cases"] == document["accounts"] == []


def test_week_whose_cases_were_not_read_says_nothing_about_cases() -> None:
    """Zero open cases would be a claim that nobody checked."""
    document = make_week_summary({})
    assert not OF_CASES & set(document)
    assert "case_files_unreadable" not in document["not_seen"]
    assert not read_summary(to_json_bytes(document)).cases_were_read


def test_week_whose_cases_were_read_has_fields_about_cases_and_counts_unreadable_files() -> None:
    document = make_week_summary({}, case_files=make_case_files(unreadable=2))
    assert set(document) >= OF_CASES
    assert document["not_seen"]["case_files_unreadable"] == 2
    assert read_summary(to_json_bytes(document)).cases_were_read


def test_week_summary_of_incidents_cases_and_files_equals_the_stored_document() -> None:
    fail_if_stale(WEEK_FILE)
    read_summary(to_json_bytes(count_week()))


DRILL = make_queue_arn("mendq-drill-0123abcd.fifo")


def test_incidents_of_drills_probe_and_own_looks_are_counted_only_as_own_incidents() -> None:
    rows = [
        make_incident(1),
        make_incident(2, queue_arn=DRILL, outcome="escalated", symptom="drilled"),
        make_incident(3),
        make_incident(4, queue_arn=make_queue_arn("mendq-probe.fifo"), outcome="not_seen"),
        make_incident(5, outcome="escalated", why="own_look"),
    ]
    reads = {MONDAY: replace(READ, files=0, records=0, incidents=2, own_incidents=3)}
    document = make_week_summary(
        {MONDAY: rows, date(2026, 11, 2): rows}, nightly_counts_by_day=reads
    )
    assert document["not_seen"]["own_incidents"] == 3
    assert document["not_seen"]["nightly_runs"][0]["verdict"] != "torn"
    assert document["totals"]["incidents"] == document["previous_weeks"][0]["incidents"] == 2
    assert document["by_outcome"] == {"healed": 2}
    assert DRILL not in json.dumps(document)
    assert "drilled" not in document["by_symptom"]


def test_queue_with_the_drill_prefix_inside_its_name_is_no_drill() -> None:
    rows = [make_incident(1, queue_arn=make_queue_arn("x-mendq-drill-1"))]
    document = make_week_summary({MONDAY: rows})
    assert document["totals"]["incidents"] == 1
    assert document["not_seen"]["own_incidents"] == 0


def test_escalated_cases_of_drills_reach_no_person_and_wait_for_nobody() -> None:
    cases = make_case_files(
        make_timeline(
            ("escalated", "11-10 09:00"), queue="mendq-drill-0123abcd.fifo", notified=(1,)
        ),
        make_timeline(
            ("escalated", "11-10 09:00"), queue="mendq-drill-1", notified=(1,), failed_calls=0
        ),
    )
    document = make_week_summary({MONDAY: []}, case_files=cases)
    assert document["reached_a_person"]["total"] == 0
    assert document["do_this_week"] == document["open_now"] == []


def is_nightly_run_torn(**counts: Any) -> bool:
    """Return True if counts are torn for a table with an incident and an own incident."""
    rows = [make_incident(1), make_incident(2, why="own_look")]
    reads = {MONDAY: replace(READ, files=0, records=0, **counts)}
    document = make_week_summary({MONDAY: rows}, nightly_counts_by_day=reads)
    return bool(document["not_seen"]["nightly_runs"][0]["verdict"] == "torn")


def test_nightly_run_is_torn_unless_incidents_plus_own_incidents_are_the_rows_of_its_table() -> (
    None
):
    assert not is_nightly_run_torn(incidents=1, own_incidents=1)
    assert is_nightly_run_torn(incidents=2, own_incidents=1)
    assert is_nightly_run_torn(incidents=1, own_incidents=0)


def test_nightly_run_of_an_earlier_version_is_torn_unless_it_counted_the_whole_table() -> None:
    """The earlier version counted own incidents as incidents."""
    assert not is_nightly_run_torn(incidents=2)
    assert is_nightly_run_torn(incidents=1)


def test_operators_look_after_an_untouched_incident_does_not_count_as_failing_again() -> None:
    untouched = make_incident(1, outcome="refused")
    look = make_incident(2, why="own_look", first_failure=make_time("11-09 11:00"))
    days = {MONDAY: [untouched, look], DAYS[1]: []}
    [comparison] = make_week_summary(days)["does_it_help"]
    assert (comparison["untouched"], comparison["recovered"]) == (1, 1)


def test_previous_week_counts_only_its_complete_nightly_runs() -> None:
    before = [MONDAY - timedelta(days=days_ago) for days_ago in range(1, 8)]
    reads = {day: replace(READ, day=day) for day in before[:4]}
    reads[before[0]] = replace(READ, day=before[0], made_at=MADE_AT - timedelta(days=8, hours=4))
    document = make_week_summary(dict.fromkeys(before[:5], ()), nightly_counts_by_day=reads)
    assert [week["nightly_runs"] for week in document["previous_weeks"]] == [4]


WEEK_ENDED_AT = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("made_at", "tables", "is_over"),
    [
        (timedelta(minutes=-1), True, False),
        (timedelta(0), True, True),
        (timedelta(hours=2, minutes=59), False, False),
        (timedelta(hours=3), False, True),
    ],
)
def test_week_is_over_once_sunday_has_ended_and_its_table_exists_or_three_hours_passed(
    made_at: timedelta, *, tables: bool, is_over: bool
) -> None:
    there = make_week_input({DAYS[6]: ()} if tables else {})
    document = make_summary(WEEK, there, WEEK_ENDED_AT + made_at)
    assert document["not_seen"]["week_is_over"] is is_over


@pytest.mark.parametrize(
    ("made_at", "scheduled_at", "tables", "is_over"),
    [
        (timedelta(hours=-9), timedelta(hours=6), False, True),
        (timedelta(hours=1), timedelta(hours=1), False, True),
        (timedelta(hours=6), timedelta(hours=-9), True, False),
    ],
)
def test_week_of_a_scheduled_job_is_over_only_if_the_scheduled_time_is_after_sunday(
    made_at: timedelta, scheduled_at: timedelta, *, tables: bool, is_over: bool
) -> None:
    there = make_week_input({DAYS[6]: ()} if tables else {})
    document = make_summary(WEEK, there, WEEK_ENDED_AT + made_at, WEEK_ENDED_AT + scheduled_at)
    assert document["not_seen"]["week_is_over"] is is_over


def test_sunday_table_written_before_sunday_ended_is_partial_and_the_week_is_not_over() -> None:
    early = datetime(2026, 11, 15, 2, tzinfo=UTC)
    reads = {DAYS[6]: replace(READ, day=DAYS[6], made_at=early, files=0, records=0)}
    at = datetime(2026, 11, 16, 1, tzinfo=UTC)
    document = make_summary(WEEK, make_week_input({DAYS[6]: ()}, nightly_counts_by_day=reads), at)
    assert document["not_seen"]["week_is_over"] is False
    assert document["not_seen"]["nightly_runs"][6]["verdict"] == "partial"


def test_listed_incident_shows_the_shortened_reason_of_its_cases_outcome_or_an_empty_text() -> None:
    seen_well = ("verified", "11-10 10:00", "r" * 2_000)
    case = make_timeline(
        ("applied", "11-10 09:00", "first"), seen_well, ("watching", "11-10 10:00", "on")
    )
    rows = [
        make_incident(1, case_id=case.newest_transition.case_id),
        make_incident(2, case_id="older"),
        make_incident(3),
    ]
    rows[2] |= {"outcome": "not_seen", "case_id": None}
    with_cases = make_week_summary({MONDAY: rows}, case_files=make_case_files(case))
    reasons = [incident["reason"] for incident in with_cases["cases"]]
    assert reasons == ["", "r" * 997 + "...", ""]
    without_cases = make_week_summary({MONDAY: rows})
    assert [incident["reason"] for incident in without_cases["cases"]] == [""] * 3


def make_sixty_incidents() -> list[dict[str, Any]]:
    """Make incidents 0 to 59 with as many failed calls. Numbers 7 and 50 wait for a person."""
    rows = [make_incident(number, failed_calls=number) for number in range(60)]
    rows[7] |= {"outcome": "escalated"}
    rows[50] |= {"outcome": "escalated"}
    rows[8] |= {"outcome": "approved"}
    return rows


def test_week_lists_50_incidents_and_counts_the_others_as_left_out() -> None:
    document = make_week_summary({MONDAY: make_sixty_incidents()})
    assert len(document["cases"]) == MAXIMUM_CASES == 50
    assert document["cases_left_out"] == 10


def test_incidents_that_wait_for_a_person_are_listed_oldest_first_before_all_others() -> None:
    """A flood of new incidents must not hide an old one that waits."""
    document = make_week_summary({MONDAY: make_sixty_incidents()})
    assert [row["failed_calls"] for row in document["cases"][:4]] == [7, 50, 59, 58]
    assert document["cases"][0]["first_failure"] == "2026-11-09T09:00:07Z"


def test_incident_that_a_person_approved_does_not_count_as_healed() -> None:
    assert make_week_summary({MONDAY: make_sixty_incidents()})["totals"]["healed"] == 57


def test_waiting_incidents_are_listed_by_urgency_then_by_what_they_wait_for() -> None:
    scanned: dict[str, Any] = {"failed_calls": 0, "outcome": "escalated", "urgent": True}
    waiting: list[dict[str, Any]] = [
        {"outcome": outcome} for outcome in ("refused", "overridden", "proposed", "escalated")
    ]
    rows = [
        make_incident(n, **incident_fields) for n, incident_fields in enumerate((*waiting, scanned))
    ]
    ranked = make_week_summary({MONDAY: rows})["cases"]
    assert [row["outcome"] for row in ranked] == [
        *("escalated", "escalated", "proposed", "overridden", "refused")
    ]
    assert ranked[0]["failed_calls"] == 0, "the urgent one comes first"


# Queues, times and symptoms.


def list_four_queues() -> list[dict[str, Any]]:
    """Return the summary's queues: `unresolved` with two incidents, three others with one."""
    unresolved = make_incident(queue_arn="unresolved", outcome="not_seen")
    fixed = make_incident(queue_arn="c", failed_calls=9, outcome="approved")
    first = [make_incident(queue_arn="d"), fixed, make_incident(queue_arn="b"), unresolved]
    document = make_week_summary({DAYS[0]: first, DAYS[6]: [unresolved]})
    queues: list[dict[str, Any]] = document["queue_days"]["queues"]
    return queues


def test_queues_are_ranked_by_incidents_then_failed_calls_then_arn() -> None:
    assert [queue["queue_arn"] for queue in list_four_queues()] == ["unresolved", "c", "b", "d"]


def test_ranked_queue_has_its_incidents_of_each_day_its_failed_calls_and_those_not_healed() -> None:
    """An incident whose fix a person approved counts as healed here."""
    found = list_four_queues()
    assert found[0]["incidents"] == [1, 0, 0, 0, 0, 0, 1]
    assert [queue["failed_calls"] for queue in found] == [6, 9, 3, 3]
    assert [queue["not_healed"] for queue in found] == [2, 0, 0, 0]


def test_queues_beyond_the_20_worst_are_counted_as_left_out_with_their_incidents() -> None:
    many = [make_incident(queue_arn=make_queue_arn(f"q{n:02}")) for n in range(23)]
    beyond = make_week_summary({DAYS[2]: many, DAYS[4]: many})["queue_days"]
    assert (beyond["queues_left_out"], beyond["incidents_left_out"]) == (3, 6)


@pytest.mark.parametrize(("count", "p90"), [(0, None), (4, None), (5, 5), (11, 10), (100, 90)])
def test_times_to_heal_have_a_median_and_from_five_incidents_on_also_a_p90(
    count: int, p90: int | None
) -> None:
    rows = [make_incident(seconds_to_heal=float(seconds)) for seconds in range(count, 0, -1)]
    for times in list_times_to_heal(rows):
        assert times["p90_seconds"] == p90
        assert times["median_seconds"] == ceil(count / 2)
        assert times["incidents"] == count


def test_times_to_heal_list_symptoms_by_number_of_incidents_that_mendq_healed_alone() -> None:
    rows = [
        *(make_incident(symptom=symptom) for symptom in ("kms_throttled", "b", "b", "a", "a")),
        make_incident(symptom="never_timed", seconds_to_heal=None),
        make_incident(symptom="approved", outcome="approved"),
        make_incident(symptom="a", outcome="applied"),
    ]
    found = [(times["symptom"], times["incidents"]) for times in list_times_to_heal(rows)]
    assert found == [("a", 2), ("b", 2), ("kms_throttled", 1)]


def test_pick_evenly_spaces_its_sample_by_rank_and_keeps_both_ends() -> None:
    sample = pick_evenly(range(1_000), 200)
    assert {later - earlier for earlier, later in pairwise(sample)} == {5, 6}
    assert (len(sample), sample[0], sample[-1]) == (200, 0, 999)


def test_rarest_unknown_error_codes_above_the_symptom_limit_are_merged_and_counted() -> None:
    assert len(CATALOGUE) < MAXIMUM_SYMPTOMS
    codes = [make_incident(symptom=f"unknown:C{n:03}") for n in range(MAXIMUM_SYMPTOMS + 10)]
    many = [
        make_incident(symptom="unknown:C105"),
        make_incident(symptom="unknown:C106", failed_calls=9),
    ]
    own = make_incident(symptom="visibility_timeout_too_short", failed_calls=1)
    document = make_week_summary({DAYS[0]: [*codes, own], DAYS[1]: many})
    listed = document["by_symptom"]
    assert {
        "visibility_timeout_too_short",
        "unknown:C105",
        "unknown:C106",
        OTHER_CODES_SYMPTOM,
    } < set(listed)
    assert ("unknown:C095" in listed, "unknown:C096" in listed) == (True, False)
    assert (document["symptoms_left_out"], listed[OTHER_CODES_SYMPTOM]) == (12, 12)


def test_report_knows_the_symptom_that_stands_for_merged_error_codes() -> None:
    assert reports.OTHER_CODES_SYMPTOM == OTHER_CODES_SYMPTOM


def test_long_account_name_is_shortened_to_64_characters() -> None:
    assert list_most_frequent_values([make_incident(account="x" * 99)], "account") == (
        ["x" * 61 + "..."],
        0,
    )


# The nightly runs of the week.

READ = NightlyCounts(MONDAY, MADE_AT, "native", "", files=2, records=10_000, failed_calls=3)
TWO_WEEKS_BEFORE = [MONDAY + timedelta(days=number) for number in range(-14, 0)]


def make_file_rows(read: NightlyCounts) -> list[dict[str, Any]]:
    """Make the quality rows that agree with the counts of a nightly run."""
    first = make_file_row("a", records=read.records, bytes=read.bytes)
    return [first, *(make_file_row(f"{n}", records=0, bytes=0) for n in range(read.files - 1))]


def list_nightly_runs_of_a_week() -> list[dict[str, Any]]:
    """Return a whole nightly run, one with few records, four torn ones and a missing one."""
    reads = {day: replace(READ, day=day) for day in [*TWO_WEEKS_BEFORE, *DAYS[:6]]}
    reads[DAYS[1]] = replace(READ, day=DAYS[1], records=1_999)
    quality = {day: make_file_rows(read) for day, read in reads.items()}
    quality[DAYS[2]] = quality[DAYS[2]][:-1]
    for day, name in ((DAYS[3], "bytes"), (DAYS[4], "records")):
        quality[day] = [{**row, name: 7} for row in quality[day]]
    incidents = {**dict.fromkeys(quality, ()), DAYS[5]: [make_incident()]}
    document = make_week_summary(incidents, quality, nightly_counts_by_day=reads)
    nightly_runs: list[dict[str, Any]] = document["not_seen"]["nightly_runs"]
    assert [nightly_run["day"] for nightly_run in nightly_runs] == [str(day) for day in DAYS]
    return nightly_runs


def test_nightly_run_is_torn_if_files_bytes_records_or_incidents_of_its_tables_differ() -> None:
    """The counts of a nightly run are written last, so other tables are from a run that died."""
    verdicts = [nightly_run["verdict"] for nightly_run in list_nightly_runs_of_a_week()]
    assert verdicts[0] == "read"
    assert verdicts[2:6] == ["torn"] * 4


def test_nightly_run_with_less_than_a_fifth_of_the_usual_records_has_far_fewer() -> None:
    nightly_run = list_nightly_runs_of_a_week()[1]
    assert (nightly_run["verdict"], nightly_run["usual_records"]) == ("far_fewer", 10_000)


def test_day_without_a_nightly_run_is_missing_and_has_no_usual_records() -> None:
    *nightly_runs, missing = list_nightly_runs_of_a_week()
    assert (missing["verdict"], missing["usual_records"]) == ("missing", None)
    assert {nightly_run["usual_records"] for nightly_run in nightly_runs} == {10_000}
