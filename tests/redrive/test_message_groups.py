"""Message groups: each filter matches its own group only and shows no value of a body."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mendq.redrive.message_filter import parse_filter
from mendq.redrive.message_groups import (
    MAXIMUM_GROUPS_PER_GROUPING_WAY,
    MessageGroup,
    SampledMessage,
    describe_body_outline,
    group_messages,
    group_sample,
)
from mendq.redrive.messages import Message, MessageAttribute
from tests.redrive.arbitrary_messages import ATTRIBUTES, DOCUMENTS, MESSAGES
from tests.redrive.toy import DEAD, NOW, SOURCE, message

ERRORS = ["timed out after 3000 ms", "timed out after 20 ms", "no\nsecond", "4711", "", "`'\"\\é"]
NAMES = st.sampled_from(["type", "a b", "ErrorMessage", "x-exception-message"]) | st.text()
GIVEN = ATTRIBUTES | st.builds(MessageAttribute, st.just("String"), st.sampled_from(ERRORS))
SAMPLES = st.lists(
    st.builds(
        structs.replace,
        MESSAGES,
        attributes=st.dictionaries(NAMES, GIVEN, max_size=3),
        source_arn=st.sampled_from([None, SOURCE, DEAD]),
    ),
    max_size=8,
).map(
    lambda them: [
        structs.replace(sample_message, message_id=f"m-{n}")
        for n, sample_message in enumerate(them)
    ]
)


def select_messages(where: str, sample: list[Message]) -> list[Message]:
    return [
        candidate
        for candidate in sample
        if parse_filter(where).match_message(candidate, NOW).matches
    ]


def find_groups(way: str, sample: list[Message], *, bodies: bool = False) -> list[MessageGroup]:
    return [
        group_message
        for group_message in group_messages(sample, NOW, should_group_by_text=bodies)
        if group_message.by == way
    ]


@given(SAMPLES, st.booleans())
def test_filter_of_a_message_group_is_printable_ascii_and_matches_exactly_that_groups_messages(
    sample: list[Message], bodies: bool
) -> None:
    groups = group_messages(sample, NOW, should_group_by_text=bodies)
    for group in groups:
        assert group.where.isascii()
        assert group.where.isprintable()
        assert not group.where or select_messages(group.where, sample) == list(group.messages)


@given(SAMPLES, st.booleans())
def test_groups_by_body_hold_every_sampled_message_unless_their_maximum_is_reached(
    sample: list[Message], bodies: bool
) -> None:
    groups = group_messages(sample, NOW, should_group_by_text=bodies)
    shown = [group for group in groups if group.by == "body"]
    assert len(shown) == MAXIMUM_GROUPS_PER_GROUPING_WAY or sum(
        len(group.messages) for group in shown
    ) == len(sample)


@given(SAMPLES, st.dictionaries(st.sampled_from("abc"), st.sampled_from(["s3cret", 73, None])))
def test_message_groups_never_show_values_from_message_bodies(
    sample: list[Message], secrets: dict[str, Any]
) -> None:
    texts = ("s3cret", json.dumps(secrets), json.dumps({"Message": json.dumps(secrets)}))
    told = [structs.replace(message(text), attributes={}) for text in texts]
    for group in find_groups(
        "body",
        [structs.replace(told_message, message_id=f"m-{n}") for n, told_message in enumerate(told)],
    ):
        for text in (
            group.what,
            group.where,
            *(describe_body_outline(grouped_message.body) for grouped_message in group.messages),
        ):
            assert "s3cret" not in text
            assert "73" not in text


SHAPES = {
    '{"b": 1.5, "a": "x"}': '{"a": "string", "b": "number"}',
    '{"a": true, "b": [1], "c": null}': '{"a": "boolean", "b": "array", "c": "null"}',
    '{"a": {"b": {"c": 1}}}': '{"a": {"b": "object"}}',
    '{"Message": "{\\"n\\": 1}"}': '{"Message": {"n": "number"}}',
    '{"a key": {}, "`": "{}"}': '{"`": "string", "a key": {}}',
    "{}": "{}",
    "[1]": "array",
    '"text"': "string",
    "null": "not JSON",
    "plain text 12": "not JSON",
}


@pytest.mark.parametrize("body", SHAPES)
def test_messages_are_grouped_by_field_names_and_json_types_of_their_bodies(body: str) -> None:
    alone = group_messages([message("m", body=body)], NOW)[0]
    assert alone.what == SHAPES[body]
    assert alone.where.startswith("shape(body) == ")
    others = [shape for shape in SHAPES if SHAPES[shape] != SHAPES[body]]
    assert select_messages(alone.where, [message("o", body=other) for other in others]) == []


@given(DOCUMENTS, DOCUMENTS)
def test_filter_of_a_body_shape_matches_exactly_the_bodies_of_that_shape(
    one: Any, other: Any
) -> None:
    (first, second) = (
        group_messages([message("m", body=json.dumps(document))], NOW)[0]
        for document in (one, other)
    )
    if not first.where:
        assert first.what == "JSON that holds NaN, Infinity or too large a number"
        return
    takes = bool(select_messages(first.where, [message("o", body=json.dumps(other))]))
    assert takes is (first.what == second.what)


def test_message_group_with_a_very_large_body_shape_gets_no_filter() -> None:
    large = json.dumps({f"a rather long name {n}": n for n in range(200)})
    sample = [message("large", body=large), message("small", body='{"a": 1}')]
    assert [bool(group.where) for group in find_groups("body", sample)] == [False, True]


def _make_large_body(kind: str, number: int) -> str:
    """Return a body of about 1 MiB with names or texts that no other body has."""
    names = [f"k{number}x{index}" for index in range(50_000)]
    if kind == "names":
        return json.dumps(dict.fromkeys(names, 1))
    if kind == "objects in texts":
        return json.dumps(dict.fromkeys(names, "{}"))
    if kind == "JSON in a text":
        return json.dumps({"Message": json.dumps(dict.fromkeys(names, 1))})
    if kind == "long names":
        return json.dumps({f"{name}{'n' * 2_600}": 1 for name in names[:390]})
    return f"Order {number} {'x' * 1_000_000}"


@pytest.mark.parametrize(
    "kind", ["names", "objects in texts", "JSON in a text", "long names", "text"]
)
def test_sample_of_1_mib_bodies_keeps_less_than_100_kb_of_each(kind: str) -> None:
    tracemalloc.start()
    try:
        sample = []
        for number in range(10):
            whole_message = message(f"m-{number}", body=_make_large_body(kind, number))
            sample.append(SampledMessage.create(whole_message, should_group_by_text=True))
        del whole_message
        groups = group_sample(sample, NOW)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(group.messages) for group in groups if group.by == "body") >= 5
    assert kept_bytes / len(sample) < 100_000


def _make_long_attributes(kind: str, number: int) -> dict[str, MessageAttribute]:
    """Return ten attributes of 100 KB each."""
    text = f"{number} {'x' * 100_000}"
    names = [f"name-{number}-{index}" for index in range(10)]
    if kind == "new names":
        return {name: MessageAttribute("String", text) for name in names}
    if kind == "errors":
        error = MessageAttribute("String", f"no {number}\n{'x' * 100_000}")
        return {f"error-{index}": error for index in range(10)}
    if kind == "bytes":
        value = MessageAttribute("Binary", text.encode())
        return {f"name-{index}": value for index in range(10)}
    return {f"name-{index}": MessageAttribute("String", text) for index in range(10)}


@pytest.mark.parametrize("kind", ["values", "new names", "errors", "bytes"])
def test_sample_of_long_attributes_keeps_less_than_100_kb_of_each_message(kind: str) -> None:
    tracemalloc.start()
    try:
        sample = []
        for number in range(10):
            whole_message = message(f"m-{number}", attributes=_make_long_attributes(kind, number))
            sample.append(SampledMessage.create(whole_message, should_group_by_text=True))
        del whole_message
        groups = group_sample(sample, NOW)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(group.messages) for group in groups if group.by in ("error", "attribute")]
    assert kept_bytes / len(sample) < 100_000


def _with_attribute(message_id: str, name: str, value: str) -> Message:
    return message(message_id, attributes={name: MessageAttribute("String", value)})


def test_long_attribute_values_that_begin_alike_are_different_groups_without_a_filter() -> None:
    """Nobody can paste a filter of 3,000 characters, and a shorter one would match both groups."""
    sample = [
        _with_attribute("a-1", "type", f"{'x' * 3_000}a"),
        _with_attribute("a-2", "type", f"{'x' * 3_000}a"),
        _with_attribute("b", "type", f"{'x' * 3_000}b"),
        _with_attribute("short", "type", "x"),
    ]
    groups = find_groups("attribute", sample)
    assert sorted(len(group.messages) for group in groups) == [1, 1, 2]
    (group_with_filter,) = (group for group in groups if group.where)
    assert select_messages(group_with_filter.where, sample) == [sample[3]]


def test_more_than_ten_long_values_that_begin_alike_form_one_group_of_the_attribute() -> None:
    sample = [_with_attribute(f"m-{n}", "key", f"{'x' * 3_000}{n}") for n in range(11)]
    (group,) = find_groups("attribute", sample)
    assert (group.what, group.where) == ("key, whatever its value", "exists(attributes.key)")


def test_error_filter_that_may_match_the_cut_part_of_another_error_is_not_shown() -> None:
    ours = _with_attribute("ours", "ErrorMessage", "Order 7 failed")
    theirs = _with_attribute("theirs", "ErrorMessage", f"Order {'x' * 3_000} 8 failed")
    elsewhere = _with_attribute("elsewhere", "ErrorMessage", f"Refund {'x' * 3_000}")
    (group,) = (
        group for group in find_groups("error", [ours, theirs]) if group.messages[0] == ours
    )
    assert group.where == ""
    (group,) = (
        group for group in find_groups("error", [ours, elsewhere]) if group.messages[0] == ours
    )
    assert select_messages(group.where, [ours, elsewhere]) == [ours]


def test_bodies_with_more_than_400_names_form_one_group_without_a_filter() -> None:
    sample = [message(f"m-{n}", body=_make_large_body("names", n)) for n in range(3)]
    (group,) = find_groups("body", sample)
    assert (group.what, group.where) == ("JSON with more than 400 names", "")
    assert group.first_outline == "JSON with more than 400 names"


def test_large_bodies_of_one_shape_are_one_group_whose_filter_matches_them_alone() -> None:
    long = [message(f"l-{n}", body=json.dumps({"a": "x" * 20_000, "n": n})) for n in range(2)]
    other = message("o", body=json.dumps({"a": 1, "b": "x" * 20_000}))
    first, second = find_groups("body", [*long, other])
    assert [len(first.messages), len(second.messages)] == [2, 1]
    assert select_messages(first.where, [*long, other]) == long
    assert select_messages(second.where, [*long, other]) == [other]


def test_text_filter_that_may_match_the_cut_part_of_another_body_is_not_shown() -> None:
    """`contains` finds the group's words behind the first 16,384 characters of the other body."""
    ours = message("ours", body="Order 7 failed")
    theirs = message("theirs", body=f"Order {'x' * 20_000} failed")
    elsewhere = message("elsewhere", body=f"Refund {'x' * 20_000}")
    (group,) = (
        group for group in find_groups("body", [ours, theirs], bodies=True) if "fail" in group.what
    )
    assert group.where == ""
    (group,) = (
        group
        for group in find_groups("body", [ours, elsewhere], bodies=True)
        if "fail" in group.what
    )
    assert select_messages(group.where, [ours, elsewhere]) == [ours]


def test_error_texts_that_differ_only_in_numbers_and_ids_form_one_group() -> None:
    def failing(n: int, text: str) -> Message:
        return message(f"m-{n}", attributes={"ERROR_MESSAGE": MessageAttribute("String", text)})

    sample = [failing(n, f"Order {n} timed out after {n * 7} ms") for n in range(30)]
    sample += [failing(30, "declined"), failing(31, f"id {'a1' * 16} unknown\n  at line 7")]
    found = {group.what: len(group.messages) for group in find_groups("error", sample)}
    assert found == {
        "ERROR_MESSAGE: Order # timed out after # ms": 30,
        "ERROR_MESSAGE: declined": 1,
        "ERROR_MESSAGE: id # unknown": 1,
    }
