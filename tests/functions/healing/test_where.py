"""What an operator may ask of a letter, and what the letter's silence means."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from functions.healing.letters import HOPS, Letter, MessageAttribute
from functions.healing.where import DEEPEST, EVERYTHING, Where, where
from functions.healing.where_words import LONGEST_EXPRESSION, Misread

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BODY = {
    "error": {"code": "X", "fatal": True, "tries": 3},
    "items": [{"sku": "a-1"}, {"sku": "b-2"}],
    "gone": None,
    "a key": 1,
    "Message": '{"type": "order", "n": 12.50}',
}
LETTER = Letter(
    message_id="m-1",
    body=json.dumps(BODY),
    sent_at=NOW - timedelta(minutes=90),
    receive_count=4,
    attributes={
        "type": MessageAttribute("String", "order"),
        "content-type": MessageAttribute("String", "text/plain"),
        "a.b": MessageAttribute("String.custom", "dotted"),
        "weight": MessageAttribute("Number.kg", "12.5"),
        "digits": MessageAttribute("String", "12"),
        "odd": MessageAttribute("Number", "sNaN"),
        "photo": MessageAttribute("Binary", b"\xff\x00"),
        HOPS: MessageAttribute("Number", "2"),
    },
    group_id="g-7",
)


def read(expression: str) -> Where:
    found = where(expression)
    assert isinstance(found, Where), found
    return found


def matches(expression: str, letter: Letter = LETTER) -> bool:
    return read(expression).matches(letter, NOW)


NEITHER = [
    'attr.other = "order"',
    'attr.Type = "order"',
    "attr.type = 1",
    "attr.digits > 3",
    'attr.photo = "x"',
    'attr.photo ~ "x"',
    "attr.odd > 0",
    'body.error = "X"',
    'body.gone = "X"',
    "body.error.fatal = 1",
    "body.error.tries = true",
    'body.items.sku = "a-1"',
    'body.items[2].sku = "a-1"',
    'body.error[0] = "X"',
    'body.error.code.deeper = "X"',
]


@pytest.mark.parametrize("expression", NEITHER)
def test_what_is_missing_or_of_another_kind_matches_neither_way(expression: str) -> None:
    assert not matches(expression)
    assert not matches(f"not {expression}")
    assert not matches(f"not (not {expression})")
    assert not matches(expression.replace(" = ", " != "))
    assert matches(f"{expression} or receives = 4"), "the other half may still say it"
    assert matches(f"not ({expression} and receives = 5)")
    assert not matches(f"not ({expression} or receives = 5)")


@pytest.mark.parametrize(
    "expression",
    [
        'attr.type = "order" and age < 2h and body.error.code = "X"',
        'attr.type = "order" AND Not receives > 4',
        "attr.type = 'order'",
        'attr.content-type ~ "plain"',
        'attr.a.b = "dotted"',
        'attr."a.b" = "dotted"',
        "attr.weight >= 12.5 and attr.weight < 12.51",
        'attr.odd = "sNaN"',
        "exists(attr.photo) and exists(body.items) and exists(body)",
        "not exists(attr.other) and not exists(body.gone)",
        "age = 90min and age = 90m and age = 5400s and age > 1.4h and age < 1d",
        "size > 100 and size < 1KB and size < 0.001MB and size > 0kb",
        "receives = 4 and hops = 2 and hops != 1",
        'group = "g-7" and id = "m-1" and id != "m-2"',
        "body.error.fatal = true and body.error.fatal != FALSE",
        "body.error.tries > -1 and body.error.tries <= 3",
        'body.items[1].sku = "b-2"',
        "body.'a key' = 1",
        'body.Message.type = "order"',
        "body.Message.n = 12.5",
        'body ~ "sku"',
        'body.error.code >= "A" and body.error.code < "Y"',
        'receives = 1 or receives = 2 or attr.type = "order"',
        "(((receives = 4)))",
    ],
)
def test_what_holds(expression: str) -> None:
    assert matches(expression)
    assert not matches(f"not ({expression})")


@pytest.mark.parametrize(
    "expression",
    [
        "age > 2h",
        "age < 90m",
        'attr.type ~ "Order"',
        'body.error.code = "x"',
        "receives < 4",
        'attr.type = "order" and receives = 5',
        'receives = 5 and (receives = 4 or attr.type = "order")',
    ],
)
def test_what_does_not_hold(expression: str) -> None:
    assert not matches(expression)
    assert matches(f"not ({expression})")


def test_and_goes_before_or() -> None:
    assert matches("receives = 4 or receives = 5 and receives = 6")
    assert not matches("(receives = 4 or receives = 5) and receives = 6")


@pytest.mark.parametrize(
    "body", ["", "plain text", "[1, 2", "NaN", '{"a": Infinity}', "[" * 50_000]
)
def test_a_body_that_is_no_json_matches_no_path(body: str) -> None:
    letter = Letter("m", body, NOW)
    assert not matches('body.a = "X"', letter)
    assert not matches('not body.a = "X"', letter)
    assert not matches("exists(body.a)", letter)
    assert matches("not exists(body.a)", letter)
    assert matches('not body ~ "other"', letter)


def test_quotes_and_backslashes_stand_for_themselves_behind_a_backslash() -> None:
    letter = Letter("m", 'a "b" \\ c', NOW)
    assert matches(r'body = "a \"b\" \\ c"', letter)
    assert matches(r"body ~ '\"b\"'", letter)


def test_a_standard_queue_s_letter_has_no_group() -> None:
    letter = Letter("m", "", NOW)
    assert not matches('group = ""', letter)
    assert not matches('group != "g"', letter)


@pytest.mark.parametrize(
    ("expression", "at", "says"),
    [
        ("", 0, "what to ask"),
        ("   ", 3, "what to ask"),
        ("attr.type = order", 12, "a text in quotes"),
        ('attr.type = "order', 12, "closing quote"),
        ("attr.type", 9, "one of"),
        ("attr.type == 'x'", 11, "a value belongs here"),
        ("body.order in (1,2)", 11, "no `in`: say (body.order = A or body.order = B)"),
        ("exists(attr.x) and attr.type NOT IN ['a']", 33, "(attr.type = A or attr.type = B)"),
        ("in", 0, "(NAME = A or NAME = B)"),
        ("attr = 'x'", 0, "which attribute"),
        ("attr[0] = 'x'", 0, "which attribute"),
        ("type = 'x'", 0, "none of attr, body"),
        ("age < 2", 6, "with its unit"),
        ("age < 2w", 6, "with its unit"),
        ("age < '2h'", 6, "with its unit"),
        ("age.hours < 2h", 0, "leads nowhere"),
        ("size < 2GB", 7, "in bytes"),
        ("receives < 2h", 11, "without a unit"),
        ("id = 3", 5, "a text in quotes"),
        ("body = 3", 7, "a text in quotes"),
        ("attr.a ~ 3", 9, "in quotes"),
        ("attr.a < true", 7, "only = or !="),
        ("receives = 1 and", 16, "what to ask"),
        ("receives = 1 receives = 2", 13, "and, or"),
        ("(receives = 1", 13, "closing )"),
        ("receives = 1)", 12, "and, or"),
        ("exists attr.a", 7, "exists("),
        ("exists(receives = 1)", 16, "closing )"),
        ("receives = 1 && receives = 2", 13, "say and"),
        ("receives = 1;import os", 12, "nothing begins"),
        ("__import__('os')", 0, "none of attr"),
        ("receives = 1.2.3", 11, "no number"),
        ("body.größe = 1", 7, "nothing begins"),
        ("not " * (DEEPEST + 1) + "receives = 1", 4 * DEEPEST, "levels deep"),
        ("(" * 2_000, DEEPEST, "levels deep"),
        ("x" * (LONGEST_EXPRESSION + 1), LONGEST_EXPRESSION, "longer than"),
    ],
)
def test_what_is_no_expression_says_why_and_where(expression: str, at: int, says: str) -> None:
    found = where(expression)
    assert isinstance(found, Misread)
    assert says in found.reason
    assert found.at == at


def test_a_wide_expression_is_no_deep_one() -> None:
    many = " or ".join(f"receives = {number}" for number in range(200))
    assert matches(many)
    assert read(many).fields == read("receives = 1").fields


def test_its_fields_are_named_once_each() -> None:
    found = read('attr.type = "a" or attr.type = "b" and exists(body.x) and not age < 1h')
    assert [each.written for each in found.fields] == ["attr.type", "body.x", "age"]
    assert EVERYTHING.fields == ()
    assert EVERYTHING.matches(LETTER, NOW)


PIECES = [
    "attr.type",
    "body.a",
    "body.a[0].b",
    "body",
    "age",
    "size",
    "hops",
    "group",
    "exists(",
    "(",
    ")",
    "and",
    "or",
    "not",
    "=",
    "!=",
    "<",
    "~",
    '"x"',
    "'",
    "2h",
    "1",
    "-1.5",
    "true",
    "\\",
]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)
ATTRIBUTES = st.builds(
    MessageAttribute, st.sampled_from(["String", "Number", "Number.x", "Binary"]), st.text()
) | st.builds(MessageAttribute, st.just("Binary"), st.binary())
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b"]) | st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
LETTERS = st.builds(
    Letter,
    message_id=st.text(),
    body=st.text() | DOCUMENTS.map(json.dumps),
    sent_at=st.datetimes(timezones=st.just(UTC)),
    receive_count=st.integers(0, 10**9),
    attributes=st.dictionaries(st.sampled_from(["type", "n", HOPS]), ATTRIBUTES),
    group_id=st.text(),
)
ASKED = [
    'attr.type = "x"',
    "attr.n > 0",
    "body.a < 3",
    'body.a[0].b ~ "x"',
    "body.a.b = true",
    'body ~ "x"',
    "age > 1d",
    "size < 1KB",
    "hops = 1",
    'group != "g"',
    "exists(body.a.b)",
]


@given(TEXTS, LETTERS)
@example("attr.type = 'x'", Letter("m", "\ud800", NOW))
def test_no_text_and_no_letter_makes_it_raise(expression: str, letter: Letter) -> None:
    found = where(expression)
    if isinstance(found, Misread):
        assert 0 <= found.at <= len(expression)
    else:
        assert found.matches(letter, NOW) in (True, False)


@given(st.sampled_from(ASKED), LETTERS)
@example(
    "attr.n > 0", Letter("m", "", NOW, 1, {"n": MessageAttribute("Number", "1e99999999999999")})
)
@example("body.a < 3", Letter("m", '{"a": 1e99999999999999999999}', NOW))
@example("body.a < 3", Letter("m", '{"a": ' + "9" * 9_000 + "}", NOW))
@example("size < 1KB", Letter("m", "\ud800", NOW))
def test_every_field_of_every_letter_is_answered(expression: str, letter: Letter) -> None:
    """Both an expression and its negation never hold."""
    both = matches(expression, letter), matches(f"not {expression}", letter)
    assert both != (True, True)
    assert matches(f"{expression} or not {expression}", letter) is (True in both)


@given(st.sampled_from(ASKED), st.sampled_from(ASKED), LETTERS)
def test_de_morgan_holds_for_what_cannot_be_said_too(one: str, other: str, letter: Letter) -> None:
    assert matches(f"not ({one} and {other})", letter) is matches(
        f"not {one} or not {other}", letter
    )
    assert matches(f"not ({one} or {other})", letter) is matches(
        f"not {one} and not {other}", letter
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda size: ("body.a = 1", '{"a": "' + "x" * size + '"}'),
        lambda size: ("body.a = 1", "[" * size),
        lambda size: ("body.a = 1", '{"a": ' + "9" * size + "}"),
        lambda size: ('body ~ "ab"', "a" * size),
        lambda size: ('body = "' + "\\" * 3_900 + '"', "x" * size),
    ],
)
def test_the_time_grows_no_faster_than_the_letter(make: object) -> None:
    assert callable(make)

    def seconds(size: int) -> float:
        expression, body = make(size)
        letter, best = Letter("m", body, NOW), float("inf")
        for _ in range(3):
            began = perf_counter()
            read(expression).matches(letter, NOW)
            best = min(best, perf_counter() - began)
        return best

    assert seconds(400_000) < max(0.02, 16 * seconds(100_000))
