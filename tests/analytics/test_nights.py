"""What a night says of itself: written last, for a day without anything too, and never undone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.nights import Run, put, put_silent
from analytics.storage.folder import FolderStorage
from functions.healing.nightly import NightRead, night_key, read_night
from tests.analytics.authored import Account, burst, content
from tests.analytics.conftest import RunNight

DAY = date(2026, 11, 10)
RUN = Run(datetime(2026, 11, 12, 2, tzinfo=UTC), "spark_json", "isal is not there")


def file(size_bytes: int, records: int, reason: str | None = None) -> dict[str, Any]:
    return {"bytes": size_bytes, "records": records, "reason": reason}


def test_a_night_counts_its_files_and_says_how_it_read() -> None:
    files = [file(100, 7), file(50, 0, "truncated"), file(200, 3)]
    night = RUN.read(DAY, files, failed_calls=5, incidents=2)
    assert night == NightRead(
        DAY, RUN.made_at, "spark_json", "isal is not there",
        files=3, files_unreadable=1, bytes=350, bytes_unreadable=50,
        records=10, failed_calls=5, incidents=2,
    )  # fmt: skip


def test_a_day_before_the_trail_or_after_now_is_not_silent() -> None:
    days = [DAY + timedelta(days=n) for n in range(-1, 5)]
    silent = list(RUN.silent(days, since=DAY))
    assert [each.day.day for each in silent] == [10, 11, 12]
    assert all(each.read_nothing and not each.files for each in silent)
    assert list(RUN.silent(days, since=None)) == []


@pytest.fixture
def out(tmp_path: Path) -> FolderStorage:
    return FolderStorage(str(tmp_path))


def _there(out: FolderStorage) -> NightRead | None:
    return read_night(out.read(night_key(DAY)) or b"")


def test_silence_takes_nothing_back_that_was_read(out: FolderStorage) -> None:
    something = RUN.read(DAY, [file(9, 9)], 0, 0)
    put(out, [something])
    later = replace(RUN, made_at=RUN.made_at + timedelta(days=99))
    put_silent(out, later.silent([DAY], since=DAY))
    assert _there(out) == something
    put(out, [later.read(DAY, [file(9, 0, "truncated")], 0, 0)])
    assert _there(out) != something, "a file that cannot be read any more is no silence"


def test_silence_is_told_anew_and_over_what_is_no_night(out: FolderStorage) -> None:
    for before in (b"{", b'{"schema": 1}'):
        out.put(night_key(DAY), before)
        put_silent(out, RUN.silent([DAY], since=DAY))
        [silent] = RUN.silent([DAY], since=DAY)
        assert _there(out) == silent
    later = replace(RUN, made_at=RUN.made_at + timedelta(days=1))
    put_silent(out, later.silent([DAY], since=DAY))
    assert _there(out) == replace(silent, made_at=later.made_at)


def test_nothing_read_is_no_quiet_day(
    account: Account, run_night: RunNight, capsys: pytest.CaptureFixture[str]
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    assert run_night("11-12") == 4
    assert "nothing was read" in capsys.readouterr().out
    assert set(account.written()) == {"nights/dt=2026-11-12/night.json"}
    assert account.night("11-12")["files"] == account.night("11-12")["records"] == 0
    assert run_night("11-08") == 0
    assert "the trail begins on 2026-11-10" in capsys.readouterr().out
    assert set(account.written()) == {"nights/dt=2026-11-12/night.json"}


def test_a_silent_day_beside_a_good_one_is_told_though_the_run_ends_well(
    account: Account, run_night: RunNight
) -> None:
    account.publish("11-10", [*burst("11-10 09:00"), {}])
    account.publish("11-10", content(burst("11-10 10:00"))[:-20], name="short.json.gz")
    account.publish("11-12", burst("11-12 09:00"))
    assert run_night("11-09", "11-11") == 3
    assert account.night("11-10") == {
        "schema": 1, "day": "2026-11-10", "reader": "native", "why_fallback": "",
        "files": 2, "files_unreadable": 1,
        "bytes": sum(each["bytes"] for each in account.rows("quality", "11-10")),
        "bytes_unreadable": account.rows("quality", "11-10")[1]["bytes"],
        "records": 4, "failed_calls": 3, "incidents": 1,
    }  # fmt: skip
    assert account.night("11-11")["records"] == 0
    assert not (account.out / "nights" / "dt=2026-11-09").exists(), "the trail had not begun"
    by_backfill = account.written()
    shutil.rmtree(account.out)
    for day in ("11-11", "11-09", "11-10", "11-11"):
        run_night(day)
    assert account.written() == by_backfill


def test_an_old_night_run_again_keeps_what_it_once_saw(
    account: Account, run_night: RunNight
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    old = account.trail / account.publish("11-12", burst("11-12 09:00"))
    assert run_night("11-12") == 0
    before = account.written()
    old.unlink()
    assert run_night("11-12") == 4
    assert account.written() == before
