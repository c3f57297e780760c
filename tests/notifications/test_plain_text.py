"""Plain text: one line of printable ASCII for any text, and bodies that are cut to a size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.notifications.text import (
    MOST_COMMAND_CHARACTERS,
    Section,
    command_or_note,
    format_exact_json,
    format_value,
    limit_lines,
    make_body,
    to_plain_text,
)

ANY = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::123456789012:role/x"),
        ("a\r\n  NEXT\n  curl", "a NEXT curl"),
        ("a\u2028b\u2029c\x85d", "a b c d"),
        ("\u202egpj.exe", "\\u202egpj[.]exe"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("\N{CYRILLIC SMALL LETTER A}dmin", "\\u0430dmin"),
        ("\ud800", "\\ud800"),
        ("https://evil.example", "https:[//]evil[.]example"),
        ("WWW.evil.example", "WWW[.]evil[.]example"),
        ("", ""),
    ],
)
def test_plain_text_is_one_line_of_printable_ascii_without_working_links(
    text: str, expected: str
) -> None:
    assert to_plain_text(text) == expected


@settings(max_examples=60)
@given(text=ANY, most=st.integers(8, 40))
def test_plain_text_and_value_are_one_bounded_printable_line_without_a_link_for_any_text(
    text: str, most: int
) -> None:
    for shown in (to_plain_text(text, most), format_value(text, most)):
        assert len(shown) <= most
        assert all(" " <= character <= "~" for character in shown)
        assert "://" not in shown
        assert "  " not in shown


@settings(max_examples=60)
@given(document=st.dictionaries(st.text(), st.text()))
def test_exact_json_of_any_document_is_printable_has_no_link_and_reads_back_the_same(
    document: dict[str, str],
) -> None:
    typed = format_exact_json(document)
    assert json.loads(typed) == document
    assert typed.isascii()
    assert typed.isprintable()
    assert "://" not in typed


def test_text_longer_than_its_maximum_is_cut_and_ends_in_dots() -> None:
    assert to_plain_text("x" * 9, 9) == "x" * 9
    assert to_plain_text("x" * 10, 9) == "x" * 6 + "..."


@pytest.mark.parametrize(
    ("value", "shown"), [("one", "one"), ('two "words"', "\"two 'words'\""), ("", '""')]
)
def test_value_that_is_empty_or_has_blanks_is_shown_in_quotes(value: str, shown: str) -> None:
    assert format_value(value) == shown


def test_list_longer_than_its_maximum_ends_with_the_number_of_omitted_lines() -> None:
    assert limit_lines("ab", 2) == ("a", "b")
    assert limit_lines("abcd", 2) == ("a", "b", "and 2 more")


@pytest.mark.parametrize(
    "command",
    ["aws sqs list-queues\nrm x", "aws \u202ex", "", "aws " + "x" * MOST_COMMAND_CHARACTERS],
    ids=["two lines", "hidden character", "empty", "too long"],
)
def test_command_that_cannot_be_shown_whole_is_replaced_by_a_note(command: str) -> None:
    assert command_or_note(command).startswith("(not shown")


def test_command_of_one_printable_line_is_shown_unchanged() -> None:
    whole = "aws sqs list-queues --queue-name-prefix 'a  b'"
    assert command_or_note(whole) == whole


def test_long_body_is_cut_at_its_longest_sections_except_those_that_must_stay() -> None:
    last = Section("LAST", ("x" * 50,) * 3, can_be_cut=False)
    sections = (Section("ONE", ("x" * 50,) * 20), Section("TWO", ("short",)), last)
    text = make_body(("first",), sections, 500)
    assert len(text) <= 500
    assert text.startswith("first\n\nONE\n  xxx")
    assert "TWO\n  short" in text
    assert text.endswith(f"\n\n{last.text()}\n")
    dropped = 20 - (text.count("x" * 50) - 3)
    assert f"(cut: {dropped} more lines)" in text
    assert make_body(("first",), (last,), 10).count("x" * 50) == 3
