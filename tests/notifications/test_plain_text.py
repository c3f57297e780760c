from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.notifications.text import (
    MOST_COMMAND,
    Section,
    body,
    command_line,
    exact_json,
    first_of,
    plain,
    value,
    visible,
)

ANY = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::123456789012:role/x"),
        ("a\r\n  NEXT\n  curl", "a NEXT curl"),
        ("a\u2028b\u2029c\x85d", "a b c d"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("pay\u200bload", "pay\\u200bload"),
        ("\N{CYRILLIC SMALL LETTER A}dmin", "\\u0430dmin"),
        ("\ud800", "\\ud800"),
        ("https://evil.example", "https:[//]evil.example"),
        ("WWW.evil.example", "WWW[.]evil.example"),
        ("", ""),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_visible_leaves_a_link_as_it_is_written_and_nothing_else() -> None:
    assert visible("http://x:1/\x1b\n\u202ey") == "http://x:1/\\x1b \\u202ey"
    assert visible("x" * 9, 8) == "xxxxx..."


@given(text=ANY, most=st.integers(8, 40))
def test_plain_is_one_bounded_line_that_can_be_seen(text: str, most: int) -> None:
    for shown in (plain(text, most), value(text, most)):
        assert len(shown) <= most
        assert all(" " <= each <= "~" for each in shown)
        assert "://" not in shown
        assert "  " not in shown


def test_what_is_cut_says_so() -> None:
    assert plain("x" * 9, 9) == "x" * 9
    assert plain("x" * 10, 9) == "x" * 6 + "..."


def test_a_value_with_spaces_shows_where_it_ends() -> None:
    assert value("one") == "one"
    assert value('two "words"') == "\"two 'words'\""
    assert value("") == '""'


@pytest.mark.parametrize(
    "command", ["aws sqs list-queues\nrm x", "aws \u202ex", "", "aws " + "x" * MOST_COMMAND]
)
def test_a_command_is_never_shown_in_part(command: str) -> None:
    assert command_line(command).startswith("(not shown")


def test_a_command_stands_as_it_is() -> None:
    command = "aws sqs list-queues --queue-name-prefix 'a  b'"
    assert command_line(command) == command


@given(document=st.dictionaries(st.text(), st.text(), max_size=3))
def test_exact_json_is_exact(document: dict[str, str]) -> None:
    typed = exact_json(document)
    assert json.loads(typed) == document
    assert typed.isascii()
    assert typed.isprintable()
    assert "://" not in typed


def test_first_of_counts_the_rest() -> None:
    assert first_of("ab", 2) == ("a", "b")
    assert first_of("abcd", 2) == ("a", "b", "and 2 more")


def test_a_long_body_loses_the_ends_of_its_longest_sections() -> None:
    sections = (
        Section("ONE", ("x" * 50,) * 20),
        Section("TWO", ("short",)),
        Section("LAST", ("retained",), cut=False),
    )
    text = body(("first",), sections, 400)
    assert len(text) <= 400
    assert text.startswith("first\n\nONE\n  xxx")
    assert "TWO\n  short" in text
    assert text.endswith("\n\nLAST\n  retained\n")
    dropped = 20 - text.count("x" * 50)
    assert f"(cut: {dropped} more lines)" in text


def test_what_may_not_be_cut_stays_whole() -> None:
    section = Section("LAST", ("x" * 50,) * 3, cut=False)
    assert body(("first",), (section,), 10).count("x" * 50) == 3
