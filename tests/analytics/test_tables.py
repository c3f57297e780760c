"""Days of tables: written whole by either reader, read back, and told where they are no tables."""

from __future__ import annotations

import json
from datetime import date

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from analytics import job
from analytics.job import parse
from analytics.storage import open_root
from analytics.tables import Tables
from analytics.trail import Reader
from mendq.nightly.verdict import FALLBACK, NATIVE
from tests.analytics.authored import SCHEMAS, Account, burst, record
from tests.analytics.nasty_files import unreadable
from tests.analytics.week_authored import file

DAY = date(2026, 11, 10)
NEXT = date(2026, 11, 11)


def run(spark: SparkSession, account: Account, reader: str) -> tuple[object, ...]:
    """A backfill's tables of two days, and the document of their week."""
    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    nightly_runs = parse(["backfill", "--from", f"{DAY}", "--to", f"{NEXT}", *roots])
    week = parse(["weekly", "--week", "2026-W46", f"--out={account.out}"])
    for each in (nightly_runs, week):
        job.run(each, spark, Reader(reader, "to try it"))
    summary = account.out / "summary" / "week=2026-W46" / "summary.json"
    document = json.loads(summary.read_text()) | {"made_at": ""}
    document["not_seen"].pop("nightly_runs")
    written = {name: each for name, each in account.written().items() if "parquet" in name}
    return document, written


def test_without_a_wheel_the_tables_are_the_same_byte_for_byte(
    spark: SparkSession, account: Account
) -> None:
    account.publish("11-10", [*burst("11-10 09:00"), record("11-10 12:00", errorCode="Teapot")])
    account.publish("11-11", burst("11-10 23:59:30", calls=1))
    account.publish("11-10", unreadable()["truncated"][0], name="torn.json.gz")
    document, written = run(spark, account, NATIVE)
    assert run(spark, account, FALLBACK) == (document, written)
    for name, schema in SCHEMAS.items():
        for day in ("11-10", "11-11"):
            found = pq.read_schema(account.out / name / f"dt=2026-{day}" / f"{name}.parquet")
            kinds = [str(each.type).replace("element", "item") for each in found]
            assert found.names == schema.names
            assert [each.replace(" not null", "") for each in kinds] == [
                str(each.type) for each in schema
            ]
    assert account.rows("incidents", "11-11") == account.rows("failed_calls", "11-11") == []


def test_what_is_no_table_is_said_and_left_out(spark: SparkSession, account: Account) -> None:
    said: list[str] = []
    tables = Tables(spark, open_root(str(account.out), spark), said.append)
    good = file("a")
    account.put("quality", "11-10", [good])
    for broken in (b"junk", b"", [{**good, "records": None}]):
        account.put("quality", "11-11", broken)
        assert tables.rows("quality", [DAY, NEXT, date(2026, 11, 12)]) == {DAY: [good]}
        assert len(said) == 1
        assert said.pop().endswith("2026-11-11 is left out")
    account.put("quality", "11-11", [])
    assert tables.rows("quality", [DAY, NEXT]) == {DAY: [good], NEXT: []}
    assert tables.files("quality", [DAY, NEXT]) == {DAY: {"a"}, NEXT: set()}
    assert said == []


def test_incidents_have_the_contract_s_columns() -> None:
    assert " ".join(SCHEMAS["incidents"].names) == (
        "incident_id account region queue_arn symptom error_codes first_failure last_failure "
        "failed_calls principals outcome why case_id seconds_to_heal notified"
    )
