from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report.words import MOST_NAME, unlinked, visible

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)


@pytest.mark.parametrize(
    "text", ["orders", "orders-dlq.fifo", "Größe, 100 %", "注文", "<b>&amp;", ""]
)
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\rd", "a b c d"),
        ("a\N{NO-BREAK SPACE}b", "a b"),
        ("gpj.\N{RIGHT-TO-LEFT OVERRIDE}exe", "gpj.[U+202E]exe"),
        ("a\N{ZERO WIDTH SPACE}b", "a[U+200B]b"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("\x85\x00", "[U+0085][U+0000]"),
        ("\N{LINE SEPARATOR}", "[U+2028]"),
        ("\ud800", "[U+D800]"),
        ("\ue000\uffff", "[U+E000][U+FFFF]"),
        ("\N{TAG LATIN SMALL LETTER A}", "[U+E0061]"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_name_as_long_as_sqs_allows_is_whole() -> None:
    assert visible("q" * MOST_NAME) == "q" * MOST_NAME


def test_a_longer_one_is_cut_and_says_so() -> None:
    assert visible("q" * 81) == "q" * 80 + "…"


@given(ANY_TEXT)
def test_any_text_becomes_characters_that_can_be_seen(text: str) -> None:
    shown = visible(text)
    assert {unicodedata.category(each)[0] for each in shown} <= set("LMNPSZ")
    assert {each for each in shown if each.isspace()} <= {" "}
    shown.encode()


def test_an_address_in_a_mail_is_no_link() -> None:
    assert unlinked("see https://evil.example and www.evil.example") == (
        "see https:[//]evil.example and www[.]evil.example"
    )
