"""A nightly run that runs again when part of its trail has expired leaves the day as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics.days import Days
from analytics.nightly import Nightly
from analytics.storage import FolderStorage
from analytics.trail import Reader
from tests.analytics.authored import Account, at, burst
from tests.analytics.conftest import RunNightly

DAY = date(2026, 11, 10)
NEXT = DAY + timedelta(days=1)
ONE = Days(DAY, DAY)
Retained = Callable[..., dict[date, int]]


def put(account: Account, day: date, quality: list[str], failed_calls: list[str]) -> None:
    """A day whose tables name these files."""
    for name, files in (("quality", quality), ("failed_calls", failed_calls)):
        account.put(name, f"{day:%m-%d}", [{"file": each} for each in files])


@pytest.fixture
def retained(spark: SparkSession, account: Account) -> Retained:
    trail, cases, out = (
        FolderStorage(str(each)) for each in (account.trail, account.cases, account.out)
    )
    made_at, reader = datetime(2026, 11, 12, tzinfo=UTC), Reader.of_this_process()
    nightly = Nightly(spark, trail, cases, None, out, made_at, reader, lambda _: None)
    return lambda *listed, days=ONE: dict(nightly._expired(days, frozenset(listed)))


def test_a_day_whose_files_are_all_there_is_written_anew(
    account: Account, retained: Retained
) -> None:
    here, late = account.publish("11-10", []), account.publish("12-09", [])
    put(account, DAY, [here], [here, late])
    assert retained(here, late) == {}
    assert retained(here) == {}, "a file that the run did not list is there all the same"
    assert retained() == {}


def test_a_day_without_tables_is_written(retained: Retained) -> None:
    assert retained() == {}


@pytest.mark.parametrize("table", ["quality", "failed_calls"])
def test_a_day_that_names_a_file_that_is_gone_is_retained(
    account: Account, retained: Retained, table: str
) -> None:
    here = account.publish("11-10", [])
    gone = here.replace(".json.gz", "-gone.json.gz")
    put(account, DAY, [here], [here])
    account.put(table, "11-10", [{"file": here}, {"file": gone}])
    assert retained(here) == {DAY: 1}


def test_the_day_after_is_retained_too_for_the_bursts_that_go_on_into_it(
    account: Account, retained: Retained
) -> None:
    here = account.publish("11-11", [])
    put(account, DAY, ["AWSLogs/a/gone.json.gz"], [])
    week = Days(DAY, DAY + timedelta(days=3))
    assert retained(here, days=Days(NEXT, NEXT)) == {}, "it has no tables of its own"
    put(account, NEXT, [here], [here])
    put(account, NEXT + timedelta(days=1), [here], [])
    assert retained(here, days=Days(NEXT, NEXT)) == {NEXT: 1}
    assert retained(here, days=week) == {DAY: 1, NEXT: 1}


def test_a_table_that_is_none_keeps_nothing(account: Account, retained: Retained) -> None:
    put(account, DAY, ["AWSLogs/a/gone.json.gz"], [])
    account.put("failed_calls", "11-10", b"junk")
    assert retained() == {}


def _incidents(account: Account) -> list[Any]:
    return [len(account.rows("incidents", day)) for day in ("11-10", "11-11")]


@pytest.mark.long
def test_a_nightly_run_again_takes_nothing_back_of_what_expired(
    account: Account, run_nightly: RunNightly, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some of a day's files, then all of them, and a burst over midnight that is read in part."""
    gone = account.publish("11-10", burst("11-10 09:00"))
    account.publish("11-10", burst("11-10 12:00"))
    account.publish("11-11", burst("11-10 23:58", calls=6))
    account.publish("11-11", burst("11-11 00:10", calls=2))
    account.publish("11-12", burst("11-12 09:00"))
    assert run_nightly("11-10", "11-11") == 0
    before = account.written()
    assert _incidents(account) == [3, 0]
    (account.trail / gone).unlink()
    for first, last in (("11-10", None), ("11-11", None), ("11-10", "11-11")):
        assert run_nightly(first, last) == 0
        assert account.written() == before
    assert "2026-11-10: left as it is, 1 of its files are gone" in capsys.readouterr().out
    shutil.rmtree(account.trail / gone.rpartition("/")[0])
    for day in ("11-10", "11-11"):
        assert run_nightly(day) == 0
        assert account.written() == before
    account.publish("11-12", burst("11-12 10:00"))
    assert run_nightly("11-12") == 0
    assert len(account.rows("incidents", "11-12")) == 2, "a day that lost nothing is written"
    after = account.written()
    assert {name: after[name] for name in before} == before


def test_what_came_late_is_written_while_all_files_are_there(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    assert run_nightly("11-10") == 0
    account.publish("11-13", [burst("11-10 12:00", calls=1)[0]])
    assert run_nightly("11-10") == 0
    assert [each["first_failure"] for each in account.rows("incidents", "11-10")] == [
        at("11-10 09:00"),
        at("11-10 12:00"),
    ]
