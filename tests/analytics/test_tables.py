"""A whole night and its week without pyarrow or any other wheel give what they give with them."""

from __future__ import annotations

import json
from importlib import import_module

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics import job, spark_tables, tables
from analytics.arguments import parse
from analytics.arrow_tables import SCHEMAS
from analytics.readings import Reader
from analytics.storage import open_root
from analytics.tables import Tables, path_of
from functions.healing.nightly import FALLBACK, NATIVE
from tests.analytics.authored import Account, at, burst, record
from tests.analytics.nasty_files import unreadable

ROOTS = ("trail", "cases", "out")
DAY = at("11-10 00:00").date()


def run(spark: SparkSession, account: Account, reader: str, way: str) -> None:
    roots = [f"--{name}={account.folder / name}" for name in ROOTS]
    night = parse(["nightly", "--date", f"{DAY}", *roots])
    week = parse(["weekly", "--week", "2026-W46", f"--out={account.out}"])
    for each in (night, week):
        job.run(each, spark, Reader(reader, "to try it"), Tables(way))


def found(account: Account) -> tuple[object, ...]:
    summary = account.out / "summary" / "week=2026-W46" / "summary.json"
    document = json.loads(summary.read_text()) | {"made_at": ""}
    document["not_seen"].pop("nights")
    return (*(account.rows(name, "11-10") for name in SCHEMAS), document)


@pytest.mark.long
def test_nothing_but_spark_gives_the_same_tables_and_week(
    spark: SparkSession, account: Account
) -> None:
    account.publish("11-10", [*burst("11-10 09:00"), record("11-10 12:00", errorCode="Teapot")])
    account.publish("11-11", burst("11-10 23:59:30"))
    account.publish("11-10", unreadable()["truncated"][0], name="torn.json.gz")
    run(spark, account, NATIVE, tables.ARROW)
    native = found(account)
    run(spark, account, FALLBACK, tables.SPARK)
    written = account.written()
    assert found(account) == native
    columns = pq.read_schema(account.out / path_of("incidents", DAY))
    kinds = [str(each.type).replace("element", "item") for each in columns]
    assert columns.names == SCHEMAS["incidents"].names
    assert [each.replace(" not null", "") for each in kinds] == [
        str(each.type) for each in SCHEMAS["incidents"]
    ]
    run(spark, account, FALLBACK, tables.SPARK)
    again = account.written()
    assert {name: each for name, each in again.items() if name.endswith(".parquet")} == {
        name: each for name, each in written.items() if name.endswith(".parquet")
    }


def test_a_day_that_no_night_wrote_has_no_rows(spark: SparkSession, account: Account) -> None:
    out = open_root(str(account.out), spark)
    assert [Tables(way).rows(out, "incidents", DAY) for way in (tables.ARROW, tables.SPARK)] == [
        None,
        None,
    ]


def test_both_ways_have_the_same_columns(spark: SparkSession) -> None:
    for name, schema in SCHEMAS.items():
        columns = spark.createDataFrame([], spark_tables.SCHEMAS[name]).columns
        assert columns == schema.names


def test_a_driver_without_pyarrow_lets_spark_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> object:
        if name.startswith("pyarrow"):
            raise OSError("wrong ELF class")
        return import_module(name)

    monkeypatch.setattr("analytics.tables.import_module", without)
    assert Tables()._way is spark_tables


def test_incidents_have_the_contract_s_columns() -> None:
    assert " ".join(SCHEMAS["incidents"].names) == (
        "incident_id account region queue_arn label error_codes first_failure last_failure "
        "failed_calls principals outcome why case_id seconds_to_heal paged"
    )
