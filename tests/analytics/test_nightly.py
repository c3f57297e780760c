"""Nightly runs from trail files to tables, with hostile files, late files and repeated runs."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics import job
from analytics.days import Days
from analytics.job import parse_arguments
from analytics.nightly import NightlyRun, NightlyRunResult
from analytics.storage import FolderStorage
from analytics.tables import Tables
from analytics.trail import MAXIMUM_DRIVER_BYTES, Reader
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER, NightlyCounts
from tests.analytics.builders import (
    SCHEMAS,
    NightlyFolders,
    make_burst,
    make_record,
    make_time,
    make_transition,
    pack_records,
    write_scan,
)
from tests.analytics.trail_file_examples import GOOD, make_unreadable_files
from tests.analytics.week_builders import make_file_row, make_queue_arn
from tests.real_records import read_cloudtrail_records

DAY = date(2026, 11, 10)
NEXT = DAY + timedelta(days=1)
ONE = Days(DAY, DAY)
STRANGE = ("pipe.json.gz", "to-nothing.json.gz", "round.json.gz", "folder.json.gz")
HOSTILE: dict[str, tuple[bytes, str | None]] = {
    **{
        f"{name}.json.gz": make_unreadable_files()[name]
        for name in ("truncated", "html", "deep", "bomb")
    },
    "empty.json.gz": (b"", "empty"),
    "_hidden.json.gz": (GOOD, "not_read"),
    "plain.json": (b'{"Records": []}', "not_json_gz"),
    "two-members.json.gz": (gzip.compress(b'{"Records"') + gzip.compress(b": []}"), None),
    "types.json.gz": (pack_records([None, 7, "x", [], {}, {"eventSource": 1}]), None),
    "surrogate.json.gz": (
        pack_records([make_record("11-10 10:00", errorCode="\ud800", awsRegion="\udfff")]),
        None,
    ),
}


def run_job(
    spark: SparkSession,
    account: NightlyFolders,
    first: str,
    last: str | None = None,
    reader: str = NATIVE_READER,
) -> int:
    """`nightly` for one day (`11-10`) of the account, `backfill` for two; the exit code."""
    days = ["nightly", "--date", f"2026-{first}"]
    if last is not None:
        days = ["backfill", "--from", f"2026-{first}", "--to", f"2026-{last}"]
    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    # Without a wheel Spark's Python reads, with them the driver does.
    here = 0 if reader == FALLBACK_READER else MAXIMUM_DRIVER_BYTES
    return job.run_command(
        parse_arguments([*days, *roots]), spark, Reader(reader, maximum_driver_bytes=here)
    )


def make_nightly_run(
    spark: SparkSession, account: NightlyFolders, home: AccountAndRegion | None = None
) -> NightlyRun:
    roots = (account.trail, account.cases, account.out)
    trail, cases, out = (FolderStorage(str(root)) for root in roots)
    now = datetime(2026, 11, 12, tzinfo=UTC)
    tables = Tables(spark, out, lambda _: None)
    return NightlyRun(tables, trail, cases, None, now, Reader(NATIVE_READER), home)


def run_weekly_job(spark: SparkSession, account: NightlyFolders) -> int:
    return job.run_command(
        parse_arguments(["weekly", "--week", "2026-W46", f"--out={account.out}"]), spark
    )


@pytest.fixture(scope="module")
def finished_night(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NightlyFolders:
    """Folders after one nightly run over good and hostile files. Tests only read them."""
    account = NightlyFolders(tmp_path_factory.mktemp("night"))
    good = account.publish("11-10", [*make_burst("11-10 09:00"), *read_cloudtrail_records()[:20]])
    healed = [{"type": "AWS::SQS::Queue", "ARN": make_queue_arn("healed")}]
    account.publish("11-11", make_burst("11-10 23:59", calls=3, resources=healed))
    for name, (written, _) in HOSTILE.items():
        account.publish("11-10", written, name=name)
    for kind in ("Digest", "Insight", "NetworkActivity", "Aggregated"):
        account.publish("11-10", make_burst("11-10 11:00"), kind=f"CloudTrail-{kind}")
    _put_strange_files(account, (account.trail / good).parent)
    seen = {
        "first_at": "11-10 23:59",
        "last_at": "11-11 00:01",
        "queue_arn": make_queue_arn("healed"),
    }
    account.record_transitions(
        make_transition(2, "verified", "11-11 00:03", **seen),
        make_transition(1, "applied", "11-11 00:02", **seen),
    )
    (account.cases / "dt=2026-11-11" / "x-1.json").write_text("{")
    for hour, arns in (
        (8, ()),
        (10, ()),
        (11, [make_burst("11-10 09:00")[0]["resources"][0]["ARN"]]),
    ):
        write_scan(account.folder, make_time(f"11-10 {hour:02}:01"), *arns)
    assert run_job(spark, account, "11-10") == 3
    return account


def _put_strange_files(account: NightlyFolders, day: Path) -> None:
    """Write pipes, links and folders. Reading a pipe would block forever."""
    (account.folder / "elsewhere.json.gz").write_bytes(
        pack_records(make_burst("11-10 12:00", calls=4))
    )
    (day / "linked.json.gz").symlink_to(account.folder / "elsewhere.json.gz")
    os.mkfifo(day / "pipe.json.gz")
    os.mkfifo(day / "pipe-of-another-name")
    (day / "to-nothing.json.gz").symlink_to("gone.json.gz")
    (day / "round.json.gz").symlink_to("round.json.gz")
    (day / "folder.json.gz").mkdir()
    os.mkfifo(day / "folder.json.gz" / "pipe.json.gz")
    (day / "folder.json.gz" / "deeper.json.gz").write_bytes(pack_records(make_burst("11-10 15:00")))


def test_nightly_run_skips_unreadable_trail_files_and_records_the_reason_of_each(
    finished_night: NightlyFolders,
) -> None:
    reasons = {
        row["file"].rpartition("/")[2]: row["reason"]
        for row in finished_night.read_rows("quality", "11-10")
    }
    expected = {name: reason for name, (_, reason) in HOSTILE.items()}
    assert reasons.items() >= expected.items()
    assert reasons.items() >= dict.fromkeys(STRANGE, "no_file").items()
    assert len(reasons) == len(HOSTILE) + len(STRANGE) + 2


def test_nightly_run_reads_a_link_to_a_trail_file_as_the_file(
    finished_night: NightlyFolders,
) -> None:
    (row,) = (
        row
        for row in finished_night.read_rows("quality", "11-10")
        if row["file"].endswith("/linked.json.gz")
    )
    assert row["reason"] is None
    assert row["records"] == 4


def test_nightly_run_counts_the_malformed_records_of_a_readable_trail_file(
    finished_night: NightlyFolders,
) -> None:
    (row,) = (
        row
        for row in finished_night.read_rows("quality", "11-10")
        if row["file"].endswith("/types.json.gz")
    )
    assert row["reason"] is None
    assert row["unreadable_records"] == [{"reason": "not_a_record", "records": 4}]


def test_burst_across_midnight_is_one_incident_of_the_day_it_began(
    finished_night: NightlyFolders,
) -> None:
    (incident,) = (
        row
        for row in finished_night.read_rows("incidents", "11-10")
        if row["queue_arn"] == make_queue_arn("healed")
    )
    assert incident["failed_calls"] == 3
    assert finished_night.read_rows("incidents", "11-11") == []
    assert len(finished_night.read_rows("failed_calls", "11-11")) == 2


def test_nightly_run_writes_each_burst_with_its_outcome_or_the_reason_why_it_has_no_case(
    finished_night: NightlyFolders,
) -> None:
    found = [
        (row["queue_arn"].rpartition(":")[2], row["symptom"], row["failed_calls"],
         row["outcome"], row["why"], row["seconds_to_heal"])
        for row in finished_night.read_rows("incidents", "11-10")
    ]  # fmt: skip
    symptom = "visibility_timeout_too_short"
    assert found == [
        ("orders", symptom, 3, "not_seen", "not_tagged_in_time", None),
        ("orders", "unknown:?", 1, "not_seen", "unknown_code", None),
        ("orders", symptom, 4, "not_seen", "unknown", None),
        ("healed", symptom, 3, "healed", None, 240.0),
    ]


def test_nightly_run_document_counts_its_files_bytes_records_failed_calls_and_incidents(
    finished_night: NightlyFolders,
) -> None:
    quality = finished_night.read_rows("quality", "11-10")
    unreadable_rows = [row for row in quality if row["reason"]]
    assert finished_night.read_nightly_document("11-10") == {
        "schema": 1, "day": "2026-11-10", "reader": "native", "why_fallback": "",
        "files": len(quality), "files_unreadable": len(unreadable_rows),
        "bytes": sum(row["bytes"] for row in quality),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable_rows),
        "records": sum(row["records"] for row in quality), "failed_calls": 9, "incidents": 4,
        "own_incidents": 0,
    }  # fmt: skip


def test_nightly_run_writes_only_its_document_and_three_tables(
    finished_night: NightlyFolders,
) -> None:
    assert {name.split("/")[0] for name in finished_night.read_files()} - {"summary"} == {
        "nightly", "failed_calls", "incidents", "quality",
    }  # fmt: skip


def test_fallback_reader_writes_the_same_tables_byte_for_byte_as_the_native_reader(
    spark: SparkSession, finished_night: NightlyFolders, account: NightlyFolders
) -> None:
    for name in ("trail", "cases", "findings"):
        (account.folder / name).symlink_to(finished_night.folder / name)
    assert run_job(spark, account, "11-11", reader=FALLBACK_READER) == 3
    written = account.read_files()
    first = finished_night.read_files()
    assert account.read_nightly_document("11-10")["reader"] == FALLBACK_READER
    tables = [name for name in first if name.endswith(".parquet")]
    assert len(tables) == 6
    assert {name: written[name] for name in tables} == {name: first[name] for name in tables}


def test_nightly_tables_have_the_columns_and_types_of_their_schemas(
    finished_night: NightlyFolders,
) -> None:
    tables = sorted(finished_night.out.rglob("*.parquet"))
    assert len(tables) == 6
    for path in tables:
        schema = SCHEMAS[path.stem]
        written_schema = pq.read_schema(path)
        assert written_schema.names == schema.names
        assert list(map(_normalize_type, written_schema)) == [str(field.type) for field in schema]


def _normalize_type(field: pa.Field) -> str:
    """Return the type without Parquet's name for list items and without nullability."""
    return str(field.type).replace("element", "item").replace(" not null", "")


