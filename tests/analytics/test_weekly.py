"""The weekly job from stored tables, cases and findings to summary.json."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics.storage import FolderStorage
from analytics.tables import Tables
from analytics.weekly import load_week_cases, to_json_bytes, write_week
from mendq.nightly.verdict import NightlyCounts, make_nightly_counts_key
from mendq.report.summary import read_summary
from tests.analytics.builders import NightlyFolders, make_transition
from tests.analytics.week_builders import (
    MADE_AT,
    MONDAY,
    WEEK,
    make_file_row,
    make_incident,
    make_queue_arn,
)

pytestmark = pytest.mark.usefixtures("spark")
SUMMARY = f"summary/week={WEEK}/summary.json"
READ = NightlyCounts(MONDAY, MADE_AT, "native", "", files=1, records=10_000)


def put_nightly(account: NightlyFolders, day: date, *incidents: dict[str, Any]) -> None:
    account.put("incidents", f"{day:%m-%d}", incidents)
    account.put("quality", f"{day:%m-%d}", [make_file_row("a")])


def put_nightly_counts(account: NightlyFolders, read_of: NightlyCounts, **document: object) -> None:
    content = json.dumps(read_of.document() | document).encode()
    FolderStorage(str(account.out)).write(make_nightly_counts_key(read_of.day), content)


def write_summary(
    account: NightlyFolders, made_at: datetime = MADE_AT, scheduled_at: datetime | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Write the summary. Return its document and the printed lines."""
    cases = FolderStorage(str(account.cases)) if account.cases.exists() else None
    seen = (
        load_week_cases(cases, FolderStorage(str(account.folder / "findings")), WEEK)
        if cases
        else None
    )
    said: list[str] = []
    tables = Tables(SparkSession.active(), FolderStorage(str(account.out)), said.append)
    write_week(seen, tables, WEEK, made_at, scheduled_at)
    document: dict[str, Any] = json.loads((account.out / SUMMARY).read_bytes())
    read_summary(to_json_bytes(document))
    return document, said


def make_notified_transition(case_id: str, when: str, **fields: Any) -> dict[str, Any]:
    seen = {"first_at": "11-09 08:00", "last_at": "11-09 08:10"}
    return make_transition(1, "escalated", when, **seen, case_id=case_id, notified=True) | fields


def test_weekly_job_without_tables_writes_a_summary_with_every_nightly_run_missing(
    account: NightlyFolders,
) -> None:
    document, said = write_summary(account)
    assert document["totals"]["incidents"] == 0
    assert {nightly_run["verdict"] for nightly_run in document["not_seen"]["nightly_runs"]} == {
        "missing"
    }
    assert document["not_seen"]["began"] is None
    assert "reached_a_person" not in document
    assert said == [f"{SUMMARY}: 0 incidents from 0 nightly runs"]


def test_weekly_summary_joins_tables_cases_and_nightly_counts_of_this_and_earlier_weeks(
    account: NightlyFolders,
) -> None:
    put_nightly(account, MONDAY, make_incident(1), make_incident(2, outcome="escalated"))
    put_nightly(account, MONDAY - timedelta(days=7), make_incident(3))
    partial = MONDAY - timedelta(days=28)
    for day in (partial, partial + timedelta(days=1)):
        put_nightly(account, day)
    for days_ago in range(15):
        put_nightly_counts(account, replace(READ, day=MONDAY - timedelta(days=days_ago)))
    put_nightly_counts(
        account, replace(READ, day=partial, made_at=datetime(2026, 10, 12, 2, tzinfo=UTC))
    )
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    document, _ = write_summary(account)
    assert document["totals"]["incidents"] == 2
    earlier = [(week["week"], week["nightly_runs"]) for week in document["previous_weeks"]]
    assert earlier == [("2026-W42", 1), ("2026-W45", 1)]
    assert document["not_seen"]["nightly_runs"][0]["usual_records"] == 10_000
    assert document["not_seen"]["nightly_runs"][0]["verdict"] == "torn", "its rerun died"
    assert document["reached_a_person"]["total"] == 1
    (recommendation,) = document["do_this_week"]
    assert (recommendation["kind"], recommendation["incidents"]) == ("fix", 2)


def test_weekly_job_that_runs_again_writes_the_same_summary_except_for_its_time(
    account: NightlyFolders,
) -> None:
    put_nightly(account, MONDAY, make_incident(1), make_incident(2, outcome="escalated"))
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    document, _ = write_summary(account)
    again, _ = write_summary(account, MADE_AT + timedelta(days=1))
    assert document["totals"]["incidents"] == 2
    assert again["made_at"] != document["made_at"]
    assert {**again, "made_at": ""} == {**document, "made_at": ""}


def test_summary_begins_with_the_first_day_of_any_table_or_nightly_count(
    account: NightlyFolders,
) -> None:
    put_nightly(account, date(2026, 11, 11), make_incident(1))
    (account.out / "quality" / "notes").mkdir()
    assert write_summary(account)[0]["not_seen"]["began"] == "2026-11-11"
    put_nightly_counts(account, replace(READ, day=date(2026, 11, 10), records=0))
    assert write_summary(account)[0]["not_seen"]["began"] == "2026-11-10"


