"""Message filters: which messages match, and which filters are refused."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from mendq.model.seal import SealKey
from mendq.redrive.message_filter import (
    DOCUMENT_FIELD_NAMES,
    EVERY_MESSAGE_FILTER,
    LONGEST_EXPRESSION_CHARACTERS,
    MOST_EXPRESSION_LEVELS,
    FilterUnreadable,
    parse_filter,
)
from mendq.redrive.messages import REDRIVE_MARK_NAME, Message, MessageAttribute, RedriveMarker
from tests.redrive.arbitrary_messages import MESSAGES

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BODY = {
    "error": {"code": "X", "fatal": True, "tries": 3},
    "items": [{"sku": "a-1"}, {"sku": "b-2"}, {"other": 1}],
    "gone": None,
    "a key": 1,
    "Message": '{"type": "order", "n": 12.50}',
}
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
MARK = {"source": SOURCE, "redrive": "case-1", "redrive_count": 2, "seal": ""}
MESSAGE = Message(
    message_id="m-1",
    body=json.dumps(BODY),
    sent_at=NOW - timedelta(minutes=90),
    receive_count=4,
    attributes={
        "type": MessageAttribute("String", "order"),
        "content-type": MessageAttribute("String", "text/plain"),
        "weight": MessageAttribute("Number.kg", "12.5"),
        "digits": MessageAttribute("String", "12"),
        "odd": MessageAttribute("Number", "sNaN"),
        "photo": MessageAttribute("Binary", b"\xff\x00"),
        REDRIVE_MARK_NAME: MessageAttribute("String", json.dumps(MARK)),
    },
    source_arn=SOURCE,
    group_id="g-7",
)


def matches(expression: str, message: Message = MESSAGE) -> bool:
    return parse_filter(expression).match_message(message, NOW).matches


FILTERS = json.loads(Path(__file__).with_name("filters.json").read_text())


@pytest.mark.parametrize("expression", FILTERS["unknown"])
def test_comparison_of_a_missing_or_mistyped_value_matches_neither_directly_nor_negated(
    expression: str,
) -> None:
    assert not matches(expression)
    assert not matches(f"!({expression})")
    assert not matches(f"!(!({expression}))")
    assert not matches(expression.replace(" == ", " != "))


@pytest.mark.parametrize("expression", FILTERS["unknown"])
def test_filter_with_an_unknown_half_matches_only_if_the_other_half_alone_decides(
    expression: str,
) -> None:
    """A true half decides an `||`, and a false half decides an `&&`."""
    assert matches(f"{expression} || receive_count == `4`")
    assert matches(f"!({expression} && receive_count == `5`)")
    assert not matches(f"!({expression} || receive_count == `5`)")


@pytest.mark.parametrize("expression", FILTERS["unknown"])
def test_message_does_not_match_a_true_condition_joined_by_and_with_an_unknown_one(
    expression: str,
) -> None:
    assert not matches(f"({expression}) && receive_count == `4`")
    assert not matches(f"receive_count == `4` && ({expression})")


@pytest.mark.parametrize("expression", FILTERS["holds"])
def test_true_filter_expression_matches_and_its_negation_does_not(expression: str) -> None:
    assert matches(expression)
    assert not matches(f"!({expression})")


def test_filter_whose_value_is_not_a_boolean_matches_nothing() -> None:
    for expression in ("body.error.code", "receive_count", "body.items", "`1`", "'x'"):
        assert not matches(expression)
        assert not matches(f"!{expression}")


def test_filter_for_every_message_matches_a_message() -> None:
    assert EVERY_MESSAGE_FILTER.match_message(MESSAGE, NOW).matches


def test_filter_that_fails_on_a_message_does_not_match_and_reports_the_error() -> None:
    for expression in ("contains(receive_count, 'x')", "!contains(receive_count, 'x')"):
        judged = parse_filter(f"!exists(body) || {expression}").match_message(MESSAGE, NOW)
        assert not judged.matches
        assert judged.error == "contains() of a number"
    assert matches("type(body.error) == 'object' || contains(body.error, 'x')"), "not asked"


HUGE = "9" * 400
HUGE_TO_READ = "9" * 3_900


@pytest.mark.parametrize("number", [HUGE, HUGE_TO_READ, "9" * 5_000])
def test_number_of_any_length_in_a_filter_or_a_message_gives_a_result_or_a_short_error(
    number: str,
) -> None:
    body = f'{{"n": {number}, "l": [1, {number}, 1.5], "t": "{number}"}}'
    message = structs.replace(MESSAGE, body=body)
    for expression in (
        *(f"body.n > `{number}`", f"body.l[{number}] == `1`", f"body.l[-{number}:] == `1`"),
        *(f"body.l[::{number}] == `1`", f"body.n < `{number}.5`", f"age_seconds > `1e{number}`"),
        *("sum(body.l) > `1`", "avg(body.l) > `1`", "ceil(body.n) > `1`", "abs(body.n) > `1`"),
        *("to_number(body.t) > `1`", "ceil(to_number(body.t)) > `1`", "to_string(body.n) == '1'"),
    ):
        try:
            message_filter = parse_filter(expression)
        except FilterUnreadable as refusal:
            assert len(str(refusal)) < 300  # noqa: PT017 - some of these are read
        else:
            result = message_filter.match_message(message, NOW)
            assert number not in result.error


def test_sum_beyond_the_largest_number_does_not_match_and_says_why() -> None:
    message = structs.replace(MESSAGE, body=f'{{"l": [{HUGE}, 1.5]}}')
    result = parse_filter("sum(body.l) > `1`").match_message(message, NOW)
    assert (result.matches, result.error) == (False, "it calculates with a number beyond 1.8e308")


def test_filter_match_lists_each_used_message_path_once_with_its_value() -> None:
    found = parse_filter(
        "attributes.type == 'a' || attributes.type == 'b' && exists(body.x) && "
        "!(body.items[0].\"a-b\" == 'c') && sort_by(body.items, &sku)[0].sku == 'x'"
    )
    assert dict(found.match_message(MESSAGE, NOW).value_by_path) == {
        "attributes.type": "order",
        "body.x": None,
        'body.items[0]."a-b"': None,
        "body.items": BODY["items"],
    }


@pytest.mark.parametrize("body", ["", "plain text", "[1, 2", "NaN is no number", "1e999 of them"])
def test_filter_on_a_body_that_is_not_json_matches_only_by_not_exists_and_by_its_raw_text(
    body: str,
) -> None:
    message = Message("m", body, NOW)
    for expression in ("body.a == 'X'", "!(body.a == 'X')", "exists(body.a)"):
        assert not matches(expression, message)
    assert matches("!exists(body.a) && !contains(body_text, 'other')", message)


UNREADABLE_BODIES = {
    "NaN": "holds NaN",
    '{"type": "order", "a": Infinity}': "holds Infinity",
    '{"type": "order", "a": [-Infinity]}': "holds -Infinity",
    '{"type": "order", "a": 1e999}': "holds a number beyond",
    '{"type": "order", "a": -1e999}': "holds a number beyond",
    '{"type": "order", "a": ' + "9" * 9_000 + "}": "too many digits",
    "[" * 50_000 + "]" * 50_000: "nested too deep",
}


@pytest.mark.parametrize("body", UNREADABLE_BODIES)
def test_filter_that_reads_a_body_which_json_parsers_read_differently_never_matches(
    body: str,
) -> None:
    """A Python consumer reads the type, a Go consumer fails. A filter must not choose."""
    message = Message("m", body, NOW)
    for expression in (
        "body.type == 'order'",
        "body.type != 'order'",
        "!exists(body.type)",
        "!exists(body)",
        "shape(body) == 'null'",
        "type(body) == 'null'",
        "not_null(body.type, 'order') == 'order'",
        "body.a > `5` || receive_count == `1`",
    ):
        judged = parse_filter(expression).match_message(message, NOW)
        assert not judged.matches, expression
        assert UNREADABLE_BODIES[body] in judged.error
    assert matches("receive_count == `1` && contains(body_text, '')", message), "not looked into"


def test_filter_that_looks_into_a_nested_json_text_with_nan_never_matches() -> None:
    inner = '{"type": "order", "n": NaN}'
    message = Message("m", json.dumps({"Message": inner, "id": 1}), NOW)
    for expression in ("body.Message.type == 'order'", "!exists(body.Message.type)"):
        judged = parse_filter(expression).match_message(message, NOW)
        assert not judged.matches
        assert "a text that the filter looks into holds NaN" in judged.error
    assert matches("body.id == `1`", message), "the text with NaN is not looked into"


@pytest.mark.parametrize(
    "literal",
    ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "[1, [NaN]]", '{"a": {"b": Infinity}}'],
)
@pytest.mark.parametrize(
    "expression",
    [
        "body.a == `{}`",
        "!(body.a > `{}`)",
        "contains(body.a, `{}`)",
        "exists(body.a[?b < `{}`])",
        "sort_by(body.a, &not_null(b, `{}`))[0].b == `1`",
    ],
)
def test_filter_with_a_literal_that_is_not_a_json_number_is_refused(
    expression: str, literal: str
) -> None:
    with pytest.raises(FilterUnreadable, match="no JSON number"):
        parse_filter(expression.replace("{}", literal, 1))


def _require_no_match(expression: str, body: object) -> None:
    message = Message("m", json.dumps(body), NOW)
    assert not matches(expression, message)
    assert not matches(f"!({expression})", message)
    assert not matches(expression.replace(" == ", " != "), message)


@pytest.mark.parametrize(
    ("expression", "body"),
    [
        ("body.ids == `[1]`", {"ids": [True]}),
        ("body.ids == `[true]`", {"ids": [1]}),
        ("body.ids == `[false]`", {"ids": [0.0]}),
        ("body.ids == `[[[1]]]`", {"ids": [[[True]]]}),
        ('body.o == `{"a": {"b": 0}}`', {"o": {"a": {"b": False}}}),
        ("[body.a, body.b] == `[1, 0]`", {"a": True, "b": False}),
        ('{x: body.a} == `{"x": 1}`', {"a": True}),
        ("contains(body.ids, `1`)", {"ids": [True]}),
        ("contains(body.ids, `true`)", {"ids": [1.0]}),
        ("contains(body.ids, `[1]`)", {"ids": [[True]]}),
        ("contains(`[0, 1]`, body.a)", {"a": True}),
        ("contains(values(body.o), `1`)", {"o": {"a": True}}),
        ("reverse(body.ids) == `[1, 0]`", {"ids": [False, True]}),
        ("to_array(body.a) == `[1]`", {"a": True}),
        ('merge(body.o, body.o) == `{"a": 1}`', {"o": {"a": True}}),
        ("map(&n, body.items) == `[1]`", {"items": [{"n": True}]}),
        ("body.items[].ids == `[1]`", {"items": [{"ids": True}]}),
        ("max(body.ids) == `1`", {"ids": [True]}),
        ("min(body.ids) == `0`", {"ids": [False]}),
        ("sum(body.ids) == `2`", {"ids": [True, 1]}),
        ("avg(body.ids) == `1`", {"ids": [True]}),
        ("abs(body.a) == `1`", {"a": True}),
        ("sort(body.ids)[0] == `0`", {"ids": [False, 1]}),
        ("max_by(body.items, &n).n == `1`", {"items": [{"n": True}]}),
        ("min_by(body.items, &n).n == `1`", {"items": [{"n": True}, {"n": 2}]}),
        ("sort_by(body.items, &n)[0].n == `1`", {"items": [{"n": 1}, {"n": True}]}),
        ("to_number(body.a) == `1`", {"a": True}),
    ],
)
def test_filter_matches_neither_directly_nor_negated_if_nested_json_types_differ(
    expression: str, body: object
) -> None:
    _require_no_match(expression, body)


@pytest.mark.parametrize(
    ("expression", "body"),
    [
        ("to_number(body.a) > `5`", {"a": "inf"}),
        ("to_number(body.a) > `5`", {"a": "1_000"}),
        ("to_number(body.a) > `5`", {"a": "1e999"}),
        ("to_number(body.a) == `7`", {"a": " 7"}),
        ("to_number(body.a) == `7`", {"a": "\u0667"}),
        ("sum(body.a) > `5`", {"a": [1e308, 1e308]}),
        ("avg(body.a) > `5`", {"a": [1e308, 1e308]}),
    ],
)
def test_filter_matches_neither_directly_nor_negated_if_a_text_is_no_number_or_a_sum_overflows(
    expression: str, body: object
) -> None:
    _require_no_match(expression, body)


@pytest.mark.parametrize(
    ("expression", "body"),
    [
        ("body.ids == `[1]`", {"ids": [1.0]}),
        ("body.ids != `[1]`", {"ids": [2]}),
        ("body.ids != `[1]`", {"ids": [True, True]}),
        ("body.ids != `[1, 2]`", {"ids": [True, 3]}),
        ('body.o != `{"a": 1}`', {"o": {"b": 1}}),
        ('body.o == `{"a": null, "b": [true]}`', {"o": {"b": [True], "a": None}}),
        ("contains(body.ids, `1`)", {"ids": [True, 1.0]}),
        ("!contains(body.ids, `1`)", {"ids": [2, 3]}),
        ("!contains(body.ids, `1`)", {"ids": []}),
        ("to_number(body.a) == `7.5`", {"a": "7.5"}),
        ("to_string(body.ids) == '[1,true]'", {"ids": [1, True]}),
    ],
)
def test_filter_compares_arrays_and_objects_whose_json_types_are_equal(
    expression: str, body: object
) -> None:
    message = Message("m", json.dumps(body), NOW)
    assert matches(expression, message)
    assert not matches(f"!({expression})", message)


@pytest.mark.parametrize(
    ("selected", "items"),
    [
        ("n == `1`", [{"n": True}]),
        ("ids == `[0]`", [{"ids": [False]}]),
        ("contains(ids, `1`)", [{"ids": [True]}]),
        ("n != `1`", [{"n": True}]),
        ("n >= `1`", [{"n": True}]),
    ],
)
def test_filter_projection_selects_no_array_member_of_another_json_type(
    selected: str, items: object
) -> None:
    message = Message("m", json.dumps({"items": items}), NOW)
    assert not matches(f"exists(body.items[?{selected}])", message)
    assert not matches(f"length(body.items[?{selected}]) > `0`", message)


def test_filter_comparison_with_a_binary_attribute_never_matches() -> None:
    for expression in (
        "to_string(attributes.photo) != 'x'",
        "contains(to_array(attributes.photo), attributes.photo)",
        "to_array(attributes.photo) == to_array(attributes.photo)",
        "to_string(attributes) != 'x'",
    ):
        assert not matches(expression)
        assert not matches(f"!({expression})")


def test_filter_parses_each_json_text_once_per_message(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = '{"a": 1, "b": 2}'
    message = Message("m", json.dumps({"Message": inner}), NOW)
    parsed = list[str]()
    loads = json.loads

    def counting_loads(text: str, **options: Any) -> Any:
        parsed.append(text)
        return loads(text, **options)

    judging = parse_filter(
        "body.Message.a == `1` && body.Message.b == `2` && !exists(body.Message.c) && "
        "body_text.Message.a == `1` && exists(shape(body.Message).a)"
    )
    monkeypatch.setattr(json, "loads", counting_loads)
    judged = judging.match_message(message, NOW)
    monkeypatch.undo()
    assert judged.matches, judged
    assert sorted(parsed) == sorted([message.body, inner])


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        *FILTERS["misread"],
        ("!" * (MOST_EXPRESSION_LEVELS + 1) + "body.a", "levels"),
        ("(" * 2_000, ""),
        ("x" * (LONGEST_EXPRESSION_CHARACTERS + 1), "longer than"),
    ],
)
def test_unreadable_filter_is_refused_with_the_reason(expression: str, says: str) -> None:
    with pytest.raises(FilterUnreadable) as misread:
        parse_filter(expression)
    assert says in str(misread.value)


PIECES = [
    *DOCUMENT_FIELD_NAMES,
    *("()[].!<@&*,|"),
    "[?",
    "&&",
    "||",
    "==",
    "!=",
    "'x'",
    "`1`",
    '"x"',
    "exists(",
]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
ASKED = [
    "attributes.type == 'x'",
    "attributes.n > `0`",
    "body.a < `3`",
    "contains(body.a[0].b, 'x')",
    "body.a.b",
    "body.a != body.b",
    "age_seconds > `86400`",
    "redrive_count == `1`",
    "group_id != 'g'",
    "exists(body.a.b)",
]


def _strict_form(value: object) -> object:
    """Return the value in a form with strict equality. Shares no code with the filter."""
    if isinstance(value, list):
        return ("array", tuple(map(_strict_form, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, _strict_form(member)) for name, member in value.items()))
    if isinstance(value, bool) or value is None:
        return ("word", repr(value))
    return ("number", Fraction(value)) if isinstance(value, int | float) else ("text", value)


# Values that Python calls equal although their JSON types differ.
ALIKE = st.sampled_from(
    [True, False, 0, 1, 0.0, 1.0, -0.0, 2**53, float(2**53), 2**53 + 1, "", "1"]
)
JSON_VALUES = st.recursive(
    ALIKE | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=6,
)


def _swap_booleans_and_numbers(value: object) -> object:
    """Return a value that Python calls equal, with booleans and numbers swapped."""
    if isinstance(value, list):
        return [_swap_booleans_and_numbers(member) for member in value]
    if isinstance(value, dict):
        return {name: _swap_booleans_and_numbers(member) for name, member in value.items()}
    if isinstance(value, bool):
        return int(value)
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else value


PAIRS = st.tuples(JSON_VALUES, JSON_VALUES) | JSON_VALUES.map(
    lambda value: (value, _swap_booleans_and_numbers(value))
)


@given(PAIRS)
def test_filter_equality_agrees_with_strict_json_equality(pair: tuple[object, object]) -> None:
    mine, asked = pair
    message = Message("m", json.dumps({"a": mine, "list": [mine, "other"]}), NOW)
    literal = json.dumps(asked).replace("`", "\\u0060")
    is_equal = mine is not None and asked is not None and _strict_form(mine) == _strict_form(asked)
    if asked is not None:
        assert matches(f"body.a == `{literal}`", message) is is_equal
        assert not (is_equal and matches(f"body.a != `{literal}`", message))
        assert not (is_equal and matches(f"!(body.a == `{literal}`)", message))
        is_member = is_equal or asked == "other"
        assert matches(f"contains(body.list, `{literal}`)", message) is is_member
        assert not (is_member and matches(f"!contains(body.list, `{literal}`)", message))
        found = f"exists(body.list[?@ == `{literal}`])"
        assert matches(found, message) is is_member


@given(TEXTS, MESSAGES)
@example("attributes.type == 'x'", Message("m", "\ud800", NOW))
def test_arbitrary_filter_and_message_raise_nothing_except_filter_unreadable(
    expression: str, message: Message
) -> None:
    with suppress(FilterUnreadable):
        assert parse_filter(expression).match_message(message, NOW).matches in (True, False)


@given(st.sampled_from(ASKED), st.sampled_from(ASKED), MESSAGES)
@example(ASKED[1], ASKED[2], Message("m", '{"a": ' + "9" * 9_000 + "}", NOW))
@example(ASKED[2], ASKED[3], Message("m", '{"a": 1e99999999999}', NOW))
def test_filter_logic_obeys_de_morgan_and_never_matches_expression_and_negation(
    one: str, other: str, message: Message
) -> None:
    both = matches(one, message), matches(f"!({one})", message)
    assert both != (True, True)
    assert matches(f"{one} || !({one})", message) is (True in both)
    assert matches(f"!({one} && {other})", message) is matches(f"!({one}) || !({other})", message)
    assert matches(f"!({one} || {other})", message) is matches(f"!({one}) && !({other})", message)


def test_filter_on_the_redrive_mark_also_matches_the_quarantined_message() -> None:
    """In the quarantine another attribute replaces the redrive mark."""
    quarantined = RedriveMarker(SOURCE, "case-1", SealKey(b"key")).mark_quarantined(
        MESSAGE, "came back", NOW, SealKey(b"key of the quarantine")
    )
    assert REDRIVE_MARK_NAME not in quarantined.attributes
    for asked in ("redrive == 'case-1'", "redrive_count == `2`", f"source == '{SOURCE}'"):
        expression = f'attributes."{REDRIVE_MARK_NAME}".{asked}'
        assert (matches(expression), matches(expression, quarantined)) == (True, True)
    assert not matches(f"attributes.\"{REDRIVE_MARK_NAME}\".redrive == 'case-2'", quarantined)
    unmarked = Message("m-2", "{}", NOW)
    assert not matches(f'exists(attributes."{REDRIVE_MARK_NAME}")', unmarked)


@pytest.mark.parametrize(
    "step", ["[@,@]", "[@,@][]", "{a:@,b:@}", "join('',[@,@])", "to_string(@)", "[[@],[@]]"]
)
def test_filter_that_copies_its_input_exponentially_is_refused(step: str) -> None:
    """Such a filter would take minutes or gigabytes for one small message."""
    doubled = " | ".join(["body.error.code", *[step] * 40])
    with pytest.raises(FilterUnreadable, match="copies of what it looks at"):
        parse_filter(f"({doubled}) == 'X'")


def test_filter_with_hundreds_of_literals_or_alternatives_is_accepted() -> None:
    types = ", ".join(f"'t{number}'" for number in range(300))
    assert not matches(f"contains([{types}], attributes.type)")
    assert matches(f"contains([{types}, 'order'], attributes.type)")
    assert matches(" || ".join(["body.error.code == 'Y'"] * 60) + " || body.error.code == 'X'")
    assert matches("(body.error | [code, code] | [@, @])[1][0] == 'X'")