def test_late_trail_file_joins_two_bursts_into_one_incident_of_the_earlier_day(
    spark: SparkSession, account: NightlyFolders
) -> None:
    account.publish("11-10", make_burst("11-10 23:50", calls=1))
    account.publish("11-11", make_burst("11-11 00:15", calls=1))
    assert run_job(spark, account, "11-09", "11-11") == 0
    assert [len(account.read_rows("incidents", day)) for day in ("11-10", "11-11")] == [1, 1]
    assert not (account.out / "nightly" / "dt=2026-11-09").exists(), "the trail had not begun"
    account.publish("11-12", make_burst("11-11 00:02", calls=1))
    assert run_job(spark, account, "11-11") == 0
    assert [row["failed_calls"] for row in account.read_rows("incidents", "11-10")] == [3]
    assert account.read_rows("incidents", "11-11") == []
    assert len(account.read_rows("failed_calls", "11-11")) == 2


def test_nightly_run_after_a_trail_file_was_deleted_changes_no_table_and_says_so(
    spark: SparkSession, account: NightlyFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    account.publish("11-11", make_burst("11-11 00:15", calls=1))
    deleted = account.publish("11-12", make_burst("11-11 00:02", calls=1))
    assert run_job(spark, account, "11-11") == 0
    before = account.read_files()
    assert len(account.read_rows("failed_calls", "11-11")) == 2
    (account.trail / deleted).unlink()
    assert run_job(spark, account, "11-11") == 0
    assert account.read_files() == before
    assert "2026-11-11: not changed, because 1 of its files were deleted" in capsys.readouterr().out


def test_nightly_run_that_reads_nothing_after_the_trail_began_exits_4_and_records_it(
    spark: SparkSession, account: NightlyFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    account.publish("11-10", [])
    assert run_job(spark, account, "11-12") == 4
    assert "nothing was read" in capsys.readouterr().out
    assert set(account.read_files()) == {"nightly/dt=2026-11-12/nightly.json"}
    document = account.read_nightly_document("11-12")
    assert document["files"] == document["records"] == 0


def test_nightly_run_for_a_day_before_the_trail_began_exits_0_and_writes_nothing(
    spark: SparkSession, account: NightlyFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    account.publish("11-10", [])
    assert run_job(spark, account, "11-08") == 0
    assert "the trail begins on 2026-11-10" in capsys.readouterr().out
    assert account.read_files() == {}


@pytest.mark.parametrize(
    ("unreadable_bytes", "code"), [(0, 0), (1_000, 0), (1_001, 3), (50_000, 3), (100_000, 3)]
)
def test_nightly_run_exits_3_if_more_than_one_percent_of_the_bytes_is_unreadable(
    tmp_path: Path, unreadable_bytes: int, code: int
) -> None:
    now = datetime(2026, 11, 11, 2, tzinfo=UTC)
    nightly = NightlyCounts(
        DAY, now, NATIVE_READER, "", bytes=100_000, bytes_unreadable=unreadable_bytes
    )
    assert (
        job._choose_exit_code(NightlyRunResult((nightly,)), FolderStorage(str(tmp_path)), ONE)
        == code
    )


# Days that are not rewritten.


def put_tables(
    account: NightlyFolders, day: date, quality: list[str], failed_calls: list[str]
) -> None:
    """Write the tables of a day that name these files."""
    for name, files in (("quality", quality), ("failed_calls", failed_calls)):
        account.put(name, f"{day:%m-%d}", [{"file": name} for name in files])


def count_lost_files(
    spark: SparkSession, account: NightlyFolders, *listed: str, days: Days = ONE
) -> dict[date, int]:
    return dict(make_nightly_run(spark, account).count_lost_files(days, frozenset(listed)))


def test_day_has_no_lost_trail_files_if_all_exist_even_those_that_the_run_did_not_list(
    spark: SparkSession, account: NightlyFolders
) -> None:
    listed = account.publish("11-10", [])
    late = account.publish("12-09", [])
    put_tables(account, DAY, quality=[listed], failed_calls=[listed, late])
    assert count_lost_files(spark, account, listed) == {}


def test_deleted_trail_file_counts_as_lost_for_its_day_and_for_the_next_day_only(
    spark: SparkSession, account: NightlyFolders
) -> None:
    """A burst may continue into the next day, so the day before matters too."""
    listed = account.publish("11-10", [])
    put_tables(account, DAY, quality=["AWSLogs/a/gone.json.gz"], failed_calls=[])
    put_tables(account, NEXT, quality=[listed], failed_calls=[listed])
    put_tables(account, NEXT + timedelta(days=1), quality=[listed], failed_calls=[])
    only_next_day = Days(NEXT, NEXT)
    all_days = Days(DAY, DAY + timedelta(days=3))
    assert count_lost_files(spark, account, listed, days=only_next_day) == {NEXT: 1}
    assert count_lost_files(spark, account, listed, days=all_days) == {DAY: 1, NEXT: 1}


def test_day_without_tables_of_its_own_or_with_an_unreadable_one_has_no_lost_trail_files(
    spark: SparkSession, account: NightlyFolders
) -> None:
    assert count_lost_files(spark, account) == {}
    put_tables(account, DAY, quality=["AWSLogs/a/gone.json.gz"], failed_calls=[])
    assert count_lost_files(spark, account, days=Days(NEXT, NEXT)) == {}
    account.put("failed_calls", "11-10", b"junk")
    assert count_lost_files(spark, account) == {}


def test_unusable_parquet_file_of_a_day_is_reported_and_the_other_days_are_read(
    spark: SparkSession, account: NightlyFolders
) -> None:
    said: list[str] = []
    tables = Tables(spark, FolderStorage(str(account.out)), said.append)
    good = make_file_row("a")
    account.put("quality", "11-10", [good])
    others = [pa.table({"file": ["a"]}), pa.table({name: [["x"]] for name in good})]
    for broken in (b"junk", b"", [{**good, "records": None}], *others):
        account.put("quality", "11-11", broken)
        assert tables.read_rows("quality", [DAY, NEXT, date(2026, 11, 12)]) == {DAY: [good]}
        assert len(said) == 1
        assert said.pop().endswith("2026-11-11 is left out")


def test_parquet_file_without_rows_is_read_as_a_day_without_rows_and_not_reported(
    spark: SparkSession, account: NightlyFolders
) -> None:
    said: list[str] = []
    tables = Tables(spark, FolderStorage(str(account.out)), said.append)
    good = make_file_row("a")
    account.put("quality", "11-10", [good])
    account.put("quality", "11-11", [])
    assert tables.read_rows("quality", [DAY, NEXT]) == {DAY: [good], NEXT: []}
    assert tables.read_file_names("quality", [DAY, NEXT]) == {DAY: {"a"}, NEXT: set()}
    assert said == []


@pytest.mark.parametrize("bound", ["MAXIMUM_DRIVER_CALLS", "MAXIMUM_DRIVER_SECONDS"])
def test_driver_above_its_limit_of_calls_or_seconds_leaves_the_trail_to_spark(
    finished_night: NightlyFolders, monkeypatch: Any, bound: str
) -> None:
    monkeypatch.setattr(f"analytics.trail.{bound}", -1)
    files = [(f"{next(finished_night.trail.rglob('*.gz'))}", 1)]
    assert Reader(NATIVE_READER).read_on_driver(FolderStorage("/"), files) is None
