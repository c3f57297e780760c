"""What an operator may ask of a message, and what the message's silence means."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mendq.redrive.message_filter import (
    DEEPEST,
    EVERY_MESSAGE,
    LONGEST_EXPRESSION,
    ROOTS,
    Misread,
    message_filter,
)
from mendq.redrive.messages import REDRIVEN, Message, MessageAttribute, RedriveMarker

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
        REDRIVEN: MessageAttribute("String", json.dumps(MARK)),
    },
    source_arn=SOURCE,
    group_id="g-7",
)


def matches(expression: str, message: Message = MESSAGE) -> bool:
    return message_filter(expression).judge(message, NOW).matches


FILTERS = json.loads(Path(__file__).with_name("filters.json").read_text())


@pytest.mark.parametrize("expression", FILTERS["unknown"])
def test_what_is_missing_or_of_another_kind_matches_neither_way(expression: str) -> None:
    assert not matches(expression)
    assert not matches(f"!({expression})")
    assert not matches(f"!(!({expression}))")
    assert not matches(expression.replace(" == ", " != "))
    assert matches(f"{expression} || receive_count == `4`"), "the other half may still say it"
    assert matches(f"!({expression} && receive_count == `5`)")
    assert not matches(f"!({expression} || receive_count == `5`)")


@pytest.mark.parametrize("expression", FILTERS["holds"])
def test_what_holds(expression: str) -> None:
    assert matches(expression)
    assert not matches(f"!({expression})")


def test_only_true_matches_and_its_negation_does_not() -> None:
    for expression in ("body.error.code", "receive_count", "body.items", "`1`", "'x'"):
        assert not matches(expression)
        assert not matches(f"!{expression}")
    assert EVERY_MESSAGE.judge(MESSAGE, NOW).matches


def test_an_error_does_not_match_and_is_said() -> None:
    for expression in ("contains(receive_count, 'x')", "!contains(receive_count, 'x')"):
        judged = message_filter(f"!exists(body) || {expression}").judge(MESSAGE, NOW)
        assert not judged.matches
        assert judged.error == "contains() of a number"
    assert matches("type(body.error) == 'object' || contains(body.error, 'x')"), "not asked"


def test_each_way_into_the_message_is_named_once_with_what_it_holds() -> None:
    found = message_filter(
        "attributes.type == 'a' || attributes.type == 'b' && exists(body.x) && "
        "!(body.items[0].\"a-b\" == 'c') && sort_by(body.items, &sku)[0].sku == 'x'"
    )
    assert dict(found.judge(MESSAGE, NOW).values) == {
        "attributes.type": "order",
        "body.x": None,
        'body.items[0]."a-b"': None,
        "body.items": BODY["items"],
    }


@pytest.mark.parametrize(
    "body", ["", "plain text", "[1, 2", "NaN", '{"a": Infinity}', "[" * 50_000]
)
def test_a_body_that_is_no_json_matches_no_path(body: str) -> None:
    message = Message("m", body, NOW)
    for expression in ("body.a == 'X'", "!(body.a == 'X')", "exists(body.a)"):
        assert not matches(expression, message)
    assert matches("!exists(body.a) && !contains(body_text, 'other')", message)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        *FILTERS["misread"],
        ("!" * (DEEPEST + 1) + "body.a", "levels"),
        ("(" * 2_000, ""),
        ("x" * (LONGEST_EXPRESSION + 1), "longer than"),
    ],
)
def test_what_is_no_filter_says_why(expression: str, says: str) -> None:
    with pytest.raises(Misread) as misread:
        message_filter(expression)
    assert says in str(misread.value)


PIECES = [*ROOTS, *("()[].!<@&*,|"), "[?", "&&", "||", "==", "!=", "'x'", "`1`", '"x"', "exists("]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
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
MESSAGES = st.builds(
    Message,
    message_id=st.text(),
    body=st.text() | DOCUMENTS.map(json.dumps),
    sent_at=st.datetimes(timezones=st.just(UTC)),
    receive_count=st.integers(0, 10**9),
    attributes=st.dictionaries(st.sampled_from(["type", "n", REDRIVEN]), ATTRIBUTES),
    group_id=st.text(),
)
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


@given(TEXTS, MESSAGES)
@example("attributes.type == 'x'", Message("m", "\ud800", NOW))
def test_no_text_and_no_message_makes_it_raise(expression: str, message: Message) -> None:
    with suppress(Misread):
        assert message_filter(expression).judge(message, NOW).matches in (True, False)


@given(st.sampled_from(ASKED), st.sampled_from(ASKED), MESSAGES)
@example(ASKED[1], ASKED[2], Message("m", '{"a": ' + "9" * 9_000 + "}", NOW))
@example(ASKED[1], ASKED[2], Message("m", '{"a": 1e99999999999}', NOW))
def test_three_truths_keep_the_laws_of_two(one: str, other: str, message: Message) -> None:
    """Both an expression and its negation never hold; De Morgan's laws do."""
    both = matches(one, message), matches(f"!({one})", message)
    assert both != (True, True)
    assert matches(f"{one} || !({one})", message) is (True in both)
    assert matches(f"!({one} && {other})", message) is matches(f"!({one}) || !({other})", message)
    assert matches(f"!({one} || {other})", message) is matches(f"!({one}) && !({other})", message)


def test_what_a_filter_asks_of_the_redrive_it_may_ask_in_the_quarantine() -> None:
    """There another attribute stands in the place of the redrive's."""
    quarantined = RedriveMarker(SOURCE, "case-1", b"key").quarantined(MESSAGE, "came back", NOW)
    assert REDRIVEN not in quarantined.attributes
    for asked in ("redrive == 'case-1'", "redrive_count == `2`", f"source == '{SOURCE}'"):
        expression = f'attributes."{REDRIVEN}".{asked}'
        assert (matches(expression), matches(expression, quarantined)) == (True, True)
    assert not matches(f"attributes.\"{REDRIVEN}\".redrive == 'case-2'", quarantined)
    unmarked = Message("m-2", "{}", NOW)
    assert not matches(f'exists(attributes."{REDRIVEN}")', unmarked)
