"""The page of rights shows both policies, and docs/redrive.md what letters take beside them."""

from __future__ import annotations

import importlib
import json
import re

import pytest

from cli.policies import look, steer
from cli.rights import LEDGER, LETTERS, RIGHTS
from tests.docs.test_states_page import DOCS

PAGE = (DOCS / "rights.md").read_text()


def test_the_page_is_what_the_code_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    assert importlib.import_module("rights_page").rights_page() == PAGE


def test_both_policies_can_be_copied() -> None:
    shown = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert [json.loads(each) for each in shown] == [look(), steer()]


def test_each_command_is_there() -> None:
    assert all(f"`{each}`" in PAGE for each in RIGHTS)


def test_what_letters_take_is_said_where_they_are_sent_back() -> None:
    said = (DOCS / "redrive.md").read_text()
    for action in frozenset().union(*LETTERS.values()) - LEDGER:
        assert action.partition(":")[2] in said, action
    assert "## Look\n" in PAGE
    assert said.count("(rights.md#look)") == 2
