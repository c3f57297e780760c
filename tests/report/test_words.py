"""Formatting of numbers, times, names and values, and marks around foreign text."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report import words
from mendq.report.words import (
    make_visible,
    mark_name,
    mark_queue,
    mark_quote,
    remove_marks,
    split_at_marks,
)
from tests.report.hostile import TEXT
from tests.report.weeks import make_queue_arn

FIRST = datetime(2026, 11, 12, 23, 50, tzinfo=UTC)
SIX_DAYS = timedelta(days=6)
SAID = json.loads(Path(__file__).with_name("words.json").read_text())


SAYS: dict[str, Callable[[Any], str]] = {
    "duration": words.format_duration,
    "byte_size": words.format_bytes,
    "share": lambda arguments: words.format_percent(*arguments),
    "span": lambda minutes: words.format_time_span(FIRST, FIRST + timedelta(minutes=minutes)),
    "days_of": lambda first: words.format_day_range(
        first := date.fromisoformat(first), first + SIX_DAYS
    ),
    "queue_name": words.format_queue_name,
    "principal_name": words.format_principal,
    "together": lambda text: words.keep_units_together(text).replace("\N{NO-BREAK SPACE}", "~"),
    "unlinked": words.break_links,
    "written": lambda arguments: remove_marks(words.format_value(*arguments)),
    "changed": lambda arguments: words.describe_change(*arguments),
    "visible": make_visible,
}


@pytest.mark.parametrize("kind", SAYS)
def test_report_word_function_formats_each_recorded_value(kind: str) -> None:
    for value, expected in SAID[kind]:
        assert SAYS[kind](value) == expected


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_make_visible_turns_any_text_into_visible_characters(text: str) -> None:
    shown = make_visible(text)
    assert {unicodedata.category(character)[0] for character in shown} <= set("LMNPSZ")
    assert {character for character in shown if character.isspace()} <= {" "}
    shown.encode()


def test_split_at_marks_returns_the_text_names_and_quotes_of_a_sentence() -> None:
    sentence = f"Set {mark_name('a')} of {mark_queue(make_queue_arn('q'))}: {mark_quote('so')}."
    pieces = [("text", "Set "), ("name", "a"), ("text", " of "), ("name", "q"), ("text", ": ")]
    assert list(split_at_marks(sentence)) == [*pieces, ("quote", "so"), ("text", ".")]
    assert remove_marks(sentence) == "Set a of q: so."
    assert list(split_at_marks("")) == []
    assert list(split_at_marks(mark_name(""))) == [("name", "")]


def test_long_names_and_quotes_are_cut_with_an_ellipsis() -> None:
    assert (
        remove_marks(f"It said: {mark_quote('so ' * 150)}. Then") == f"It said: {'so ' * 100}… Then"
    )
    assert list(split_at_marks(f"{mark_name('w' * 81)}."))[-1] == ("name", f"{'w' * 80}…")


@given(name=TEXT, reason=st.text("\ue000\ue001\ue002ab"))
def test_mark_characters_in_a_name_or_quote_cannot_forge_a_mark(name: str, reason: str) -> None:
    sentence = f"{mark_name(name)} says {mark_quote(reason)}!"
    kinds = [kind for kind, _ in split_at_marks(sentence)]
    assert kinds == ["name", "text", "quote", "text"]
    assert "".join(text for _, text in split_at_marks(sentence)) == remove_marks(sentence)
    assert not set("\ue000\ue001\ue002") & set(remove_marks(sentence))
