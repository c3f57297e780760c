"""What a nightly run says of itself: written last, for a day without anything too, and never
undone.
"""

from __future__ import annotations

import shutil

import pytest

from tests.analytics.authored import Account, burst, content
from tests.analytics.conftest import RunNightly


def test_nothing_read_is_no_quiet_day(
    account: Account, run_nightly: RunNightly, capsys: pytest.CaptureFixture[str]
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    assert run_nightly("11-12") == 4
    assert "nothing was read" in capsys.readouterr().out
    assert set(account.written()) == {"nightly/dt=2026-11-12/nightly.json"}
    assert account.nightly("11-12")["files"] == account.nightly("11-12")["records"] == 0
    assert run_nightly("11-08") == 0
    assert "the trail begins on 2026-11-10" in capsys.readouterr().out
    assert set(account.written()) == {"nightly/dt=2026-11-12/nightly.json"}


def test_a_silent_day_beside_a_good_one_is_said_though_the_run_ends_well(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", [*burst("11-10 09:00"), {}])
    account.publish("11-10", content(burst("11-10 10:00"))[:-20], name="short.json.gz")
    account.publish("11-12", burst("11-12 09:00"))
    assert run_nightly("11-09", "11-11") == 3
    assert account.nightly("11-10") == {
        "schema": 1, "day": "2026-11-10", "reader": "native", "why_fallback": "",
        "files": 2, "files_unreadable": 1,
        "bytes": sum(each["bytes"] for each in account.rows("quality", "11-10")),
        "bytes_unreadable": account.rows("quality", "11-10")[1]["bytes"],
        "records": 4, "failed_calls": 3, "incidents": 1,
    }  # fmt: skip
    assert account.nightly("11-11")["records"] == 0
    assert not (account.out / "nightly" / "dt=2026-11-09").exists(), "the trail had not begun"
    by_backfill = account.written()
    shutil.rmtree(account.out)
    for day in ("11-11", "11-09", "11-10", "11-11"):
        run_nightly(day)
    assert account.written() == by_backfill


def test_an_old_nightly_run_again_keeps_what_it_once_saw(
    account: Account, run_nightly: RunNightly
) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    old = account.trail / account.publish("11-12", burst("11-12 09:00"))
    assert run_nightly("11-12") == 0
    before = account.written()
    old.unlink()
    assert run_nightly("11-12") == 4
    assert account.written() == before
    announced = account.out / "nightly" / "dt=2026-11-12" / "nightly.json"
    for no_nightly in ("{", '{"schema": 1}'):
        announced.write_text(no_nightly)
        assert run_nightly("11-12") == 4
        assert account.nightly("11-12")["records"] == 0
