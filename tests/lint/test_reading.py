"""The template reader and its value resolver, for untrusted text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mendq.lint.decode import read_template
from mendq.lint.template import (
    MAXIMUM_NESTED_LEVELS,
    MOST_TEMPLATE_BYTES,
    NotATemplate,
    Template,
    WorkBudget,
    convert_scalars_to_text,
)
from mendq.lint.values import UnknownValue, ValueResolver

VALUES = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text())
PARAMETERS = VALUES["parameters"] | {"Big": {"Type": "String", "Default": "x" * 100_000}}
IN_MAP = VALUES["in_map"] | {"big": "x" * 100_000}
KNOWN = {"AWS::Region": "eu-west-1", "Queue": "url", "Queue.Arn": "arn"}


def _make_find_in_map(key: str) -> Any:
    return {"Fn::FindInMap": ["Visibilities", "prod", key]}


def _read_text(text: str) -> Template:
    return read_template(f"Resources: {{}}\n{text}".encode())


def _resolve(value: Any) -> Any:
    sections = {"Parameters": PARAMETERS, "Mappings": {"Visibilities": {"prod": IN_MAP}}}
    template = read_template(json.dumps({**sections, "Resources": {}, "value": value}).encode())
    return ValueResolver(template, KNOWN).resolve(template.root["value"])


def _make_alias_chain(length: int, copies: int) -> str:
    """Return a few lines of YAML, of which each names the line before it several times."""
    lines = ["a0: &a0 [x]"]
    for number in range(1, length + 1):
        aliases = ", ".join([f"*a{number - 1}"] * copies)
        lines.append(f"a{number}: &a{number} [{aliases}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *VALUES["refused"],
        ("[" * (MAXIMUM_NESTED_LEVELS + 1), "nested more than"),
        ("[" * 1000000, "nested more than"),
        ('{"a":' * 800000, "nested more than"),
        ('{"\\/": ' + "[" * 5000 + "]" * 5000 + "}", "nested more than"),
        ("[" + "a," * 600000 + "a]", "steps"),
        ('["\\/"' + ",[]" * 600000 + "]", "steps"),
        (_make_alias_chain(6, copies=9), "steps"),
        (f"a: &a {'x' * 200_000}\nb: [{'*a, ' * 300}]", "steps"),
        (_make_alias_chain(MAXIMUM_NESTED_LEVELS + 1, copies=1), "aliases are nested more than"),
    ],
)
def test_malformed_or_oversized_template_text_is_refused_with_one_short_line(
    text: str, says: str
) -> None:
    with pytest.raises(NotATemplate) as refused:
        read_template(text.encode())
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a\xff\xfe", "no UTF-8 at byte 1"), (b"#" * (MOST_TEMPLATE_BYTES + 1), "longer")],
)
def test_template_that_is_not_utf8_or_too_long_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(NotATemplate, match=says):
        read_template(content)


def test_template_scalars_stay_text_except_booleans_and_null() -> None:
    text = 'a: 2012-10-17\nb: 0123\nc: Yes\nd: "yes"\ne: ~\nf:\ng: 1_000\nh: FALSE\ni: yEs'
    values = ["2012-10-17", "0123", "true", "yes", None, None, "1_000", "false", "yEs"]
    assert list(_read_text(text).root.values()) == [{}, *values]


def test_template_aliases_and_merge_keys_are_written_out_with_the_line_of_the_anchor() -> None:
    text = (
        "a: &a\n  b: 1\n  c: [2]\n"
        "d: *a\n"
        "e:\n  <<: *a\n  b: 3\n"
        "f: {<<: [{b: 4}, *a], g: 5}\n"
        'h: {"<<": 6}'
    )
    template = _read_text(text)
    del template.root["Resources"]
    assert template.root == {
        "a": {"b": "1", "c": ["2"]},
        "d": {"b": "1", "c": ["2"]},
        "e": {"b": "3", "c": ["2"]},
        "f": {"b": "4", "c": ["2"], "g": "5"},
        "h": {"<<": "6"},
    }
    lines = [
        template.find_place(*keys).line for keys in (["d"], ["d", "b"], ["e", "b"], ["e", "c"])
    ]
    assert lines == [5, 3, 8, 4]


@pytest.mark.parametrize("indent", [None, 1, "\t"])
def test_json_template_keeps_line_numbers_with_any_indentation(indent: int | str | None) -> None:
    document = {"Resources": {}, "a": {"b": ["x", {"c": True}], "d": None, "e": 1.5}}
    template = read_template(json.dumps(document, indent=indent).encode())
    assert template.root["a"] == {"b": ["x", {"c": "true"}], "d": None, "e": "1.5"}
    assert template.find_place("a", "e").line == (1 if indent is None else 11)


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*!?<>|'\"ab \n\t#%@\\/", max_size=80))
def test_arbitrary_bytes_are_read_as_a_template_or_refused_with_one_line(
    content: bytes | str,
) -> None:
    try:
        read_template(content.encode() if isinstance(content, str) else content)
    except NotATemplate as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017 - either way is right


@pytest.mark.parametrize("case", VALUES["tells"], ids=str)
def test_value_resolver_resolves_refs_and_intrinsic_functions_of_a_template(
    case: dict[str, Any],
) -> None:
    assert _resolve(case["value"]) == case["comes_to"]


@pytest.mark.parametrize("value", [*VALUES["does_not_tell"], {"Fn::Sub": "${" * 1_000_000}])
def test_value_known_only_at_deployment_is_unknown_with_a_short_reason(value: Any) -> None:
    with pytest.raises(UnknownValue) as unknown:
        _resolve(value)
    assert len(unknown.value.because) <= 600


def _make_nested_subs(levels: int, mentions: int, innermost: str) -> Any:
    value: Any = innermost
    for _ in range(levels):
        value = {"Fn::Sub": ["${a}" * mentions, {"a": value}]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Sub": "${Big}" * 2_000},
        {"Fn::Join": ["x" * 10_000, ["y"] * 5_000]},
        [{"Ref": "Big"}] * 2_000,
        [_make_find_in_map("big")] * 2_000,
        _make_nested_subs(12, 10, "x"),
    ],
)
def test_template_whose_functions_expand_to_a_huge_text_is_refused(value: Any) -> None:
    with pytest.raises(NotATemplate, match="more than 8,000,000 steps"):
        _resolve(value)


@pytest.mark.parametrize(
    ("value", "text", "steps"),
    [
        ({}, {}, 1),
        ({"a": None, "b": None}, {"a": None, "b": None}, 3),
        ([], [], 1),
        ([1, True], ["1", "true"], 3),
        ("", "", 1),
        ("x" * 31, "x" * 31, 2),
        ("x" * 32, "x" * 32, 3),
    ],
)
def test_conversion_of_a_plan_takes_steps_for_items_and_text(
    value: Any, text: Any, steps: int
) -> None:
    budget = WorkBudget(steps)
    assert convert_scalars_to_text(value, budget) == text
    assert budget.steps_left == 0
