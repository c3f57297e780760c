from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from analytics.days import days_of
from analytics.week import not_seen
from analytics.week_parts import NightlyRows
from mendq.nightly.verdict import NightlyRead
from tests.analytics.week_authored import DAYS, MADE_AT, MONDAY, WEEK, file, nightly

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
    found: list[dict[str, Any]] = not_seen(days_of(WEEK), tables, reads)["nightly_runs"]
    return found


def test_a_week_like_the_ones_before() -> None:
    found = nightly_runs(REGULAR)
    assert [each["day"] for each in found] == [str(day) for day in DAYS]
    assert found[3] == {
        "day": "2026-11-12",
        "reader": "native",
        "why_fallback": "",
        "records": 10_000,
        "usual_records": 10_000,
        "verdict": "read",
    }


def test_each_nightly_has_its_own_verdict() -> None:
    fallen_back = replace(READ, day=DAYS[3], reader="standard_library", why_fallback="no isal")
    reads = {
        **REGULAR,
        DAYS[1]: replace(READ, day=DAYS[1], records=1_999),
        DAYS[2]: replace(READ, day=DAYS[2], records=0, failed_calls=0),
        DAYS[3]: fallen_back,
    }
    del reads[DAYS[6]]
    found = nightly_runs(reads)
    assert [each["verdict"] for each in found] == [
        "read", "far_fewer", "nothing_read", "read", "read", "read", "missing",
    ]  # fmt: skip
    assert (found[3]["reader"], found[3]["why_fallback"]) == ("standard_library", "no isal")
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


def test_the_first_week_knows_nothing_usual() -> None:
    found = nightly_runs({day: read for day, read in REGULAR.items() if day >= DAYS[5]})
    assert [each["usual_records"] for each in found] == [None] * 7
