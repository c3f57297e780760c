"""Test that Mendq writes JSON that strict parsers read, and rejects NaN and infinity on reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.cli.output import Output
from mendq.model.json_text import refuse_nan_constant, to_json
from mendq.model.policy import parse_statements
from mendq.model.queue import parse_json_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans())
def test_to_json_of_any_value_round_trips_through_a_strict_json_parser(
    value: Any, is_compact: bool
) -> None:
    written = to_json({"value": value}, is_compact=is_compact, sort_keys=True)
    read = json.loads(written, parse_constant=refuse_nan_constant)
    assert to_json(read, is_compact=is_compact, sort_keys=True) == written


def test_to_json_writes_null_for_nan_and_infinity_at_any_depth() -> None:
    written = to_json({"a": nan, "b": [inf, (1.5, -inf)], nan: 1}, sort_keys=False)
    assert json.loads(written) == {"a": None, "b": [None, [1.5, None]], "null": 1}


def test_to_json_writes_null_for_nan_that_default_returns() -> None:
    written = to_json([{"x"}, nan], default=lambda value: [*value, inf])
    assert json.loads(written) == [["x", None], None]


def test_command_prints_null_for_nan_in_its_json_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(as_json=True).print_json({"measured": nan, "fixed": 2})
    printed = json.loads(capsys.readouterr().out, parse_constant=refuse_nan_constant)
    assert printed == {"measured": None, "fixed": 2}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("read", [parse_json_object, parse_statements])
def test_queue_attribute_with_nan_infinity_or_overflow_is_unreadable(
    read: Callable[[str], object], number: str
) -> None:
    document = {"Statement": [{"Effect": "Allow", "Condition": {"NumericLessThan": {"k": 7}}}]}
    text = json.dumps(document)
    assert read(text) is not None
    assert read(text.replace("7", number)) is None
