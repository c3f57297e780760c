"""What docs/redrive.md says of the filter is what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mendq.redrive.message_filter import (
    DEEPEST,
    LONGEST_EXPRESSION,
    ROOTS,
    MessageFilter,
    message_filter,
)
from mendq.redrive.mover import MOST_HELD, VISIBILITY_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "redrive.md").read_text("utf-8")
_EXPRESSION = re.compile(r"--where (?:'([^']+)'|\"([^\"]+)\")")
EXPRESSIONS = sorted({"".join(each) for each in _EXPRESSION.findall(PAGE)})
_ROW = re.compile(r"^\| (`[^|]+?`) \|", re.MULTILINE)
LANGUAGE = PAGE.partition("### Which messages")[2].partition("\n### ")[0]


def test_there_are_expressions_to_check() -> None:
    assert len(EXPRESSIONS) >= 6


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_example_can_be_read(expression: str) -> None:
    assert isinstance(message_filter(expression), MessageFilter)


def test_every_root_is_said_and_no_other() -> None:
    said = [name for row in _ROW.findall(LANGUAGE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(said) == sorted(ROOTS)


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"{LONGEST_EXPRESSION:,} characters and {DEEPEST} levels" in PAGE
    assert f"{MOST_HELD:,} messages are held at once" in PAGE
    assert (VISIBILITY_SECONDS, "hidden for two minutes" in PAGE) == (120, True)
