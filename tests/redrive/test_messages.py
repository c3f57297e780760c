"""What is known of a DLQ message, and the marks that it bears."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.messages import MOST_ATTRIBUTES, REDRIVE_COUNT, Message, MessageAttribute

SENT_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
MESSAGE = Message("m-1", "body", SENT_AT)
ONE_HOP = MessageAttribute("Number", "1")


def _with(count: int) -> Message:
    named = {f"a{n}": MessageAttribute("String", "x") for n in range(count)}
    return replace(MESSAGE, attributes=named)


@pytest.mark.parametrize(
    ("mark", "redrive_count"),
    [
        (MessageAttribute("String", "3"), 0),
        (MessageAttribute("Number", "-3"), 0),
        (MessageAttribute("Number", "1e3"), 0),
        (MessageAttribute("Number", "٣"), 0),
        (MessageAttribute("Number", "9" * 5_000), 0),
        (MessageAttribute("Number", ""), 0),
        (MessageAttribute("Binary", b"3"), 0),
        (MessageAttribute("Number", "3"), 3),
    ],
)
def test_only_a_count_of_ours_is_a_hop(mark: MessageAttribute, redrive_count: int) -> None:
    assert MESSAGE.marked(REDRIVE_COUNT, mark).redrive_count == redrive_count


def test_a_message_without_the_mark_was_never_sent_back() -> None:
    assert MESSAGE.redrive_count == 0


def test_the_eleventh_attribute_has_no_room_but_another_value_of_one_has() -> None:
    full = _with(MOST_ATTRIBUTES)
    assert not full.can_bear(REDRIVE_COUNT, ONE_HOP, 1_048_576)
    assert full.can_bear("a0", ONE_HOP, 1_048_576)
    assert _with(MOST_ATTRIBUTES - 1).can_bear(REDRIVE_COUNT, ONE_HOP, 1_048_576)


def test_a_mark_counts_in_the_size() -> None:
    marked_bytes = len("body") + len(REDRIVE_COUNT) + len("Number") + len("1")
    assert MESSAGE.marked(REDRIVE_COUNT, ONE_HOP).size_bytes == marked_bytes
    assert MESSAGE.can_bear(REDRIVE_COUNT, ONE_HOP, marked_bytes)
    assert not MESSAGE.can_bear(REDRIVE_COUNT, ONE_HOP, marked_bytes - 1)


def test_a_size_is_counted_in_bytes() -> None:
    assert replace(MESSAGE, body="größer").size_bytes == len("größer".encode())


def test_attributes_leave_the_fingerprint_as_it_is() -> None:
    assert MESSAGE.marked(REDRIVE_COUNT, ONE_HOP).fingerprint == MESSAGE.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        replace(MESSAGE, body="another"),
        replace(MESSAGE, group_id="g"),
        MESSAGE.marked("kind", MessageAttribute("String", "x")),
    ],
)
def test_what_a_sender_said_makes_the_fingerprint(other: Message) -> None:
    assert other.fingerprint != MESSAGE.fingerprint


def test_a_copy_has_the_fingerprint_of_its_original() -> None:
    copy = replace(MESSAGE, message_id="m-2", sent_at=SENT_AT.replace(hour=13), receive_count=4)
    assert copy.fingerprint == MESSAGE.fingerprint


TEXTS = st.text(st.characters(codec="utf-8"))


@given(TEXTS, st.dictionaries(TEXTS, TEXTS | st.binary()))
def test_any_text_has_a_size_and_a_fingerprint(body: str, given_values: dict[str, str]) -> None:
    attributes = {name: MessageAttribute("String", each) for name, each in given_values.items()}
    message = replace(MESSAGE, body=body, attributes=attributes)
    assert message.size_bytes >= len(body)
    assert len(message.fingerprint) == 32
