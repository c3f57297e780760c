"""The verdict on a nightly run, and reading its counts."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mendq.nightly.verdict import (
    COUNT_FIELDS,
    FALLBACK_READER,
    NATIVE_READER,
    NightlyCounts,
    NightlyJudgement,
    Verdict,
    find_usual_record_count,
    judge_nightly_run,
    read_nightly_counts,
)

SUNDAY = date(2026, 11, 15)
MADE_AT = datetime(2026, 11, 16, 2, 3, 4, tzinfo=UTC)


def make_counts(day: date = SUNDAY, records: int = 10_000, **fields: Any) -> NightlyCounts:
    fields = {"made_at": MADE_AT, "failed_calls": min(records, 3), "files": 1, **fields}
    return NightlyCounts(day, reader=NATIVE_READER, why_fallback="", records=records, **fields)


def make_earlier_counts(*records: int, until: date = SUNDAY) -> list[NightlyCounts]:
    """Nightly runs on the days before `until`, the last one first."""
    return [
        make_counts(until - timedelta(days=n), record_count)
        for n, record_count in enumerate(records, 1)
    ]


WEEKDAYS = (9_900, 10_100, 10_000, 9_800, 10_200)
# Saturday, Friday .. Monday, then Sunday, and the week before that.
TWO_WEEKS = (1_500, *WEEKDAYS, 1_400, 1_500, *WEEKDAYS, 1_300)


EARLIER = {"two weeks": TWO_WEEKS, "two weeks but a Sunday": (*TWO_WEEKS[:6], 0, *TWO_WEEKS[7:])}
BELIEVED = yaml.safe_load(Path(__file__).with_name("believed.yaml").read_text())


def list_earlier_record_counts(earlier: str | list[int] | dict[str, int]) -> tuple[int, ...]:
    """Return the record counts that `earlier` of believed.yaml stands for."""
    if isinstance(earlier, str):
        return EARLIER[earlier]
    if isinstance(earlier, dict):
        return (earlier["records"],) * earlier["runs"]
    return tuple(earlier)


def with_rows_judged(verdict: Verdict) -> pytest.MarkDecorator:
    """Run a test with each row of believed.yaml that expects this verdict."""
    rows = [row for row in BELIEVED if row["verdict"] == verdict]
    assert rows
    return pytest.mark.parametrize("row", rows, ids=[row["what"] for row in rows])


def assert_judged_as_expected(row: dict[str, Any]) -> None:
    nightly_runs = make_earlier_counts(*list_earlier_record_counts(row["earlier"]))
    expected = NightlyJudgement(Verdict(row["verdict"]), row["usual"])
    assert judge_nightly_run(make_counts(records=row["records"]), nightly_runs) == expected


@with_rows_judged(Verdict.FAR_FEWER)
def test_nightly_run_is_judged_far_fewer_if_it_read_less_than_a_fifth_of_the_usual_records(
    row: dict[str, Any],
) -> None:
    """The usual number is the median of the earlier runs that read records."""
    assert_judged_as_expected(row)


@with_rows_judged(Verdict.NOTHING_READ)
def test_nightly_run_without_records_is_judged_nothing_read_whatever_earlier_runs_read(
    row: dict[str, Any],
) -> None:
    """A quiet account has records too: the probe makes a failing call every hour."""
    assert_judged_as_expected(row)


@with_rows_judged(Verdict.READ)
def test_nightly_run_is_judged_read_from_a_fifth_on_or_with_too_few_earlier_runs_or_records(
    row: dict[str, Any],
) -> None:
    assert_judged_as_expected(row)


def test_usual_record_count_uses_only_nightly_runs_of_the_fourteen_days_before() -> None:
    later = [make_counts(SUNDAY + timedelta(days=n), 10_000) for n in range(5)]
    long_ago = [make_counts(SUNDAY - timedelta(days=n), 10_000) for n in range(15, 30)]
    assert judge_nightly_run(make_counts(records=10), [*later, *long_ago]) == NightlyJudgement(
        Verdict.READ
    )


@pytest.mark.parametrize(
    ("made_at", "verdict"),
    [
        (datetime(2026, 11, 15, 23, 59, 59, tzinfo=UTC), Verdict.PARTIAL),
        (datetime(2026, 11, 15, 2, tzinfo=UTC), Verdict.PARTIAL),
        (datetime(2026, 11, 16, 0, 59, tzinfo=timezone(timedelta(hours=1))), Verdict.PARTIAL),
        (datetime(2026, 11, 16, tzinfo=UTC), Verdict.READ),
    ],
)
def test_nightly_run_is_partial_only_if_it_was_written_before_its_day_ended(
    made_at: datetime, verdict: Verdict
) -> None:
    """The run of the day before wrote this day too, and the run of the day itself never came."""
    nightly_run = make_counts(made_at=made_at)
    assert judge_nightly_run(nightly_run, make_earlier_counts(*TWO_WEEKS)) == NightlyJudgement(
        verdict, 1_400
    )


def test_nightly_run_without_records_is_partial_until_its_day_ends_and_nothing_read_after() -> None:
    early = datetime(2026, 11, 15, 2, tzinfo=UTC)
    early_run = make_counts(records=0, made_at=early)
    late_run = make_counts(records=0)
    assert judge_nightly_run(early_run, []).verdict is Verdict.PARTIAL
    assert judge_nightly_run(late_run, []).verdict is Verdict.NOTHING_READ


def test_usual_record_count_ignores_nightly_runs_written_before_their_day_ended() -> None:
    partial = [
        replace(nightly_run, made_at=datetime.combine(nightly_run.day, time(2), UTC))
        for nightly_run in make_earlier_counts(10, 10, 10, 10)
    ]
    older = [make_counts(SUNDAY - timedelta(days=n), 10_000) for n in (5, 6, 8)]
    assert find_usual_record_count(SUNDAY, [*partial, *older]) == 10_000
    assert find_usual_record_count(SUNDAY, partial) is None


def test_day_without_nightly_counts_is_failed_if_its_job_run_failed_and_missing_otherwise() -> None:
    assert judge_nightly_run(None, make_earlier_counts(*TWO_WEEKS)) == NightlyJudgement(
        Verdict.MISSING
    )
    assert judge_nightly_run(
        None, make_earlier_counts(*TWO_WEEKS), has_run_failed=True
    ) == NightlyJudgement(Verdict.FAILED)


RECORDS = st.integers(0, 100_000)


@given(RECORDS, st.lists(RECORDS, max_size=20))
def test_more_records_never_worsen_the_verdict_of_a_nightly_run(
    records: int, earlier: list[int]
) -> None:
    nightly_runs = make_earlier_counts(*earlier)
    fewer, more = (
        judge_nightly_run(make_counts(records=record_count), nightly_runs)
        for record_count in (records, records + 1)
    )
    order = [Verdict.NOTHING_READ, Verdict.FAR_FEWER, Verdict.READ]
    assert order.index(fewer.verdict) <= order.index(more.verdict)


@given(st.lists(RECORDS, max_size=20), st.randoms(use_true_random=False))
def test_usual_record_count_does_not_depend_on_the_order_of_the_nightly_runs(
    earlier: list[int], random: Random
) -> None:
    nightly_runs = make_earlier_counts(*earlier)
    shuffled = random.sample(nightly_runs, len(nightly_runs))
    usual = find_usual_record_count(SUNDAY, nightly_runs)
    assert find_usual_record_count(SUNDAY, shuffled) == usual


@given(st.lists(RECORDS, max_size=20))
def test_usual_record_count_is_within_the_last_14_days_counts_and_none_below_three_days(
    earlier: list[int],
) -> None:
    """Days without records do not count."""
    usual = find_usual_record_count(SUNDAY, make_earlier_counts(*earlier))
    counts = [record_count for record_count in earlier[:14] if record_count]
    if len(counts) < 3:
        assert usual is None
    else:
        assert usual is not None
        assert min(counts) <= usual <= max(counts)


def test_nightly_counts_document_has_its_fields_in_order_and_is_read_back_unchanged() -> None:
    counts = {name: number for number, name in enumerate(COUNT_FIELDS, 1)}
    nightly = NightlyCounts(
        SUNDAY, MADE_AT, FALLBACK_READER, "isal is not there", **counts, own_incidents=3
    )
    written = json.dumps(nightly.document())
    assert read_nightly_counts(written.encode()) == nightly
    named = ("schema", "day", "made_at", "reader", "why_fallback")
    assert tuple(json.loads(written)) == (*named, *COUNT_FIELDS, "own_incidents")
    assert json.loads(written)["made_at"] == "2026-11-16T02:03:04.000Z"


ODD: dict[str, tuple[object, ...]] = {
    "schema": (2, True),
    "day": ("2026-13-01", 20261115),
    "made_at": ("2026-11-16T02:00:00", None, "0001-01-01T00:00+14"),
    "reader": (None,),
    "why_fallback": (["x"],),
    "bytes": (10**15,),
    "records": (-1, True, 1.5, "7"),
}


@pytest.mark.parametrize(("field", "value"), [(name, odd) for name in ODD for odd in ODD[name]])
def test_nightly_counts_with_a_wrong_or_missing_field_are_ignored(
    field: str, value: object
) -> None:
    document = make_counts().document()
    assert read_nightly_counts(json.dumps(document).encode()) is not None
    assert read_nightly_counts(json.dumps({**document, field: value}).encode()) is None
    del document[field]
    assert read_nightly_counts(json.dumps(document).encode()) is None


def test_nightly_counts_may_lack_own_incidents_and_invalid_ones_are_ignored() -> None:
    document = make_counts(incidents=5, own_incidents=2).document()
    for value in (-1, True, "7", 1.5, 10**15):
        assert read_nightly_counts(json.dumps(document | {"own_incidents": value}).encode()) is None
    del document["own_incidents"]
    earlier = read_nightly_counts(json.dumps(document).encode())
    assert earlier is not None
    assert (earlier.own_incidents, earlier.incident_row_count) == (None, 5)


def test_nightly_counts_that_are_no_json_object_are_ignored() -> None:
    contents = [b"", b"{", b"[]", b"7", b"null", b"\xff", b"[" * 100_000]
    assert [read_nightly_counts(content) for content in contents] == [None] * 7


def test_nightly_run_whose_tables_differ_from_its_counts_is_torn_whatever_its_records() -> None:
    for records in (0, 10, 10_000):
        torn = judge_nightly_run(
            make_counts(records=records), make_earlier_counts(*[10_000] * 5), has_wrong_counts=True
        )
        assert torn == NightlyJudgement(Verdict.TORN, 10_000)
