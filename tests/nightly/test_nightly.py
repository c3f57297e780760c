"""Whether a nightly run is believed: what must not alarm before what must."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.nightly.verdict import (
    COUNTS,
    Judged,
    NightlyRead,
    Verdict,
    judged,
    read_nightly,
    usual_records,
    week_is_over,
)

SUNDAY = date(2026, 11, 15)
MADE_AT = datetime(2026, 11, 16, 2, 3, 4, tzinfo=UTC)


def a_nightly(day: date = SUNDAY, records: int = 10_000, **fields: Any) -> NightlyRead:
    fields = {"failed_calls": min(records, 3), "files": 1, **fields}
    return NightlyRead(day, MADE_AT, "native", "", records=records, **fields)


def before(*records: int, until: date = SUNDAY) -> list[NightlyRead]:
    """Nightly runs on the days before `until`, the last one first."""
    return [a_nightly(until - timedelta(days=n), each) for n, each in enumerate(records, 1)]


WEEKDAYS = (9_900, 10_100, 10_000, 9_800, 10_200)
# Saturday, Friday .. Monday, then Sunday, and the week before that.
TWO_WEEKS = (1_500, *WEEKDAYS, 1_400, 1_500, *WEEKDAYS, 1_300)


# How many records were read, how many on the days before, and what is usual then.
BELIEVED = [
    (1_350, TWO_WEEKS, 1_400),  # a Sunday as quiet as the last ones
    (280, TWO_WEEKS, 1_400),  # exactly a fifth
    (1_300, (1_500, *WEEKDAYS, 0, 1_500, *WEEKDAYS, 1_300), 1_300),  # one broke
    (10, (10_000, 10_000), None),  # a new trail of two nightly runs
    (10, (10_000, 10_000, 0), None),  # a third that read nothing
    (2, (300,) * 14, 300),  # a quiet account
    (199, (999,) * 14, 999),  # just too quiet to tell
    (10_000, (), None),  # the first one
    (90_000, (10_000,) * 14, 10_000),  # far more
    (2_000, (10_000,) * 14, 10_000),  # a fifth of a steady trail
]
FAR_FEWER = [
    (1_999, (10_000,) * 14, 10_000),  # just under a fifth
    (199, (1_000,) * 3, 1_000),  # three nightly runs are enough
    (279, TWO_WEEKS, 1_400),  # a Sunday far below the last ones
    (200, (10_000, 1_200, 900), 1_200),  # the middle one counts
]


@pytest.mark.parametrize(
    ("verdict", "records", "earlier", "usual"),
    [
        *((Verdict.READ, *each) for each in BELIEVED),
        *((Verdict.FAR_FEWER, *each) for each in FAR_FEWER),
    ],
)
def test_a_nightly_is_believed_unless_it_has_far_fewer_records_than_usual(
    verdict: Verdict, records: int, earlier: tuple[int, ...], usual: float | None
) -> None:
    assert judged(a_nightly(records=records), before(*earlier)) == Judged(verdict, usual)


def test_other_days_than_the_fourteen_before_say_nothing() -> None:
    later = [a_nightly(SUNDAY + timedelta(days=n), 10_000) for n in range(5)]
    long_ago = [a_nightly(SUNDAY - timedelta(days=n), 10_000) for n in range(15, 30)]
    assert judged(a_nightly(records=10), [*later, *long_ago]) == Judged(Verdict.READ)


@pytest.mark.parametrize("earlier", [(), (0, 0, 0), (10_000,) * 14])
def test_nothing_at_all_is_never_a_quiet_day(earlier: tuple[int, ...]) -> None:
    """The probe alone makes a failing call an hour, and an outage may last longer than a memory."""
    assert judged(a_nightly(records=0, files=0), before(*earlier)).verdict is Verdict.NOTHING_READ
    unreadable = a_nightly(records=0, files=7, files_unreadable=7)
    assert judged(unreadable, before(*earlier)).verdict is Verdict.NOTHING_READ


@pytest.mark.parametrize(
    ("made_at", "verdict"),
    [
        (datetime(2026, 11, 15, 23, 59, 59, tzinfo=UTC), Verdict.PARTIAL),
        (datetime(2026, 11, 15, 2, tzinfo=UTC), Verdict.PARTIAL),
        (datetime(2026, 11, 16, 0, 59, tzinfo=timezone(timedelta(hours=1))), Verdict.PARTIAL),
        (datetime(2026, 11, 16, tzinfo=UTC), Verdict.READ),
    ],
)
def test_a_nightly_that_was_written_before_its_day_was_over_is_partial(
    made_at: datetime, verdict: Verdict
) -> None:
    """The chain of the day before touched it, and its own night never came."""
    whole = a_nightly()
    assert judged(replace(whole, made_at=made_at), before(*TWO_WEEKS)) == Judged(verdict, 1_400)
    nothing = a_nightly(records=0)
    assert judged(nothing, []).verdict is Verdict.NOTHING_READ
    early = datetime(2026, 11, 15, 2, tzinfo=UTC)
    assert judged(replace(nothing, made_at=early), []).verdict is Verdict.PARTIAL


def test_what_was_partial_tells_nothing_of_what_is_usual() -> None:
    partial = [
        replace(each, made_at=datetime.combine(each.day, time(2), UTC))
        for each in before(10, 10, 10, 10)
    ]
    older = [a_nightly(SUNDAY - timedelta(days=n), 10_000) for n in (5, 6, 8)]
    assert usual_records(SUNDAY, [*partial, *older]) == 10_000
    assert usual_records(SUNDAY, partial) is None


OVER = [("2026-11-16T03:00Z", True), ("2026-11-16T00:00Z", False), ("2026-12-24T00:00Z", True)]
NOT_OVER = [
    ("2026-11-15T23:59Z", False),
    ("2026-11-16T02:59Z", True),
    ("2026-11-16T01:30+02:00", False),
]


@pytest.mark.parametrize(("at", "last_nightly_may_come"), [*OVER, *NOT_OVER])
def test_a_week_is_over_when_its_last_nightly_is_there_or_will_not_come(
    at: str, *, last_nightly_may_come: bool
) -> None:
    now = datetime.fromisoformat(at)
    is_over = week_is_over(SUNDAY, now, last_nightly_may_come=last_nightly_may_come)
    assert is_over is ((at, last_nightly_may_come) in OVER)


def test_a_nightly_that_wrote_nothing_is_missing_and_failed_where_a_run_did() -> None:
    assert judged(None, before(*TWO_WEEKS)) == Judged(Verdict.MISSING)
    assert judged(None, before(*TWO_WEEKS), run_failed=True) == Judged(Verdict.FAILED)


RECORDS = st.integers(0, 100_000)


@given(RECORDS, st.lists(RECORDS, max_size=20))
def test_more_records_never_make_a_nightly_more_doubtful(records: int, earlier: list[int]) -> None:
    nightly_runs = before(*earlier)
    fewer, more = (judged(a_nightly(records=each), nightly_runs) for each in (records, records + 1))
    order = [Verdict.NOTHING_READ, Verdict.FAR_FEWER, Verdict.READ]
    assert order.index(fewer.verdict) <= order.index(more.verdict)
    assert fewer.usual_records == more.usual_records
    assert usual_records(SUNDAY, nightly_runs[::-1]) == fewer.usual_records, "in any order"
    some = [each for each in earlier[:14] if each]
    if len(some) >= 3:
        assert min(some) <= (usual_records(SUNDAY, nightly_runs) or 0) <= max(some)


def test_what_is_written_is_read_back() -> None:
    counts = {name: number for number, name in enumerate(COUNTS, 1)}
    nightly = NightlyRead(SUNDAY, MADE_AT, "standard_library", "isal is not there", **counts)
    written = json.dumps(nightly.document())
    assert read_nightly(written.encode()) == nightly
    named = ("schema", "day", "made_at", "reader", "why_fallback")
    assert tuple(json.loads(written)) == (*named, *COUNTS)
    assert json.loads(written)["made_at"] == "2026-11-16T02:03:04.000Z"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("schema", 2), ("day", "2026-13-01"), ("day", 20261115), ("bytes", 10**15)],
        *[
            ("made_at", "2026-11-16T02:00:00"),
            ("made_at", None),
            ("made_at", "0001-01-01T00:00+14"),
        ],
        *[("reader", None), ("why_fallback", ["x"])],
        *[("records", each) for each in (-1, True, 1.5, "7")],
    ],
)
def test_a_document_with_one_wrong_field_is_none(field: str, value: object) -> None:
    document = a_nightly().document()
    assert read_nightly(json.dumps(document).encode()) is not None
    assert read_nightly(json.dumps({**document, field: value}).encode()) is None
    del document[field]
    assert read_nightly(json.dumps(document).encode()) is None


def test_what_is_no_document_is_none() -> None:
    contents = [b"", b"{", b"[]", b"7", b"null", b"\xff", b"[" * 100_000]
    assert [read_nightly(each) for each in contents] == [None] * 7


def test_torn_tables_are_said_before_anything_else_of_the_nightly() -> None:
    for records in (0, 10, 10_000):
        torn = judged(a_nightly(records=records), before(*[10_000] * 5), is_torn=True)
        assert torn == Judged(Verdict.TORN, 10_000)
