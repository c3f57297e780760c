"""A night that runs again when part of its trail has expired leaves the day as it was."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from analytics import arrow_tables
from analytics.days import Days
from analytics.expired import Expired
from analytics.storage.folder import FolderStorage
from analytics.tables import SPARK, Tables, TableUnreadable, path_of
from tests.analytics.authored import Account, at, burst
from tests.analytics.conftest import RunNight

DAY = date(2026, 11, 10)
NEXT = DAY + timedelta(days=1)
ONE = Days(DAY, DAY)
TABLES = (
    ("quality", arrow_tables.SCHEMAS["quality"]),
    ("failed_calls", arrow_tables.SCHEMAS["failed_calls"]),
)


def put(account: Account, day: date, quality: list[str], failed_calls: list[str]) -> None:
    """A day whose tables name these files."""
    out = FolderStorage(str(account.out))
    for (name, schema), files in zip(TABLES, (quality, failed_calls), strict=True):
        table = pa.Table.from_pylist([{"file": each} for each in files], schema=schema)
        arrow_tables.put(out, path_of(name, day), table)


def kept(account: Account, *listed: str, days: Days = ONE) -> dict[date, int]:
    trail, out = FolderStorage(str(account.trail)), FolderStorage(str(account.out))
    return Expired(trail, out, Tables(), frozenset(listed)).kept(days)


def test_a_day_whose_files_are_all_there_is_written_anew(account: Account) -> None:
    here, late = account.publish("11-10", []), account.publish("12-09", [])
    put(account, DAY, [here], [here, late])
    assert kept(account, here, late) == {}
    assert kept(account, here) == {}, "a file that the run did not list is there all the same"
    assert kept(account) == {}


def test_a_day_without_tables_is_written(account: Account) -> None:
    assert kept(account) == {}


@pytest.mark.parametrize("table", ["quality", "failed_calls"])
def test_a_day_that_names_a_file_that_is_gone_is_kept(account: Account, table: str) -> None:
    here = account.publish("11-10", [])
    gone = here.replace(".json.gz", "-gone.json.gz")
    put(account, DAY, [here], [here])
    FolderStorage(str(account.out)).put(
        path_of(table, DAY),
        arrow_tables.parquet(
            pa.Table.from_pylist([{"file": here}, {"file": gone}], schema=dict(TABLES)[table])
        ),
    )
    assert kept(account, here) == {DAY: 1}


def test_the_day_after_is_kept_too_for_the_bursts_that_go_on_into_it(account: Account) -> None:
    here = account.publish("11-11", [])
    put(account, DAY, ["AWSLogs/a/gone.json.gz"], [])
    week = Days(DAY, DAY + timedelta(days=3))
    assert kept(account, here, days=Days(NEXT, NEXT)) == {}, "it has no tables of its own"
    put(account, NEXT, [here], [here])
    put(account, NEXT + timedelta(days=1), [here], [])
    assert kept(account, here, days=Days(NEXT, NEXT)) == {NEXT: 1}
    assert kept(account, here, days=week) == {DAY: 1, NEXT: 1}


def test_a_table_that_is_none_keeps_nothing(account: Account) -> None:
    put(account, DAY, ["AWSLogs/a/gone.json.gz"], [])
    FolderStorage(str(account.out)).put(path_of("failed_calls", DAY), b"junk")
    assert kept(account) == {}


def test_spark_alone_names_the_same_files(spark: SparkSession, account: Account) -> None:
    put(account, DAY, ["a", "b"], ["b", "b"])
    out, tables = FolderStorage(str(account.out)), Tables(SPARK)
    found = [tables.files(out, name, DAY) for name, _ in TABLES]
    assert found == [{"a", "b"}, {"b"}]
    assert tables.files(out, "quality", NEXT) is None
    for broken in (b"junk", b""):
        out.put(path_of("quality", DAY), broken)
        with pytest.raises(TableUnreadable):
            tables.files(out, "quality", DAY)
        with pytest.raises(TableUnreadable):
            tables.rows(out, "quality", DAY)


def _incidents(account: Account) -> list[Any]:
    return [len(account.rows("incidents", day)) for day in ("11-10", "11-11")]


@pytest.mark.long
def test_a_night_run_again_takes_nothing_back_of_what_expired(
    account: Account, run_night: RunNight, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some of a day's files, then all of them, and a burst over midnight that is read in part."""
    gone = account.publish("11-10", burst("11-10 09:00"))
    account.publish("11-10", burst("11-10 12:00"))
    account.publish("11-11", burst("11-10 23:58", calls=6))
    account.publish("11-11", burst("11-11 00:10", calls=2))
    account.publish("11-12", burst("11-12 09:00"))
    assert run_night("11-10", "11-11") == 0
    before = account.written()
    assert _incidents(account) == [3, 0]
    (account.trail / gone).unlink()
    for first, last in (("11-10", None), ("11-11", None), ("11-10", "11-11")):
        assert run_night(first, last) == 0
        assert account.written() == before
    assert "2026-11-10: left as it is, 1 of its files are gone" in capsys.readouterr().out
    shutil.rmtree(account.trail / gone.rpartition("/")[0])
    for day in ("11-10", "11-11"):
        assert run_night(day) == 0
        assert account.written() == before
    account.publish("11-12", burst("11-12 10:00"))
    assert run_night("11-12") == 0
    assert len(account.rows("incidents", "11-12")) == 2, "a day that lost nothing is written"
    after = account.written()
    assert {name: after[name] for name in before} == before


def test_what_came_late_is_written_while_all_files_are_there(
    account: Account, run_night: RunNight
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    assert run_night("11-10") == 0
    account.publish("11-13", [burst("11-10 12:00", calls=1)[0]])
    assert run_night("11-10") == 0
    assert [each["first_failure"] for each in account.rows("incidents", "11-10")] == [
        at("11-10 09:00"),
        at("11-10 12:00"),
    ]
