"""An absurd week, by the real writer, for the report's real reader: its bounds hold together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from analytics.cases import APPLIED, APPROVED, HEALED, NOT_SEEN, Life
from analytics.week import CasesSeen, Observation, summary
from analytics.week_parts import MAXIMUM_PLACES, MAXIMUM_SYMPTOMS, NightlyRows, Row
from analytics.weekly import as_json
from mendq.model.case import State
from mendq.model.failed_call import MAXIMUM_CODE, MAXIMUM_PRINCIPAL
from mendq.nightly.verdict import NightlyRead
from mendq.report.html_page import page
from mendq.report.read_summary import MOST_BYTES, read
from mendq.report.summary import Summary
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

# What takes most bytes in JSON: six for one character.
DEAREST = "\x01"
INCIDENTS, CASES, FILES = 12_000, 500, 3_000
LONG_NAME = "n" * 75
OUTCOMES = [HEALED, APPROVED, APPLIED, NOT_SEEN, *map(str, State)]


def name(number: int, length: int) -> str:
    return f"{number:05}{DEAREST * (length - 5)}"


def _incident(number: int) -> Row:
    """Each of another code, queue, account and region; half of them healed."""
    code = name(number, MAXIMUM_CODE)
    principals = [name(each, MAXIMUM_PRINCIPAL) for each in range(10)]
    return incident(
        number,
        symptom=f"unknown:{code}",
        error_codes=[name(each, MAXIMUM_CODE) for each in range(200)] if number < 100 else [code],
        queue_arn=arn(f"{LONG_NAME}{number:05}"),
        account=f"{number:012}",
        region=name(number, 32),
        principals=principals if number < 100 else [],
        outcome=HEALED if number % 2 else OUTCOMES[number // 2 % len(OUTCOMES)],
        case_id=name(number, 5_000) if number < 100 else "c",
        failed_calls=INCIDENTS - number,
        seconds_to_heal=number * 1_234_567.890123,
        notified=True,
    )


def _file(number: int) -> Row:
    """On a disk, folders and files may bear any name of 255 bytes."""
    names = [name(number, 250)] * 6
    return file("/".join(names), account=names[0], region=names[0], reason="corrupt_gzip")


def _life(number: int) -> Life:
    text = name(number, 9_000)
    return life(
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
def absurd() -> Observation:
    rows = [_incident(number) for number in range(INCIDENTS)]
    days = {each: nightly(*rows[number::7]) for number, each in enumerate(DAYS)}
    files = [_file(number) for number in range(FILES)]
    days[MONDAY] = NightlyRows(days[MONDAY].incidents, files)
    read_one = NightlyRead(MONDAY, MADE_AT, name(0, 9_000), name(1, 9_000), records=10**15 - 1)
    reads = {day: replace(read_one, day=day) for day in DAYS}
    weeks = {f"2026-W{each}": {MONDAY - timedelta(weeks=46 - each): nightly(*rows[:9])}
             for each in range(42, 46)}  # fmt: skip
    cases = CasesSeen([_life(number) for number in range(CASES)], files_unreadable=10**6)
    return Observation(days, weeks, cases, reads, MONDAY)


@pytest.fixture(scope="module")
def content(absurd: Observation) -> bytes:
    return as_json(summary(WEEK, absurd, MADE_AT))


@pytest.fixture(scope="module")
def read_again(content: bytes) -> Summary:
    return read(content)


def test_it_is_small_enough_to_be_read(content: bytes) -> None:
    assert MOST_BYTES / 3 < len(content) < MOST_BYTES * 0.95


def test_nothing_is_lost_from_the_sums(read_again: Summary) -> None:
    assert read_again.totals.incidents == INCIDENTS
    for counts in (read_again.by_symptom, read_again.by_outcome):
        assert sum(counts.values()) == INCIDENTS
    assert sum(each.incidents for each in read_again.per_day) == INCIDENTS
    seen = read_again.not_seen
    calls = sum(seen.unknown_code.values()) + seen.unknown_calls_left_out
    assert calls == read_again.totals.failed_calls == sum(range(1, INCIDENTS + 1))
    assert sum(each.incidents for each in read_again.times_to_heal) == (
        read_again.totals.healed_with_time
    )


def test_what_is_left_out_is_said(read_again: Summary) -> None:
    assert len(read_again.by_symptom) == len(read_again.not_seen.unknown_code) == MAXIMUM_SYMPTOMS
    assert read_again.symptoms_left_out == INCIDENTS - MAXIMUM_SYMPTOMS + 1
    assert read_again.not_seen.unknown_codes_left_out == INCIDENTS - MAXIMUM_SYMPTOMS
    for names, left_out in (
        (read_again.accounts, read_again.accounts_left_out),
        (read_again.regions, read_again.regions_left_out),
    ):
        assert (len(names), left_out) == (MAXIMUM_PLACES, INCIDENTS + FILES - MAXIMUM_PLACES)
    assert read_again.cases_left_out == INCIDENTS - 50
    assert read_again.reached_a_person.total == read_again.scanned.cases == CASES


def test_the_order_of_rows_changes_no_byte(absurd: Observation, content: bytes) -> None:
    turned = {
        day: NightlyRows(rows.incidents[::-1], rows.quality[::-1])
        for day, rows in [*absurd.nightly_runs.items()][::-1]
    }
    assert as_json(summary(WEEK, replace(absurd, nightly_runs=turned), MADE_AT)) == content


def test_a_page_is_made_of_it(read_again: Summary) -> None:
    made = page(read_again)
    assert "15,000 accounts in 15,000 regions" in made
    assert f"{INCIDENTS - 4:,} other symptoms" in made
    assert f"{INCIDENTS - 10:,} more" in made
