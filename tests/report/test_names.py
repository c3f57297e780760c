from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report.words import marked, marked_queue, parts, plain, quoted
from tests.report.hostile import TEXT
from tests.report.weeks import arn


def test_a_sentence_falls_into_its_parts() -> None:
    sentence = f"Set {marked('a')} of {marked_queue(arn('q'))}: {quoted('it is so')}."
    assert list(parts(sentence)) == [
        ("text", "Set "),
        ("name", "a"),
        ("text", " of "),
        ("name", "q"),
        ("text", ": "),
        ("quote", "it is so"),
        ("text", "."),
    ]
    assert plain(sentence) == "Set a of q: it is so."


def test_what_was_cut_ends_in_its_own_dots() -> None:
    assert plain(f"It said: {quoted('so ' * 150)}. Then") == f"It said: {'so ' * 100}… Then"
    assert list(parts(f"{marked('w' * 81)}."))[-1] == ("name", f"{'w' * 80}…")
    assert plain(f"{quoted('so')}.") == "so."


@pytest.mark.parametrize(
    ("sentence", "found"),
    [("", []), ("all ours", [("text", "all ours")]), (marked(""), [("name", "")])],
)
def test_sentences_without_much(sentence: str, found: list[tuple[str, str]]) -> None:
    assert list(parts(sentence)) == found


@given(name=TEXT, reason=st.text("\ue000\ue001\ue002ab"))
def test_nobody_forges_a_mark(name: str, reason: str) -> None:
    sentence = f"{marked(name)} says {quoted(reason)}!"
    kinds = [kind for kind, _ in parts(sentence)]
    assert kinds == ["name", "text", "quote", "text"]
    assert "".join(text for _, text in parts(sentence)) == plain(sentence)
    assert not set("\ue000\ue001\ue002") & set(plain(sentence))
