"""The largest possible week: the report reads the summary that the weekly job writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from analytics.cases import (
    APPLIED_OUTCOME,
    APPROVED_OUTCOME,
    HEALED_OUTCOME,
    NOT_SEEN_OUTCOME,
    CaseTimeline,
)
from analytics.days import PREVIOUS_WEEKS
from analytics.week import WeekInput, make_summary
from analytics.week_cases import MAXIMUM_NOTIFIED_CASES
from analytics.week_parts import (
    MAXIMUM_ACCOUNTS_OR_REGIONS,
    MAXIMUM_CASES,
    MAXIMUM_QUEUES,
    MAXIMUM_SYMPTOMS,
    Row,
    RowsByDay,
)
from analytics.weekly import to_json_bytes
from mendq.model.failed_call import MAXIMUM_ERROR_CODE_LENGTH, MAXIMUM_PRINCIPAL_LENGTH
from mendq.model.state import State
from mendq.nightly.verdict import NightlyCounts
from mendq.report.days import MOST_CHART_SERIES
from mendq.report.html_page import make_page
from mendq.report.not_seen import MAXIMUM_LISTED_CODES
from mendq.report.summary import MOST_SUMMARY_BYTES, Summary, read_summary
from mendq.report.summary_parts import MAXIMUM_OPEN_CASES
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
)

# The character that takes most bytes in JSON: six.
DEAREST = "\x01"
INCIDENTS = 12_000
CASES = 500
FILES = 3_000
# A few incidents have lists that are as long as the nightly job lets them be. If all had, the week
# would not fit into the memory of the test.
INCIDENTS_WITH_LONG_LISTS = 100
ERROR_CODES_IN_LONG_LIST = 200
PRINCIPALS_IN_LONG_LIST = 10
# SQS names have at most 80 characters; a number of five digits is added to these.
LONG_QUEUE_NAME = "n" * 75
# Longer than any AWS name, because the summary must cut it.
LONG_REGION_CHARACTERS = 32
LONG_TEXT_CHARACTERS = 9_000
# The longest name of a file in a folder of Linux is 255 bytes.
LONG_FOLDER_CHARACTERS = 250
OUTCOMES = [HEALED_OUTCOME, APPROVED_OUTCOME, APPLIED_OUTCOME, NOT_SEEN_OUTCOME, *map(str, State)]
# Each incident, and each file, is of its own account and region.
ACCOUNTS = REGIONS = INCIDENTS + FILES


def make_long_name(number: int, length: int) -> str:
    """Make a name of this length that differs for each number."""
    return f"{number:05}{DEAREST * (length - 5)}"


def make_long_names(count: int, length: int) -> list[str]:
    return [make_long_name(number, length) for number in range(count)]


def _make_incident(number: int) -> Row:
    """Make an incident of its own code, queue, account and region; half of them are healed."""
    code = make_long_name(number, MAXIMUM_ERROR_CODE_LENGTH)
    has_long_lists = number < INCIDENTS_WITH_LONG_LISTS
    codes = make_long_names(ERROR_CODES_IN_LONG_LIST, MAXIMUM_ERROR_CODE_LENGTH)
    principals = make_long_names(PRINCIPALS_IN_LONG_LIST, MAXIMUM_PRINCIPAL_LENGTH)
    return make_incident(
        number,
        symptom=f"unknown:{code}",
        error_codes=codes if has_long_lists else [code],
        queue_arn=make_queue_arn(f"{LONG_QUEUE_NAME}{number:05}"),
        account=f"{number:012}",
        region=make_long_name(number, LONG_REGION_CHARACTERS),
        principals=principals if has_long_lists else [],
        outcome=HEALED_OUTCOME if number % 2 else OUTCOMES[number // 2 % len(OUTCOMES)],
        case_id=make_long_name(number, LONG_TEXT_CHARACTERS) if has_long_lists else "c",
        failed_calls=INCIDENTS - number,
        seconds_to_heal=number * 1_234_567.890123,
        notified=True,
    )


def _make_file_row(number: int) -> Row:
    names = [make_long_name(number, LONG_FOLDER_CHARACTERS)] * 6
    return make_file_row("/".join(names), account=names[0], region=names[0], reason="corrupt_gzip")


def _make_timeline(number: int) -> CaseTimeline:
    text = make_long_name(number, LONG_TEXT_CHARACTERS)
    return make_timeline(
        ("escalated", f"11-1{number % 6} 09:00", text),
        notified=(1,),
        steps=[(text, text, text)],
        case_id=text,
        symptom=text,
        queue=f"{LONG_QUEUE_NAME}{number:05}",
        failed_calls=0,
        evidence={
            "first_at": "2026-11-09T09:00:00Z",
            "last_at": "2026-11-09T09:00:00Z",
            "failed_calls": 0,
            "stack": text,
            "resource": text,
        },
    )


@pytest.fixture(scope="module")
def largest_week() -> WeekInput:
    incidents = [_make_incident(number) for number in range(INCIDENTS)]
    incidents_by_day = {day: incidents[number::7] for number, day in enumerate(DAYS)}
    for weeks_ago in range(1, PREVIOUS_WEEKS + 1):
        incidents_by_day[MONDAY - timedelta(weeks=weeks_ago)] = incidents[:9]
    quality_by_day: dict[date, list[Row]] = {day: [] for day in incidents_by_day}
    quality_by_day[MONDAY] = [_make_file_row(number) for number in range(FILES)]
    counts_of_a_day = NightlyCounts(
        MONDAY,
        MADE_AT,
        reader=make_long_name(0, LONG_TEXT_CHARACTERS),
        why_fallback=make_long_name(1, LONG_TEXT_CHARACTERS),
        records=10**15 - 1,
    )
    timelines = [_make_timeline(number) for number in range(CASES)]
    return WeekInput(
        incidents_by_day,
        quality_by_day,
        make_case_files(*timelines, unreadable=10**6),
        {day: replace(counts_of_a_day, day=day) for day in DAYS},
        MONDAY,
    )


@pytest.fixture(scope="module")
def summary_bytes(largest_week: WeekInput) -> bytes:
    return to_json_bytes(make_summary(WEEK, largest_week, MADE_AT))


@pytest.fixture(scope="module")
def summary(summary_bytes: bytes) -> Summary:
    return read_summary(summary_bytes)


def test_summary_of_the_largest_week_stays_below_the_bytes_that_the_report_reads(
    summary_bytes: bytes,
) -> None:
    assert len(summary_bytes) < MOST_SUMMARY_BYTES * 0.95
    assert len(summary_bytes) > MOST_SUMMARY_BYTES / 3, "the week of this test is not the largest"


def test_symptoms_outcomes_and_days_of_the_largest_week_add_up_to_all_incidents(
    summary: Summary,
) -> None:
    assert summary.totals.incidents == INCIDENTS
    assert sum(summary.by_symptom.values()) == INCIDENTS
    assert sum(summary.by_outcome.values()) == INCIDENTS
    assert sum(day.incidents for day in summary.per_day) == INCIDENTS


def test_unknown_codes_of_the_largest_week_add_up_to_all_failed_calls(summary: Summary) -> None:
    failed_calls = sum(range(1, INCIDENTS + 1))
    listed_calls = sum(summary.not_seen.unknown_code.values())
    assert summary.totals.failed_calls == failed_calls
    assert listed_calls + summary.not_seen.unknown_calls_left_out == failed_calls


def test_times_to_heal_of_the_largest_week_add_up_to_all_healed_incidents(
    summary: Summary,
) -> None:
    healed_incidents = [n for n in range(INCIDENTS) if _make_incident(n)["outcome"] == "healed"]
    assert sum(times.incidents for times in summary.times_to_heal) == len(healed_incidents)
    assert summary.totals.healed_with_time == len(healed_incidents)


def test_summary_of_the_largest_week_lists_the_most_it_may_and_counts_the_other_rows(
    summary: Summary,
) -> None:
    assert len(summary.cases) == MAXIMUM_CASES
    assert summary.cases_left_out == INCIDENTS - MAXIMUM_CASES
    assert len(summary.accounts) == MAXIMUM_ACCOUNTS_OR_REGIONS
    assert summary.accounts_left_out == ACCOUNTS - MAXIMUM_ACCOUNTS_OR_REGIONS
    assert len(summary.regions) == MAXIMUM_ACCOUNTS_OR_REGIONS
    assert summary.regions_left_out == REGIONS - MAXIMUM_ACCOUNTS_OR_REGIONS
    queue_days = summary.queue_days
    assert len(queue_days.queues) == MAXIMUM_QUEUES
    assert queue_days.queues_left_out == INCIDENTS - MAXIMUM_QUEUES
    assert queue_days.incidents_left_out == INCIDENTS - MAXIMUM_QUEUES
    reached_a_person = summary.reached_a_person
    assert reached_a_person.total == CASES
    assert len(reached_a_person.cases) == MAXIMUM_NOTIFIED_CASES
    assert reached_a_person.cases_left_out == CASES - MAXIMUM_NOTIFIED_CASES
    assert len(summary.open_now) == MAXIMUM_OPEN_CASES
    assert summary.open_now_left_out == CASES - MAXIMUM_OPEN_CASES


def test_summary_of_the_largest_week_merges_the_symptoms_beyond_its_limit_and_counts_them(
    summary: Summary,
) -> None:
    """The merged symptoms have a place in the list, so one symptom fewer is listed."""
    assert len(summary.by_symptom) == MAXIMUM_SYMPTOMS
    assert summary.symptoms_left_out == INCIDENTS - (MAXIMUM_SYMPTOMS - 1)
    assert len(summary.not_seen.unknown_code) == MAXIMUM_SYMPTOMS
    assert summary.not_seen.unknown_codes_left_out == INCIDENTS - MAXIMUM_SYMPTOMS


def _reverse_rows(table: RowsByDay) -> RowsByDay:
    return {day: rows[::-1] for day, rows in reversed(list(table.items()))}


def test_summary_has_the_same_bytes_for_rows_in_any_order(
    largest_week: WeekInput, summary_bytes: bytes
) -> None:
    other = replace(
        largest_week,
        incidents_by_day=_reverse_rows(largest_week.incidents_by_day),
        quality_by_day=_reverse_rows(largest_week.quality_by_day),
    )
    assert to_json_bytes(make_summary(WEEK, other, MADE_AT)) == summary_bytes


def test_report_page_of_the_largest_week_says_how_much_its_lists_leave_out(
    summary: Summary,
) -> None:
    page = make_page(summary)
    symptoms_in_chart = MOST_CHART_SERIES - 1
    assert f"{ACCOUNTS:,} accounts in {REGIONS:,} regions" in page
    assert f"{INCIDENTS - symptoms_in_chart:,} other symptoms" in page
    assert f"{INCIDENTS - MAXIMUM_LISTED_CODES:,} more." in page
    assert f"{INCIDENTS - MAXIMUM_CASES:,} more are in the report bucket" in page
    assert f"{INCIDENTS - MAXIMUM_QUEUES:,} more queues had" in page
