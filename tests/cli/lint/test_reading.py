"""Somebody else's text becomes a tree with lines, or one line that says why not."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.lint.node import Node, NotATemplate
from cli.lint.reading import MOST_BYTES, MOST_NESTED, read


def _plain(node: Node | None) -> object:
    if node is None or node.value is None or isinstance(node.value, str):
        return node.value if node else None
    if isinstance(node.value, tuple):
        return [_plain(each) for each in node.value]
    return {key: _plain(each) for key, each in node.value.items()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("# nothing", "empty"),
        ("a: [", "line 2: no YAML"),
        ("a: 1\n---\nb: 2", "line 2: a second document"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' stands twice"),
        ('{"a": "\\/", "a": 2}', "stands twice"),
        ("a: !!python/object/apply:os.system ['true']", "none of CloudFormation's"),
        ("a: !!python/name:os.system", "none of CloudFormation's"),
        ("a: !!set {b}", "none of CloudFormation's"),
        ("a: !\x1b[31m b", "no YAML"),
        ("a: *nobody", "line 1: *nobody"),
        ("a: &a [*a]", "line 1: *a stands before the end"),
        ("? [a]\n: b", "line 1: a key that is no text"),
        ("? !Ref a\n: b", "line 1: a key that is no text"),
        ("[" * (MOST_NESTED + 1), "nested more than"),
        ("[" * 1_000_000, "nested more than"),
        ('{"a":' * 800_000, "nested more than"),
        ('{"\\/": ' + "[" * 5_000 + "]" * 5_000 + "}", "nested more than"),
        ("{a: \x07}", "no JSON"),
        ("a: \x07", "no YAML"),
        ('{"a": "\\ud83d\\ude00"', "no JSON"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, says: str) -> None:
    with pytest.raises(NotATemplate) as refused:
        read(text.encode())
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 400


def test_what_is_no_text_at_all_is_one_line() -> None:
    with pytest.raises(NotATemplate, match="no UTF-8 at byte 1"):
        read(b"a\xff\xfe")
    with pytest.raises(NotATemplate, match="longer than"):
        read(b"#" * (MOST_BYTES + 1))


def test_aliases_that_multiply_are_refused_at_once() -> None:
    """Nine lines that would be a gigabyte."""
    bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    began = time.monotonic()
    with pytest.raises(NotATemplate, match="aliases written out"):
        read(bomb.encode())
    assert time.monotonic() - began < 5


def test_aliases_that_nest_are_refused() -> None:
    deep = "a0: &a0 [x]\n" + "".join(
        f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]\n" for n in range(1, 12)
    )
    with pytest.raises(NotATemplate, match="nested more than"):
        read(deep.encode())


def test_merges_that_repeat_each_other_are_refused_at_once() -> None:
    """They come to no more than the first of them, however often it is looked at."""
    keys = ", ".join(f"k{n}: 1" for n in range(4_000))
    merges = "  <<: *a\n"
    with pytest.raises(NotATemplate, match="steps"):
        read(f"a: &a {{{keys}}}\nb:\n{merges * 4_000}".encode())
    tree = read(f"a: &a {{{keys}}}\nb:\n{merges * 3}".encode())
    assert len(tree.entries["b"].entries) == 4_000


@pytest.mark.parametrize("text", ["[" + "a," * 600_000 + "a]", '["\\/"' + ",[]" * 600_000 + "]"])
def test_more_nodes_than_anybody_writes_are_refused(text: str) -> None:
    with pytest.raises(NotATemplate, match="steps"):
        read(text.encode())


def test_a_number_of_any_length_is_a_key() -> None:
    digits = "9" * 5_000
    tree = read(f'{{"a":\n["x"], "{digits}": ["x"]}}'.encode())
    assert tree.entries[digits].line_of(["0"]) is None
    assert tree.line_of([digits, "0"]) is None
    assert read(b"\n[x]").line_of([digits]) == 2


def test_the_short_forms_are_the_long_ones() -> None:
    short = "a: !Ref x\nb: !GetAtt x.Arn.y\nc: !Sub ['${z}', {z: !ImportValue w}]\nd: !If [q, 1, 2]"
    assert _plain(read(short.encode())) == {
        "a": {"Ref": "x"},
        "b": {"Fn::GetAtt": ["x", "Arn.y"]},
        "c": {"Fn::Sub": ["${z}", {"z": {"Fn::ImportValue": "w"}}]},
        "d": {"Fn::If": ["q", "1", "2"]},
    }


def test_texts_stay_as_they_are_written_but_for_booleans_and_nothing() -> None:
    text = 'a: 2012-10-17\nb: 0123\nc: Yes\nd: "yes"\ne: ~\nf:\ng: 1_000\nh: FALSE\ni: yEs'
    assert _plain(read(text.encode())) == {
        "a": "2012-10-17",
        "b": "0123",
        "c": "true",
        "d": "yes",
        "e": None,
        "f": None,
        "g": "1_000",
        "h": "false",
        "i": "yEs",
    }


def test_aliases_and_merges_are_what_they_stand_for_with_the_lines_of_where_they_stand() -> None:
    text = "a: &a\n  b: 1\n  c: 2\nd:\n  <<: *a\n  c: 3\ne: *a"
    tree = read(text.encode())
    assert _plain(tree.entries["d"]) == {"c": "3", "b": "1"}
    assert _plain(tree.entries["e"]) == {"b": "1", "c": "2"}
    assert tree.line_of(["d", "c"]) == 6
    assert tree.line_of(["d", "b"]) == 2


def test_a_key_in_quotes_is_no_merge() -> None:
    assert _plain(read(b'"<<": {a: 1}')) != {}


@pytest.mark.parametrize("indent", [None, 1, "\t"])
def test_json_has_lines_however_it_is_indented(indent: int | str | None) -> None:
    document = {"a": {"b": ["x", {"c": True}], "d": None, "e": 1.5}}
    tree = read(json.dumps(document, indent=indent).encode())
    assert _plain(tree) == {"a": {"b": ["x", {"c": "true"}], "d": None, "e": "1.5"}}
    assert tree.line_of(["a", "e"]) == (1 if indent is None else 10)


def test_json_that_is_no_yaml_is_read_without_lines() -> None:
    tree = read(rb'{"a": "\ud83d\ude00", "b": "https:\/\/x", "c": [false, null, 3]}')
    assert _plain(tree) == {"a": "\U0001f600", "b": "https://x", "c": ["false", None, "3"]}
    assert tree.line_of(["a"]) is None


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*!?<>|'\"ab \n\t#%@\\/", max_size=80))
def test_any_bytes_are_a_tree_or_one_line(content: bytes | str) -> None:
    try:
        tree = read(content.encode() if isinstance(content, str) else content)
    except NotATemplate as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017 - either way is right
    else:
        assert isinstance(tree, Node)
