"""The page of a redrive's stages says what the table does."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from functions.healing.redrive_machine import TABLE
from functions.healing.redrive_progress import Stage
from tests.docs.test_states_page import DOCS


@pytest.fixture
def redrive_page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("redrive_page")


def test_the_page_is_what_the_table_says(redrive_page: ModuleType) -> None:
    assert (DOCS / "redrive-stages.md").read_text() == redrive_page.redrive_page()


def test_every_row_says_when_and_what(redrive_page: ModuleType) -> None:
    page = redrive_page.redrive_page()
    for row in TABLE:
        assert f"| {row.when.__doc__} | {row.does.__doc__} |" in page
    assert all(f"`{stage}`" in page for stage in Stage)


def test_it_names_the_setting_that_changes_a_soak(redrive_page: ModuleType) -> None:
    assert "`timing.soakFactor` (at least 1.2, as shipped)" in redrive_page.redrive_page()
