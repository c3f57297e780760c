"""docs/operate.md names each part of `mendq show`, each mode, each alarm that reaches people."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from functions.healing.mode import Mode
from infra.alarms import PAGED

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operate.md").read_text()


def _rows(heading: str) -> list[str]:
    """The first cells of the table below a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (?!---)(.+?) \|", part, re.MULTILINE)[1:]


def _headings_of_show() -> list[str]:
    tree = ast.parse((ROOT / "cli" / "commands" / "show.py").read_text())
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "heading"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def test_every_part_of_show_is_told_once() -> None:
    assert len(_headings_of_show()) > 5
    assert sorted(_rows("Reading `mendq show`")) == sorted(_headings_of_show())


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_told(mode: Mode) -> None:
    assert f"`{mode.name.lower()}`" in _rows("The modes, and what each asks of you")


def test_every_alarm_that_reaches_people_is_told_once() -> None:
    rows = " ".join(_rows("When you are woken"))
    told = [each.removesuffix("-") for each in re.findall(r"`(mendq-[a-z-]+)", rows)]
    assert sorted(told) == sorted(each.called() for each in PAGED)
