"""An act ends when what it claims has happened, and says so when it has not."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from functions.healing.states import State
from local_account.demo import stage
from local_account.demo.acts import DoesNotHelp, RolledBack, SeenToHold
from local_account.demo.operator_shell import Done
from local_account.demo.stage import ActFailed, Stage
from local_account.demo.stories.life import INVOICES, LETTERS, LIFE, PARCELS, REPORTS, TICKETS
from local_account.demo.watching import Outcome
from tests.local_account.demo.ended import ended, life_of

LEASE_SECONDS = 2


class FollowUp:
    """Remembers for when it was fired."""

    def __init__(self) -> None:
        self.fired: list[datetime | None] = []

    def fire(self, at: datetime | None) -> None:
        self.fired.append(at)


class Shell:
    """Every command ends with the same code."""

    def __init__(self, code: int) -> None:
        self.code = code

    def mendq(self, *arguments: str) -> Done:
        return Done(" ".join(["mendq", *arguments]), self.code, "as it is")


class Calls:
    """Calls that only say that they have begun or ended."""

    def __init__(self, name: str, happened: list[str]) -> None:
        self.name, self.happened = name, happened

    def start(self) -> None:
        self.happened.append(f"start {self.name}")

    def put_down(self) -> None:
        self.happened.append(f"put down {self.name}")

    def stop(self) -> None:
        self.happened.append(f"stop {self.name}")


def _stage(
    *, look: Callable[[], None] = lambda: None, code: int = 0, **over: dict[str, Any]
) -> tuple[Stage, list[str]]:
    """As `ended(LIFE, over)` left it; what becomes of its calls."""
    happened: list[str] = []
    fakes: Any = {
        "account": None,
        "running": {bad.name: Calls(bad.name, happened) for bad in LIFE.queues},
        "follow_up": FollowUp(),
        "shell": Shell(code),
    }
    console = Console(file=io.StringIO(), width=80)
    told = Stage(watch=ended(LIFE, over), console=console, look=look, **fakes)
    return told, happened


def _printed(told: Stage) -> str:
    assert isinstance(told.console.file, io.StringIO)
    return " ".join(told.console.file.getvalue().split())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(stage, "LOOK_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(stage, "FIRE_AGAIN_SECONDS", 0.0)


def test_what_does_not_come_is_named() -> None:
    told, _ = _stage(letters={"cases": life_of(LETTERS)[:1]})
    with pytest.raises(ActFailed, match=r"^rolled_back of letters did not come within"):
        told.until_in(["letters"], State.ROLLED_BACK)


def test_it_looks_until_all_are_there() -> None:
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            told.watch.cases.append(life_of(LETTERS)[1])

    told, _ = _stage(look=look, letters={"cases": life_of(LETTERS)[:1]})
    told.until_in(["letters"], State.ROLLED_BACK)
    assert len(looks) == 2


def test_the_follow_up_is_fired_until_a_case_has_moved() -> None:
    at = datetime(2026, 11, 16, 9, tzinfo=UTC)

    def look() -> None:
        if len(told_follow_up.fired) == 2:
            told.watch.cases.append(life_of(REPORTS)[1])

    told, _ = _stage(look=look, reports={"cases": life_of(REPORTS)[:1]})
    told_follow_up: Any = told.follow_up
    told.follow_up_until(["reports.fifo"], State.INEFFECTIVE, at)
    assert told_follow_up.fired == [at, at]
    told.follow_up_until(["reports.fifo"], State.INEFFECTIVE, at)
    assert len(told_follow_up.fired) == 2


def test_a_command_that_ends_otherwise_fails_the_act() -> None:
    told, _ = _stage(code=1)
    with pytest.raises(ActFailed, match=r"^mendq approve C --yes exited with 1, expected 0$"):
        told.mendq("approve", "C", "--yes", code=0)
    assert "$ mendq approve C --yes" in _printed(told)
    assert "exit 1" in _printed(told)


def test_nobody_calls_any_more_once_calls_are_ended() -> None:
    told, happened = _stage()
    told.end(["letters", "parcels"])
    assert happened == ["put down letters", "put down parcels", "stop letters", "stop parcels"]


@pytest.mark.parametrize(("late", "suffices"), [(2, False), (3, True)])
def test_only_calls_that_fail_after_the_longer_lease_say_that_it_does_not_help(
    late: int, suffices: bool
) -> None:
    told, _ = _stage()
    seen = told.seen(REPORTS.name)
    seen.changed_at = datetime(2026, 11, 16, 9, tzinfo=UTC)
    for seconds in (1, 2, *range(4, 4 + late)):
        at = seen.changed_at + timedelta(seconds=seconds)
        seen.heard(Outcome(REPORTS.name, "expired", at))
    if suffices:
        DoesNotHelp(REPORTS).tell(told)
        assert "fired now instead of" in _printed(told)
    else:
        with pytest.raises(ActFailed, match=r"^3 more failed calls did not come"):
            DoesNotHelp(REPORTS).tell(told)


@pytest.mark.parametrize(("well_after", "holds"), [(1, False), (4, False), (6, False), (7, True)])
def test_a_fix_holds_by_a_delete_after_the_longer_lease_and_the_last_failure(
    well_after: int, holds: bool
) -> None:
    told, happened = _stage()
    seen = told.seen(INVOICES.name)
    seen.changed_at = datetime(2026, 11, 16, 9, tzinfo=UTC)
    last_failure = seen.changed_at + timedelta(seconds=5)
    seen.heard(Outcome(INVOICES.name, "expired", last_failure))
    seen.heard(Outcome(INVOICES.name, None, seen.changed_at + timedelta(seconds=well_after)))
    act = SeenToHold(INVOICES, others=(TICKETS,))
    if not holds:
        with pytest.raises(ActFailed, match=r"^deletes of invoices.fifo in time"):
            act.tell(told)
        return
    act.tell(told)
    assert f"stop {INVOICES.name}" in happened
    assert [each.split(" by ")[1].split(" instead")[0] for each in told.clock_put_forward] == [
        "16 min",
        "48 h",
    ]
    assert all(each in _printed(told) for each in told.clock_put_forward)


def test_what_is_taken_back_is_called_first_and_ended() -> None:
    told, happened = _stage(letters={"calls_well": 0})
    with pytest.raises(ActFailed, match=r"^calls of letters and parcels that work"):
        RolledBack(taken_back=LETTERS, kept=PARCELS).tell(told)
    assert happened == ["start letters", "start parcels"]