@pytest.mark.parametrize("content", [b"{", b'{"day": "2026-11-15"}'])
def test_day_whose_nightly_counts_are_unreadable_or_incomplete_is_missing(
    account: NightlyFolders, content: bytes
) -> None:
    sunday = date(2026, 11, 15)
    FolderStorage(str(account.out)).write(make_nightly_counts_key(sunday), content)
    nightly_runs = write_summary(account)[0]["not_seen"]["nightly_runs"]
    assert nightly_runs[6]["verdict"] == "missing"


def test_nightly_counts_that_name_another_day_than_their_key_count_for_neither_day(
    account: NightlyFolders,
) -> None:
    saturday = date(2026, 11, 14)
    put_nightly_counts(account, replace(READ, day=saturday), day="2026-11-15")
    nightly_runs = write_summary(account)[0]["not_seen"]["nightly_runs"]
    assert [nightly_run["verdict"] for nightly_run in nightly_runs[5:]] == ["missing", "missing"]


def test_weekly_job_for_an_unfinished_week_prints_that_its_report_is_not_sent(
    account: NightlyFolders,
) -> None:
    sunday = datetime(2026, 11, 15, 12, tzinfo=UTC)
    document, said = write_summary(account, sunday)
    assert said[-1] == "2026-W46 is not over: its report will be made, but not sent"
    assert document["not_seen"]["week_is_over"] is False


def test_weekly_job_scheduled_after_the_week_counts_it_as_over_although_it_runs_early(
    account: NightlyFolders,
) -> None:
    sunday = datetime(2026, 11, 15, 12, tzinfo=UTC)
    document, said = write_summary(account, sunday, sunday + timedelta(days=1))
    assert len(said) == 1
    assert document["not_seen"]["week_is_over"] is True


def test_fix_of_months_ago_that_is_still_set_is_recommended_for_the_template(
    account: NightlyFolders,
) -> None:
    long_ago: dict[str, Any] = {
        "case_id": "old",
        "first_at": "08-19 08:00",
        "last_at": "08-19 08:10",
    }
    long_ago |= {"steps": [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]}
    for n, state in enumerate(("applied", "verified", "watching"), 1):
        account.record_transitions(make_transition(n, state, f"08-19 1{n}:00", **long_ago))
    (asked,) = write_summary(account)[0]["do_this_week"]
    assert (asked["kind"], asked["why"]) == ("write_into_template", "stands")
    assert (asked["before"], asked["after"]) == ("30", "45")


def test_backlog_and_age_of_a_waiting_case_come_from_the_latest_scan_that_recorded_its_queue(
    account: NightlyFolders,
) -> None:
    findings = FolderStorage(str(account.folder / "findings"))
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    orders = {"backlog": 7, "oldest_age_seconds": 90}
    for at, queues in (
        ("15/23", {make_queue_arn("orders"): {"backlog": 1}}),
        ("17/01", {make_queue_arn("orders"): orders}),
        ("17/02", {make_queue_arn("q"): orders}),
        ("17/03", [make_queue_arn("orders")]),
        ("17/04", {make_queue_arn("orders"): 3}),
    ):
        findings.write(f"dt=2026-11-{at}.json", json.dumps({"queues": queues}).encode())
    other_folder = {"queues": {make_queue_arn("orders"): {"backlog": 1}}}
    findings.write("notes/06.json", json.dumps(other_folder).encode())
    for content in (b"{", b"[]", b"[" * 100_000):
        findings.write("dt=2026-11-17/05.json", content)
        (waiting,) = write_summary(account)[0]["open_now"]
        assert waiting.items() >= orders.items()


def test_waiting_case_shows_no_backlog_and_age_if_the_scan_recorded_impossible_ones(
    account: NightlyFolders,
) -> None:
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    impossible = {"backlog": -1, "oldest_age_seconds": True, "more": 2}
    document = {"queues": {make_queue_arn("orders"): impossible}}
    FolderStorage(str(account.folder / "findings")).write(
        "dt=2026-11-18/00.json", json.dumps(document).encode()
    )
    (waiting,) = write_summary(account)[0]["open_now"]
    assert (waiting["backlog"], waiting["oldest_age_seconds"]) == (None, None)


def test_findings_of_the_last_scan_of_the_week_become_recommendations(
    account: NightlyFolders,
) -> None:
    findings = FolderStorage(str(account.folder / "findings"))
    found = {
        "queue_arn": make_queue_arn("orders"),
        "symptom": "alarm_missing",
        "because": "none watches it",
    }
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    for at, listed in (("15/22", []), ("15/23", [found]), ("16/00", [])):
        document = {"schema": 1, "findings": listed}
        findings.write(f"dt=2026-11-{at}.json", json.dumps(document).encode())
    asked = {task["kind"]: task for task in write_summary(account)[0]["do_this_week"]}
    assert asked["add_alarms"]["reason"] == "none watches it"


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"findings": [{}]}', b'{"findings": 3}'])
def test_malformed_findings_of_the_last_scan_give_no_recommendation_beside_those_of_cases(
    account: NightlyFolders, content: bytes
) -> None:
    account.record_transitions(
        make_notified_transition("visibility_timeout_too_short-1", "11-10 09:00")
    )
    FolderStorage(str(account.folder / "findings")).write("dt=2026-11-15/23.json", content)
    assert [task["kind"] for task in write_summary(account)[0]["do_this_week"]] == ["fix"]
