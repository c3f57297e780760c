"""The page of states names every state and every way between two."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from functions.healing.advance import TABLE
from functions.healing.moves import MOVES, may_move
from functions.healing.states import FINAL, State

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def states_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("states_page", DOCS / "states_page.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_tables_say(states_page: ModuleType) -> None:
    assert (DOCS / "states.md").read_text() == states_page.states_page()


def test_every_row_stands_in_it(states_page: ModuleType) -> None:
    page = states_page.states_page()
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    for because in [*(row.because for row in TABLE), *(move.because for move in MOVES)]:
        assert any(line.endswith(f"| {because} |") for line in lines), because
    assert all(f"`{state}`" in page for state in State)


def test_every_row_of_the_table_says_when(states_page: ModuleType) -> None:
    assert all(row.when.__doc__ for row in TABLE)
    assert "|  |  |" not in states_page.states_page()


def test_what_is_in_no_row_may_not_be() -> None:
    assert not may_move(None, State.VERIFIED)
    assert not may_move(State.DECLINED, State.APPLIED)
    assert not may_move(State.PROPOSED, State.APPLIED)
    assert may_move(State.PROPOSED, State.APPROVED)
    assert may_move(State.WATCHING, State.CLOSED)
    assert may_move(None, State.APPLIED)


def test_what_has_ended_is_moved_by_a_rollback_at_most() -> None:
    left = {(state, into) for state in FINAL for into in State if may_move(state, into)}
    assert left == {(State.CLOSED, State.ROLLED_BACK), (State.CLOSED, State.CONTESTED)}


def test_every_state_can_be_come_to() -> None:
    assert all(any(may_move(before, state) for before in (None, *State)) for state in State)
