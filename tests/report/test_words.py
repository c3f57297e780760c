"""Words for numbers, times, names and values, and how others' text goes into a sentence."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report import words
from mendq.report.words import marked, marked_queue, parts, plain, quoted, visible
from tests.report.hostile import TEXT
from tests.report.weeks import arn

FIRST = datetime(2026, 11, 12, 23, 50, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role"


def _span(minutes: float) -> str:
    return words.span(FIRST, FIRST + timedelta(minutes=minutes))


def _days_of(first: date) -> str:
    return words.days_of(first, first + timedelta(days=6))


def _together(text: str) -> str:
    return words.together(text).replace("\N{NO-BREAK SPACE}", "~")


def _written(attribute: str, value: str) -> str:
    return plain(words.written(attribute, value))


@pytest.mark.parametrize(
    ("say", "of", "said"),
    [
        # Two units at most.
        *((words.duration, (seconds,), said) for seconds, said in {
            0: "0 s", 0.2: "under 1 s", 1: "1 s", 59.4: "59 s", 59.6: "1 min", 250: "4 min 10 s",
            3_600: "1 h", 7_259: "2 h", 7_500: "2 h 5 min", 273_600: "3 d 4 h",
            864_000_000: "10,000 d"}.items()),
        *((words.byte_size, (size,), said) for size, said in {
            0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1_000: "1.0 kB", 999_949: "999.9 kB",
            999_950: "1.0 MB", 81_200_000: "81.2 MB", 2**63 - 1: "9.2 EB"}.items()),
        # No part is hidden.
        *((words.share, of, said) for of, said in {
            (0, 7): "0 %", (1, 1_000): "under 1 %", (26, 29): "90 %", (999, 1_000): "over 99 %",
            (7, 7): "100 %"}.items()),
        (words.counted, (1, "queue"), "1 queue"),
        (words.counted, (1_204, "queue"), "1,204 queues"),
        (words.listed, (["a"],), "a"),
        (words.listed, (["a", "b", "c"],), "a, b and c"),
        # The second day is named where it differs.
        (_span, (0.6,), "Thu 12 23:50"),
        (_span, (9,), "Thu 12 23:50\N{EN DASH}23:59"),
        (_span, (10,), "Thu 12 23:50 to Fri 13 00:00"),
        (_span, (1_440,), "Thu 12 23:50 to Fri 13 23:50"),
        (_days_of, (date(2026, 11, 9),), "9 to 15 Nov 2026"),
        (_days_of, (date(2026, 11, 30),), "30 Nov to 6 Dec 2026"),
        (_days_of, (date(2026, 12, 28),), "28 Dec 2026 to 3 Jan 2027"),
        (words.queue_name, ("unresolved",), "an unknown queue"),
        (words.queue_name, (arn("orders.fifo"),), "orders.fifo"),
        (words.queue_name, ("arn:",), "arn:"),
        (words.queue_name, ("",), ""),
        (words.principal_name, (f"{ROLE}/team/orders",), "role/team/orders"),
        (words.principal_name, ("arn:aws:iam::123456789012:",), "arn:aws:iam::123456789012:"),
        (words.principal_name, ("events.amazonaws.com",), "events.amazonaws.com"),
        (words.principal_name, (f"{ROLE}/{'r' * 90}",), f"role/{'r' * 59}…"),
        # A number stays with its unit, and with no other word.
        (_together, ("the ceiling of 900 s; raise it",), "the ceiling of 900~s; raise it"),
        (_together, ("2 h 5 min, 81.2 MB, 2 %, 1 byte",), "2~h 5~min, 81.2~MB, 2~%, 1~byte"),
        (_together, ("10 points above",), "10~points above"),
        (_together, ("9 to 15 Nov, 3 stacks, a s",), "9 to 15 Nov, 3 stacks, a s"),
        (_written, ("VisibilityTimeout", "690"), "690 s"),
        (_written, ("MessageRetentionPeriod", "1209600"), "1,209,600 s (14 d)"),
        (_written, ("ReceiveMessageWaitTimeSeconds", "20"), "20 s"),
        (_written, ("MaximumMessageSize", "1048576"), "1,048,576 bytes"),
        (_written, ("SomethingElse", "1000"), "1,000"),
        (_written, ("ContentBasedDeduplication", "true"), "true"),
        (_written, ("VisibilityTimeout", "007"), "007"),
        (_written, ("VisibilityTimeout", ""), ""),
        (_written, ("Policy", "{" + "x" * 40), ""),
        (words.changed, ("VisibilityTimeout", "460", "690"), "from 460 s to 690 s"),
        (words.changed, ("VisibilityTimeout", "x" * 41, "690"), "to 690 s"),
        (words.changed, ("VisibilityTimeout", "460", ""), ""),
        (words.unlinked, ("https://e.example www.e.example",),
         "https:[//]e.example www[.]e.example"),
    ],
)  # fmt: skip
def test_it_is_said_so(say: Callable[..., str], of: tuple[Any, ...], said: str) -> None:
    assert say(*of) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((each, each) for each in ("orders-dlq.fifo", "Größe, 100 %", "注文", "<b>&amp;", "")),
        ("a\nb\tc\rd", "a b c d"),
        ("a\N{NO-BREAK SPACE}b", "a b"),
        ("gpj.\N{RIGHT-TO-LEFT OVERRIDE}exe", "gpj.[U+202E]exe"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("\N{LINE SEPARATOR}", "[U+2028]"),
        ("\ud800", "[U+D800]"),
        ("\ue000\uffff", "[U+E000][U+FFFF]"),
        ("\N{TAG LATIN SMALL LETTER A}", "[U+E0061]"),
        ("q" * words.MOST_NAME, "q" * 80),
        ("q" * 81, "q" * 80 + "…"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out_and_what_is_long_is_cut(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=[]), max_size=300))
def test_any_text_becomes_characters_that_can_be_seen(text: str) -> None:
    shown = visible(text)
    assert {unicodedata.category(each)[0] for each in shown} <= set("LMNPSZ")
    assert {each for each in shown if each.isspace()} <= {" "}
    shown.encode()


def test_a_sentence_falls_into_its_parts() -> None:
    sentence = f"Set {marked('a')} of {marked_queue(arn('q'))}: {quoted('so')}."
    pieces = [("text", "Set "), ("name", "a"), ("text", " of "), ("name", "q"), ("text", ": ")]
    assert list(parts(sentence)) == [*pieces, ("quote", "so"), ("text", ".")]
    assert plain(sentence) == "Set a of q: so."
    assert list(parts("")) == []
    assert list(parts(marked(""))) == [("name", "")]


def test_what_was_cut_ends_in_its_own_dots() -> None:
    assert plain(f"It said: {quoted('so ' * 150)}. Then") == f"It said: {'so ' * 100}… Then"
    assert list(parts(f"{marked('w' * 81)}."))[-1] == ("name", f"{'w' * 80}…")


@given(name=TEXT, reason=st.text("\ue000\ue001\ue002ab"))
def test_nobody_forges_a_mark(name: str, reason: str) -> None:
    sentence = f"{marked(name)} says {quoted(reason)}!"
    kinds = [kind for kind, _ in parts(sentence)]
    assert kinds == ["name", "text", "quote", "text"]
    assert "".join(text for _, text in parts(sentence)) == plain(sentence)
    assert not set("\ue000\ue001\ue002") & set(plain(sentence))
