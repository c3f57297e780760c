"""What docs/redrive.md says of the language is what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from functions.aws.hand import LEASE_SECONDS, MOST_IN_HAND
from functions.healing.where import BYTES, DEEPEST, SECONDS, Where, where
from functions.healing.where_reading import FIELDS
from functions.healing.where_truth import COMPARED
from functions.healing.where_words import LONGEST_EXPRESSION

PAGE = (Path(__file__).parents[2] / "docs" / "redrive.md").read_text("utf-8")
_EXPRESSION = re.compile(r"--where (?:'([^']+)'|\"([^\"]+)\")")
EXPRESSIONS = sorted({"".join(each) for each in _EXPRESSION.findall(PAGE)})
_ROW = re.compile(r"^\| (`.+?) \|", re.MULTILINE)
LANGUAGE = PAGE.partition("### Which letters")[2].partition("\n### ")[0]
SAID = [code for row in _ROW.findall(LANGUAGE) for code in re.findall(r"`([^`]+)`", row)]


def test_there_are_expressions_to_check() -> None:
    assert len(EXPRESSIONS) >= 6


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_example_can_be_read(expression: str) -> None:
    assert isinstance(where(expression), Where)


def test_every_field_sign_and_unit_is_told_and_no_other() -> None:
    words = {re.split(r"[.\[(]", each)[0] for each in SAID}
    assert words & (FIELDS.keys() | COMPARED.keys() | {"exists"}) == words
    assert words == {*FIELDS, *COMPARED, "exists"}
    for unit in (*SECONDS, *filter(None, BYTES)):
        assert unit == "b" or re.search(rf"`[0-9]+{unit}`", PAGE, re.IGNORECASE), unit


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"{LONGEST_EXPRESSION:,} characters and {DEEPEST} levels" in PAGE
    assert f"{MOST_IN_HAND:,} letters are held at once" in PAGE
    assert (LEASE_SECONDS, "hidden for two minutes" in PAGE) == (120, True)
