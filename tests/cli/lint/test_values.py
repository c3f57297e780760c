"""What a template's values come to, and that nothing is guessed where it does not tell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as whatever
from hypothesis import settings
from hypothesis import strategies as st

from cli.lint.node import NotATemplate
from cli.lint.reading import read
from cli.lint.template import Template
from cli.lint.values import Known, NotKnown, Values
from cli.lint.work import Work

PARAMETERS = {
    "Stage": {"Type": "String", "Default": "prod"},
    "Open": {"Type": "String"},
    "Names": {"Type": "CommaDelimitedList", "Default": "a, b"},
    "Stored": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/x"},
    "Secret": {"Type": "String", "Default": "s3cret", "NoEcho": True},
}
CIRCLE = {"Fn::FindInMap": ["Leases", "prod", "circle"]}
LEASES = {
    "seconds": 60,
    "names": ["a", "b"],
    "none": [],
    "other": {"Ref": "Open"},
    "function": {"Ref": "Stage"},
    "nested": {"a": "b"},
    "lists": [["a"]],
    "nothing": None,
    "circle": CIRCLE,
    "circles": [CIRCLE],
}
MAPPINGS = {"Leases": {"prod": LEASES}}
KNOWN = Known({"AWS::Region": "eu-west-1", "Queue": "url"}, {("Queue", "Arn"): "arn"})


def _in_map(key: str) -> Any:
    return {"Fn::FindInMap": ["Leases", "prod", key]}


def _values(given: Any) -> tuple[Any, Values]:
    text = {"Parameters": PARAMETERS, "Mappings": MAPPINGS, "Resources": {}, "given": given}
    template = Template(read(json.dumps(text).encode()))
    values = Values(template, KNOWN)
    return values.of(template.root.entries["given"]), values


@pytest.mark.parametrize(
    ("given", "comes_to"),
    [
        ({"Ref": "Stage"}, "prod"),
        ({"Ref": "Names"}, ["a", "b"]),
        ({"Ref": "Queue"}, "url"),
        ({"Ref": "AWS::NoValue"}, None),
        ({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": "1"}),
        ([{"Ref": "AWS::NoValue"}, "x"], ["x"]),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn"),
        (
            {"Fn::Sub": "${AWS::Region}/${Stage}/${!Stage}/${Queue.Arn}"},
            "eu-west-1/prod/${Stage}/arn",
        ),
        ({"Fn::Sub": ["${x}-${Stage}", {"x": {"Ref": "Queue"}}]}, "url-prod"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}]]}, "a-prod"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::FindInMap": ["Leases", {"Ref": "Stage"}, "seconds"]}, "60"),
        (_in_map("names"), ["a", "b"]),
        (_in_map("none"), []),
        ({"Fn::Join": ["-", _in_map("names")]}, "a-b"),
        ({"Fn::Sub": ["${x}${x}", {"x": _in_map("seconds")}]}, "6060"),
        ({"Fn::Sub": "a$b{c}$$"}, "a$b{c}$$"),
        ({"Ref": "Stage", "more": 1}, {"Ref": "Stage", "more": "1"}),
    ],
)
def test_what_a_template_tells(given: Any, comes_to: Any) -> None:
    assert _values(given)[0] == comes_to


@pytest.mark.parametrize(
    "given",
    [
        {"Ref": "Open"},
        {"Ref": "Stored"},
        {"Ref": "Secret"},
        {"Ref": "Nobody"},
        {"Ref": ["Stage"]},
        {"Ref": None},
        {"Fn::GetAtt": "Queue"},
        {"Fn::GetAtt": ["Queue"]},
        {"Fn::GetAtt": ["Queue", {"Ref": "Stage"}]},
        {"Fn::GetAtt": ["Queue", "Color"]},
        {"Fn::Sub": "${Open}"},
        {"Fn::Sub": "${Names}"},
        {"Fn::Sub": "${AWS::NoValue}"},
        {"Fn::Sub": []},
        {"Fn::Sub": {"a": 1}},
        {"Fn::Join": "x"},
        {"Fn::Join": ["-", "x"]},
        {"Fn::Join": ["-", [["x"]]]},
        {"Fn::FindInMap": ["Leases", "test", "seconds"]},
        {"Fn::FindInMap": ["Leases", "prod", "other"]},
        *map(_in_map, ("function", "nested", "lists", "nothing", "circle", "circles")),
        {"Fn::Sub": "${"},
        {"Fn::Sub": "${}"},
        {"Fn::Sub": "${a${Stage}"},
        {"Fn::Sub": ["${x}", {"x": {"Fn::Sub": ["${x}", {"y": "z"}]}}]},
        {"Fn::FindInMap": ["Leases", "prod"]},
        {"Fn::FindInMap": []},
        {"Fn::If": ["IsProd", 1, 2]},
        {"Fn::ImportValue": "x"},
        {"Fn::Select": [0, ["x"]]},
        {"Fn::Whatever": None},
        ["x", {"Fn::ImportValue": "x"}],
    ],
)
def test_what_it_does_not_tell_is_not_known(given: Any) -> None:
    with pytest.raises(NotKnown):
        _values(given)


def test_the_defaults_that_were_taken_are_told_of_and_no_others() -> None:
    assert _values({"Fn::Sub": "${Stage}"})[1].defaults == {"Stage": "prod"}


@pytest.mark.parametrize(
    "given",
    [
        {"Fn::Sub": "${Big}" * 2_000},
        {"Fn::Join": ["x" * 10_000, ["y"] * 5_000]},
        [{"Ref": "Big"}] * 2_000,
    ],
)
def test_a_small_template_cannot_come_to_a_large_text(given: Any) -> None:
    parameters = {"Big": {"Type": "String", "Default": "x" * 100_000}}
    text = {"Parameters": parameters, "Resources": {}, "given": given}
    template = Template(read(json.dumps(text).encode()))
    with pytest.raises(NotATemplate, match="more than 8,000,000 steps"):
        Values(template, KNOWN).of(template.root.entries["given"])


@pytest.mark.parametrize(
    ("unknown", "comes_to"),
    [
        ({"Ref": "Open"}, "?"),
        (["a", {"Ref": "Open"}, {"Ref": "AWS::NoValue"}], ["a", "?"]),
        ({"a": {"Fn::ImportValue": "x"}, "b": {"Ref": "Stage"}}, {"a": "?", "b": "prod"}),
        ({"Fn::Join": ["-", ["a", {"Ref": "Open"}]]}, "?"),
        ({"Ref": "Stage"}, "prod"),
        ({"Ref": "AWS::NoValue"}, None),
    ],
)
def test_a_word_stands_for_each_function_that_is_not_known(unknown: Any, comes_to: Any) -> None:
    _, values = _values("x")
    assert values.with_word(read(json.dumps(unknown).encode()), "?") == comes_to


def test_why_something_is_not_known_is_said_in_so_many_words() -> None:
    with pytest.raises(NotKnown) as raised:
        _values({"Ref": "x" * 100_000})
    assert len(raised.value.because) == 600


def _nested_subs(levels: int, mentions: int, innermost: str) -> Any:
    found: Any = innermost
    for _ in range(levels):
        found = {"Fn::Sub": ["${a}" * mentions, {"a": found}]}
    return found


def test_a_variable_is_worked_out_once_however_often_it_is_named() -> None:
    """Twelve levels of ten mentions each would be a trillion, and every one of them empty."""
    found, values = _values(_nested_subs(12, 10, ""))
    assert found == ""
    assert Work().left - values.work.left < 1_000


def test_what_a_variable_comes_to_counts_each_time_it_is_named() -> None:
    with pytest.raises(NotATemplate, match="steps"):
        _values(_nested_subs(12, 10, "x"))


def test_unclosed_names_are_not_looked_for_from_each_anew() -> None:
    with pytest.raises(NotKnown):
        _values({"Fn::Sub": "${" * 1_000_000})


LEAVES = st.sampled_from(["", "x", {"Ref": "Stage"}, {"Ref": "Names"}, _in_map("names"), CIRCLE])
REPEATING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.builds(lambda each, n: {"Fn::Sub": ["${a}" * n, {"a": each}]}, inner, st.integers(0, 9)),
        st.builds(lambda by, each: {"Fn::Join": [by, each]}, st.text(max_size=3), inner),
        st.builds(lambda *each: {"Fn::FindInMap": list(each)}, inner, inner, inner),
        st.builds(lambda *each: {"Fn::If": ["c", *each]}, inner, inner),
        st.builds(lambda n, each: {"Fn::Select": [n, each]}, st.integers(0, 3), inner),
        st.builds(lambda each: {"Fn::Split": [",", each]}, inner),
        st.builds(lambda each: {"Fn::ForEach::L": ["x", ["a"] * 9, each]}, inner),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@whatever(REPEATING, st.integers(0, 30_000))
def test_whatever_repeats_itself_ends_within_its_work(repeating: Any, left: int) -> None:
    text = {"Parameters": PARAMETERS, "Mappings": MAPPINGS, "Resources": {}}
    template = Template(read(json.dumps(text).encode()))
    values = Values(template, KNOWN, work=Work(left))
    try:
        found = values.of(read(json.dumps(repeating).encode()))
    except (NotKnown, NotATemplate):
        return
    assert len(json.dumps(found)) <= 6 * (left - values.work.left)
