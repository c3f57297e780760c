"""The largest possible week: the report reads the summary that the weekly job writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from analytics.cases import (
    APPLIED_OUTCOME,
    APPROVED_OUTCOME,
    HEALED_OUTCOME,
    NOT_SEEN_OUTCOME,
    CaseTimeline,
)
from analytics.week import WeekInput, make_summary
from analytics.week_parts import MAXIMUM_ACCOUNTS_OR_REGIONS, MAXIMUM_SYMPTOMS, Row, RowsByDay
from analytics.weekly import to_json_bytes
from mendq.model.failed_call import MAXIMUM_ERROR_CODE_LENGTH, MAXIMUM_PRINCIPAL_LENGTH
from mendq.model.state import State
from mendq.nightly.verdict import NightlyCounts
from mendq.report.html_page import make_page
from mendq.report.summary import MOST_SUMMARY_BYTES, Summary, read_summary
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

# What takes most bytes in JSON: six for one character.
DEAREST = "\x01"
INCIDENTS = 12_000
CASES = 500
FILES = 3_000
LONG_NAME = "n" * 75
OUTCOMES = [HEALED_OUTCOME, APPROVED_OUTCOME, APPLIED_OUTCOME, NOT_SEEN_OUTCOME, *map(str, State)]


def make_long_name(number: int, length: int) -> str:
    return f"{number:05}{DEAREST * (length - 5)}"


def _make_incident(number: int) -> Row:
    """Each of another code, queue, account and region; half of them healed."""
    code = make_long_name(number, MAXIMUM_ERROR_CODE_LENGTH)
    principals = [
        make_long_name(principal_number, MAXIMUM_PRINCIPAL_LENGTH) for principal_number in range(10)
    ]
    return make_incident(
        number,
        symptom=f"unknown:{code}",
        error_codes=[
            make_long_name(code_number, MAXIMUM_ERROR_CODE_LENGTH) for code_number in range(200)
        ]
        if number < 100
        else [code],
        queue_arn=make_queue_arn(f"{LONG_NAME}{number:05}"),
        account=f"{number:012}",
        region=make_long_name(number, 32),
        principals=principals if number < 100 else [],
        outcome=HEALED_OUTCOME if number % 2 else OUTCOMES[number // 2 % len(OUTCOMES)],
        case_id=make_long_name(number, 5_000) if number < 100 else "c",
        failed_calls=INCIDENTS - number,
        seconds_to_heal=number * 1_234_567.890123,
        notified=True,
    )


def _make_file_row(number: int) -> Row:
    """On a disk, folders and files may bear any name of 255 bytes."""
    names = [make_long_name(number, 250)] * 6
    return make_file_row("/".join(names), account=names[0], region=names[0], reason="corrupt_gzip")


def _make_timeline(number: int) -> CaseTimeline:
    text = make_long_name(number, 9_000)
    return make_timeline(
        ("escalated", f"11-1{number % 6} 09:00", text),
        notified=(1,),
        steps=[(text, text, text)],
        case_id=text,
        symptom=text,
        queue=f"{LONG_NAME}{number:05}",
        failed_calls=0,
        evidence={"first_at": "2026-11-09T09:00:00Z", "last_at": "2026-11-09T09:00:00Z",
                  "failed_calls": 0, "stack": text, "resource": text},
    )  # fmt: skip


@pytest.fixture(scope="module")
def largest_week() -> WeekInput:
    rows = [_make_incident(number) for number in range(INCIDENTS)]
    days = {day: rows[number::7] for number, day in enumerate(DAYS)}
    read_one = NightlyCounts(
        MONDAY, MADE_AT, make_long_name(0, 9_000), make_long_name(1, 9_000), records=10**15 - 1
    )
    earlier = {MONDAY - timedelta(weeks=weeks_ago): rows[:9] for weeks_ago in range(1, 8)}
    quality = dict.fromkeys([*days, *earlier], ()) | {
        MONDAY: [_make_file_row(n) for n in range(FILES)]
    }
    lives = [_make_timeline(number) for number in range(CASES)]
    reads = {day: replace(read_one, day=day) for day in DAYS}
    found = make_case_files(*lives, unreadable=10**6)
    return WeekInput(days | earlier, quality, found, reads, MONDAY)


@pytest.fixture(scope="module")
def summary_bytes(largest_week: WeekInput) -> bytes:
    return to_json_bytes(make_summary(WEEK, largest_week, MADE_AT))


@pytest.fixture(scope="module")
def read_summary_again(summary_bytes: bytes) -> Summary:
    return read_summary(summary_bytes)


def test_summary_of_the_largest_week_is_small_enough_for_the_report_to_read(
    summary_bytes: bytes,
) -> None:
    assert MOST_SUMMARY_BYTES / 3 < len(summary_bytes) < MOST_SUMMARY_BYTES * 0.95


def test_sums_of_the_largest_week_cover_all_incidents_and_failed_calls(
    read_summary_again: Summary,
) -> None:
    counts = (read_summary_again.by_symptom, read_summary_again.by_outcome)
    assert [sum(counts_by_name.values()) for counts_by_name in counts] == [INCIDENTS] * 2
    assert read_summary_again.totals.incidents == INCIDENTS
    assert sum(day.incidents for day in read_summary_again.per_day) == INCIDENTS
    seen = read_summary_again.not_seen
    calls = sum(seen.unknown_code.values()) + seen.unknown_calls_left_out
    assert calls == read_summary_again.totals.failed_calls == sum(range(1, INCIDENTS + 1))
    healed = sum(times.incidents for times in read_summary_again.times_to_heal)
    assert healed == read_summary_again.totals.healed_with_time


def test_summary_of_the_largest_week_counts_the_rows_that_its_lists_leave_out(
    read_summary_again: Summary,
) -> None:
    assert (
        len(read_summary_again.by_symptom)
        == len(read_summary_again.not_seen.unknown_code)
        == MAXIMUM_SYMPTOMS
    )
    assert read_summary_again.symptoms_left_out == INCIDENTS - MAXIMUM_SYMPTOMS + 1
    assert read_summary_again.not_seen.unknown_codes_left_out == INCIDENTS - MAXIMUM_SYMPTOMS
    assert (
        len(read_summary_again.accounts)
        == len(read_summary_again.regions)
        == MAXIMUM_ACCOUNTS_OR_REGIONS
    )
    places_left_out = INCIDENTS + FILES - MAXIMUM_ACCOUNTS_OR_REGIONS
    assert (
        read_summary_again.accounts_left_out
        == read_summary_again.regions_left_out
        == places_left_out
    )
    assert read_summary_again.cases_left_out == INCIDENTS - 50
    queues = read_summary_again.queue_days
    assert (queues.queues_left_out, queues.incidents_left_out) == (INCIDENTS - 20,) * 2
    people = read_summary_again.reached_a_person
    assert (len(people.cases), people.cases_left_out, people.total) == (50, CASES - 50, CASES)
    assert (len(read_summary_again.open_now), read_summary_again.open_now_left_out) == (
        50,
        CASES - 50,
    )


def _reverse_rows(table: RowsByDay) -> RowsByDay:
    return {day: rows[::-1] for day, rows in [*table.items()][::-1]}


def test_summary_has_the_same_bytes_for_rows_in_any_order(
    largest_week: WeekInput, summary_bytes: bytes
) -> None:
    other = replace(
        largest_week,
        incidents_by_day=_reverse_rows(largest_week.incidents_by_day),
        quality_by_day=_reverse_rows(largest_week.quality_by_day),
    )
    assert to_json_bytes(make_summary(WEEK, other, MADE_AT)) == summary_bytes


def test_report_page_of_the_largest_week_also_counts_what_its_lists_leave_out(
    read_summary_again: Summary,
) -> None:
    made = make_page(read_summary_again)
    assert "15,000 accounts in 15,000 regions" in made
    assert f"{INCIDENTS - 4:,} other symptoms" in made
    assert f"{INCIDENTS - 10:,} more" in made
