"""A week's document from what lies in folders."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics.days import days_of
from analytics.nightly import case_files
from analytics.storage import FolderStorage
from analytics.tables import Tables, path_of
from analytics.weekly import Weekly
from mendq.nightly.verdict import NightlyRead, nightly_key
from mendq.report.read_summary import read
from tests.analytics.authored import SCHEMAS, Account, transition
from tests.analytics.week_authored import MADE_AT, MONDAY, WEEK, file, incident

pytestmark = pytest.mark.usefixtures("spark")
SUMMARY = f"summary/week={WEEK}/summary.json"
READ = NightlyRead(MONDAY, MADE_AT, "native", "", files=1, records=10_000)


def put_nightly(account: Account, day: date, *incidents: dict[str, Any]) -> None:
    account.put("incidents", f"{day:%m-%d}", incidents)
    account.put("quality", f"{day:%m-%d}", [file("a")])


def put_read(account: Account, read_of: NightlyRead, **document: object) -> None:
    content = json.dumps(read_of.document() | document).encode()
    FolderStorage(str(account.out)).put(nightly_key(read_of.day), content)


def weekly(account: Account, *, with_cases: bool = True) -> tuple[Weekly, list[str]]:
    """And what it says."""
    cases = FolderStorage(str(account.cases)) if with_cases else None
    said: list[str] = []
    out = FolderStorage(str(account.out))
    return Weekly(cases, Tables(SparkSession.active(), out, said.append)), said


def written(account: Account, *, with_cases: bool = True) -> dict[str, Any]:
    week, said = weekly(account, with_cases=with_cases)
    week.write(WEEK, MADE_AT)
    assert said[-1].startswith(SUMMARY)
    document: dict[str, Any] = json.loads((account.out / SUMMARY).read_bytes())
    read(document)
    return document


def paging(case_id: str, when: str, **fields: Any) -> dict[str, Any]:
    seen = {"first_at": "11-09 08:00", "last_at": "11-09 08:10"}
    return transition(1, "escalated", when, **seen) | {
        "case_id": case_id, "notified": True, **fields,
    }  # fmt: skip


def test_a_week_that_nothing_was_written_of(account: Account) -> None:
    document = written(account)
    assert document["totals"]["incidents"] == 0
    assert {each["verdict"] for each in document["not_seen"]["nightly_runs"]} == {"missing"}
    assert document["reached_a_person"]["total"] == 0


def test_tables_cases_and_nightly_runs_meet_in_the_document(account: Account) -> None:
    put_nightly(account, MONDAY, incident(1), incident(2, outcome="escalated"))
    put_nightly(account, MONDAY - timedelta(days=7), incident(3))
    for back in range(15):
        put_read(account, replace(READ, day=MONDAY - timedelta(days=back)))
    account.record_transitions(paging("visibility_timeout_too_short-1", "11-10 09:00"))
    document = written(account)
    assert document["totals"]["incidents"] == 2
    assert [each["week"] for each in document["previous_weeks"]] == ["2026-W45"]
    assert document["not_seen"]["nightly_runs"][0]["usual_records"] == 10_000
    assert document["reached_a_person"]["total"] == 1
    (recommendation,) = document["do_this_week"]
    assert (recommendation["kind"], recommendation["incidents"]) == ("fix", 2)


def test_the_first_day_of_any_table_is_when_it_began(account: Account) -> None:
    assert written(account)["not_seen"]["began"] is None
    put_nightly(account, date(2026, 11, 11), incident(1))
    (account.out / "quality" / "notes").mkdir()
    assert written(account)["not_seen"]["began"] == "2026-11-11"
    put_read(account, replace(READ, day=date(2026, 11, 10), records=0))
    assert written(account)["not_seen"]["began"] == "2026-11-10"


def test_a_week_that_is_not_over_is_said_to_whoever_asks(account: Account) -> None:
    week, said = weekly(account, with_cases=False)
    sunday = datetime(2026, 11, 15, 12, tzinfo=UTC)
    week.write(WEEK, sunday)
    assert said[-1] == "2026-W46 is not over: its page will be made, and nothing sent"
    assert json.loads((account.out / SUMMARY).read_bytes())["not_seen"]["week_is_over"] is False
    said.clear()
    week.write(WEEK, sunday, sunday + timedelta(days=1))
    assert len(said) == 1
    assert json.loads((account.out / SUMMARY).read_bytes())["not_seen"]["week_is_over"] is True


def test_the_nightly_runs_of_four_weeks_before_are_read(account: Account) -> None:
    partial, whole = date(2026, 10, 12), date(2026, 10, 13)
    for day in (partial, whole):
        put_nightly(account, day)
    put_read(account, replace(READ, day=partial, made_at=datetime(2026, 10, 12, 2, tzinfo=UTC)))
    (earlier,) = written(account)["previous_weeks"]
    assert (earlier["week"], earlier["nightly_runs"]) == ("2026-W42", 1)


def test_without_cases_nothing_is_said_about_them(account: Account) -> None:
    account.record_transitions(paging("visibility_timeout_too_short-1", "11-10 09:00"))
    document = written(account, with_cases=False)
    assert "reached_a_person" not in document
    assert not read(document).cases_were_read


def test_the_cases_of_the_days_around_the_week_are_read(account: Account) -> None:
    days = {"10-31": False, "11-01": True, "11-15": True, "11-20": True}
    for day in days:
        account.record_transitions(paging(f"c-{day}", f"{day} 09:00"))
    found = case_files(FolderStorage(str(account.cases)), days_of(WEEK))
    assert found.since == date(2026, 11, 1)
    read_days = {each.case_id.removeprefix("c-") for each in found.transitions}
    assert read_days == {day for day, is_read in days.items() if is_read}


def test_a_case_file_that_is_none_is_counted_and_stops_nothing(account: Account) -> None:
    account.record_transitions(paging("visibility_timeout_too_short-1", "11-10 09:00"))
    folder = account.cases / "dt=2026-11-10"
    (folder / "a.json").write_bytes(b"{")
    (folder / "b.json").write_bytes(b"[" * 100_000)
    (folder / "c.json").write_text(json.dumps(paging("c", "11-10 09:00") | {"to": "fixed"}))
    (account.cases / "notes").mkdir()
    (account.cases / "notes" / "d.json").write_bytes(b"not asked for")
    document = written(account)
    assert document["not_seen"]["case_files_unreadable"] == 3
    assert document["reached_a_person"]["total"] == 1


ODD: list[dict[str, Any]] = [
    {"steps": ["VisibilityTimeout", None, {"attribute": 7}]},
    {"steps": "VisibilityTimeout"},
    {"reason": {"a": 1}},
    {"notified": "yes"},
    {"actor": None},
    {"queue_arn": ""},
    {"symptom": "\x00<b>"},
    {"case_id": ""},
    {"evidence": {"first_at": "0001-01-01T00:00:00+14:00", "last_at": "2026-11-10T09:00:00Z"}},
    {"evidence": {"first_at": "2026-11-09T08:00Z", "last_at": "2026-11-09T08:00Z"}, "n": 9},
    {"at": "9999-12-31T23:59:59-14:00"},
    {"n": 10**400},
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: next(iter(odd)))
def test_an_odd_case_file_stops_nothing(account: Account, odd: dict[str, Any]) -> None:
    account.record_transitions(paging("visibility_timeout_too_short-1", "11-10 09:00"))
    path = account.cases / "dt=2026-11-10" / "odd.json"
    path.write_text(json.dumps(paging("odd", "11-10 09:00") | odd))
    document = written(account)
    assert "visibility_timeout_too_short-1" in {
        each["case_id"] for each in document["reached_a_person"]["cases"]
    }


def test_a_nightly_that_tells_of_another_day_is_not_believed(account: Account) -> None:
    put_read(account, READ, day="2026-11-10")
    out = FolderStorage(str(account.out))
    out.put(nightly_key(MONDAY + timedelta(days=1)), b"{")
    (monday, tuesday, *_) = written(account)["not_seen"]["nightly_runs"]
    assert (monday["verdict"], tuesday["verdict"]) == ("missing", "missing")


BROKEN: list[tuple[str, Any]] = [
    ("incidents", pa.table({"a": [1]})),
    ("quality", pa.table({"file": ["a"]})),
    ("incidents", pa.table({name: [["x"]] for name in SCHEMAS["incidents"].names})),
]


@pytest.mark.parametrize(("table", "broken"), BROKEN)
def test_a_broken_table_costs_its_nightly_and_not_the_week(
    account: Account, table: str, broken: pa.Table
) -> None:
    tuesday = MONDAY + timedelta(days=1)
    for day in (MONDAY, tuesday):
        put_nightly(account, day, incident(1))
        put_read(account, replace(READ, day=day, records=10, bytes=100, incidents=1))
    pq.write_table(broken, account.out / path_of(table, tuesday))
    document = written(account)
    assert document["totals"]["incidents"] == 1
    assert str(tuesday) in document["not_seen"]["nightly_runs_missing"]
    assert [each["verdict"] for each in document["not_seen"]["nightly_runs"][:2]] == [
        "read",
        "torn",
    ]


def test_a_nightly_whose_rerun_died_between_its_tables_is_torn(account: Account) -> None:
    put_nightly(account, MONDAY, incident(1), incident(2))
    put_read(account, replace(READ, records=10, bytes=100, incidents=1))
    document = written(account)
    assert document["totals"]["incidents"] == 2
    assert document["not_seen"]["nightly_runs"][0]["verdict"] == "torn"


def test_a_week_written_twice_is_the_same_but_for_when(account: Account) -> None:
    put_nightly(account, MONDAY, incident(1), incident(2, outcome="escalated"))
    account.record_transitions(paging("a", "11-10 09:00"), paging("b", "11-10 09:00"))
    first = written(account)
    weekly(account)[0].write(WEEK, MADE_AT + timedelta(days=1))
    second = json.loads((account.out / SUMMARY).read_bytes())
    assert second["made_at"] != first["made_at"]
    assert {**second, "made_at": ""} == {**first, "made_at": ""}
