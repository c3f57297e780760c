"""A script goes on when what it waits for has happened, and says so when it has not."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from local_account.demo import stage as stages
from local_account.demo.stage import ScriptFailed, Stage
from local_account.demo.story import read
from tests.local_account.demo.ended import AT, cases_of, ended

LIFE = read("life")
BAD = {bad.name: bad for bad in LIFE.queues}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(stages, "LOOK_EVERY_SECONDS", 0.01)


class StageAfterwards(Stage):
    """The stage as `ended(LIFE, over)` left it, with calls that only note what becomes of them."""

    def __init__(self, *, code: int = 0, **over: dict[str, Any]) -> None:
        self.account: Any = None
        self.story, self.bad, self.watch = LIFE, BAD, ended(LIFE, over)
        self.console = Console(file=io.StringIO(), width=200)
        self._begun, self._code = AT, code

    def _run(self, _words: list[str]) -> tuple[int, str]:
        return self._code, "as it is"

    def look(self) -> None:
        """Nothing comes any more."""

    @property
    def printed(self) -> str:
        assert isinstance(self.console.file, io.StringIO)
        return " ".join(self.console.file.getvalue().split())


def test_what_does_not_come_is_named() -> None:
    stage = StageAfterwards(refunds={"cases": cases_of(BAD["refunds"])[:1]})
    with pytest.raises(ScriptFailed, match=r"^rolled_back of refunds did not come within"):
        stage.until_in("rolled_back", "refunds")


def test_a_command_is_filled_in_and_one_that_ends_otherwise_fails_the_script() -> None:
    stage = StageAfterwards(code=1)
    failed = r"^mendq rollback case-refunds --since 2026-11-16T09:00:00Z exited with 1, expected 0$"
    with pytest.raises(ScriptFailed, match=failed):
        stage.mendq("rollback {refunds} --since {begun}", 0)
    assert "exit 1" in stage.printed


@pytest.mark.parametrize(("well_after", "holds"), [(1, False), (4, False), (6, False), (7, True)])
def test_a_fix_holds_by_a_delete_after_the_longer_timeout_and_the_last_failure(
    well_after: int, holds: bool
) -> None:
    stage = StageAfterwards(invoices={"failures_at": []})
    seen = stage.seen("invoices.fifo")
    seen.changed_at = AT
    seen.heard("expired", AT + timedelta(seconds=5))
    seen.heard(None, AT + timedelta(seconds=well_after))
    if holds:
        stage.until_deleted_in_time("invoices.fifo")
    else:
        with pytest.raises(ScriptFailed, match=r"^deletes of invoices.fifo in time"):
            stage.until_deleted_in_time("invoices.fifo")
