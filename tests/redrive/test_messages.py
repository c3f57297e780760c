"""Marks on DLQ messages, and how a redrive classifies a message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mendq.redrive.messages import (
    MAXIMUM_COUNTED_REDRIVES,
    QUARANTINE_MARK_NAME,
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
    QuarantineMark,
    RedriveMarker,
    read_quarantine_mark,
)
from mendq.redrive.progress import DlqSample, classify_messages
from tests.redrive.toy import DEAD, MARKER, MOST_BYTES, NOW, SOURCE, begin_progress, message, queue

OLD = message("old", attributes={"kind": MessageAttribute("String", "order")})
NEW = message("new", sent_at=NOW + timedelta(minutes=10))
MARK: dict[str, Any] = {"why": "x", "at": "x", "source": "x", "case": "x", "redrive_count": 1}
SENT: dict[str, Any] = {"source": SOURCE, "redrive": "case", "redrive_count": 3}
OTHER = f"{SOURCE}-2"


def make_marked_message(name: str, value: object, data_type: str = "String") -> Message:
    """Return a message with a mark that any sender could write."""
    given: Any = value if isinstance(value, str | bytes) else json.dumps(value)
    return replace(OLD, attributes={**OLD.attributes, name: MessageAttribute(data_type, given)})


def quarantine_message(of: Message, why: str = "it came back") -> Message:
    return RedriveMarker(SOURCE, "case-1", b"").mark_quarantined(of, why, NOW)


def test_redrive_count_grows_with_every_redrive_even_out_of_quarantine() -> None:
    twice = MARKER.mark_redriven(MARKER.mark_redriven(OLD))
    assert (MARKER.mark_redriven(OLD).redrive_count, twice.redrive_count) == (1, 2)
    apart = quarantine_message(twice)
    assert set(apart.attributes) == {"kind", QUARANTINE_MARK_NAME}
    said = QuarantineMark("it came back", NOW.isoformat(), SOURCE, "case-1", 2)
    assert read_quarantine_mark(apart) == said
    back = MARKER.mark_redriven(apart)
    assert (back.redrive_count, set(back.attributes)) == (3, {"kind", REDRIVE_MARK_NAME})


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        *(({**SENT, "redrive_count": count}, "String") for count in ("3", -3, True)),
        ({**SENT, "source": OTHER}, "String"),
        ("3", "Number"),
        (b"3", "Binary"),
    ],
)
def test_redrive_count_is_zero_if_the_mark_is_malformed_or_of_another_source(
    value: object, data_type: str
) -> None:
    assert make_marked_message(REDRIVE_MARK_NAME, value, data_type).redrive_count == 0
    assert make_marked_message(REDRIVE_MARK_NAME, SENT).redrive_count == 3


RETURNED = MARKER.mark_redriven(OLD)


def copy_attributes(mark: Message, body: str = "another", **over: Any) -> Message:
    """Return another message with the attributes of `mark`."""
    return replace(OLD, body=body, attributes=mark.attributes, **over)


@pytest.mark.parametrize(
    ("of", "is_known"),
    [
        (RETURNED, True),
        # Its consumer sent a new message to the DLQ. SQS names no source for it.
        (copy_attributes(RETURNED, OLD.body, message_id="parked", source_arn=None), True),
        (MARKER.mark_redriven(RETURNED), True),
        (copy_attributes(RETURNED, OLD.body, source_arn=OTHER), False),
        (copy_attributes(RETURNED), False),
        (copy_attributes(RETURNED, source_arn=None), False),
        *((RedriveMarker(*given).mark_redriven(OLD), False) for given in (
            (SOURCE, "case", b"no key of its"),
            (SOURCE, "another case", MARKER.seal_key),
            (OTHER, "case", MARKER.seal_key),
        )),
        *((make_marked_message(REDRIVE_MARK_NAME, {**SENT, "seal": seal}), False)
          for seal in ("", "é", "\ud800")),
        (make_marked_message(REDRIVE_MARK_NAME, SENT), False),
        (OLD, False),
    ],
)  # fmt: skip
def test_redrive_mark_is_recognized_only_for_its_own_queue_redrive_and_body(
    of: Message, *, is_known: bool
) -> None:
    """Otherwise a sender that forges attributes could have good messages quarantined."""
    assert MARKER.recognizes(of) is is_known
    assert not classify([of]).returned_messages or is_known


@given(
    st.sampled_from(["", "null", "[]", "{" * 2_000, '{"redrive_count": ' + "9" * 5_000 + "}"])
    | st.text()
    | st.binary()
    | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps)
)
def test_malformed_quarantine_mark_is_ignored_and_removed_by_a_redrive(text: str | bytes) -> None:
    odd = make_marked_message(
        QUARANTINE_MARK_NAME, text, "Binary" if isinstance(text, bytes) else "String"
    )
    assert read_quarantine_mark(odd) is None
    back = MARKER.mark_redriven(odd)
    assert (back.redrive_count, set(back.attributes)) == (1, {"kind", REDRIVE_MARK_NAME})


@given(
    st.text(st.characters(codec="utf-8")),
    st.integers(0) | st.integers(MAXIMUM_COUNTED_REDRIVES - 1, MAXIMUM_COUNTED_REDRIVES + 1),
)
def test_quarantine_mark_round_trips_and_redrive_count_stops_at_its_maximum(
    why: str, redrive_count: int
) -> None:
    """Any sender to the quarantine can write any number there."""
    found = read_quarantine_mark(
        quarantine_message(make_marked_message(REDRIVE_MARK_NAME, SENT), why)
    )
    assert found is not None
    assert (found.why, found.redrive_count) == (why[:512], 3)
    for name, mark in ((QUARANTINE_MARK_NAME, MARK), (REDRIVE_MARK_NAME, SENT)):
        back = MARKER.mark_redriven(
            make_marked_message(name, {**mark, "redrive_count": redrive_count})
        )
        assert back.redrive_count == min(redrive_count + 1, MAXIMUM_COUNTED_REDRIVES)


def classify(messages: Iterable[Message], *, is_fifo: bool = False) -> DlqSample:
    source = queue(f"{SOURCE}{'.fifo' * is_fifo}")
    return classify_messages(messages, begin_progress(), source, MARKER)


ROOM = MARKER.mark_redriven(message("x", body="")).size_bytes
LONGEST = message("x", body="é" * ((MOST_BYTES - ROOM) // 2))
STRANGERS = [
    message("stranger", source_arn=source_arn) for source_arn in (None, "", DEAD, f"{SOURCE}-2")
]
NINE = {f"a{n}": MessageAttribute("String", "x") for n in range(9)}
TEN = {**NINE, "a9": NINE["a0"]}


@pytest.mark.parametrize(
    ("each", "standing"),
    [
        (OLD, "waits"),
        (message("at once", sent_at=NOW), "waits"),
        (NEW, "newly dead"),
        (RETURNED, "returned"),
        (MARKER.mark_redriven(quarantine_message(RETURNED)), "returned"),
        (LONGEST, "waits"),
        # No mark fits, so a redrive could not recognize this message if it returned.
        (replace(LONGEST, body=f"{LONGEST.body}é"), "stuck"),
        (message("full", attributes=TEN), "stuck"),
        (message("nine", attributes=NINE), "waits"),
        (MARKER.mark_redriven(message("x", body="x" * (MOST_BYTES + 1))), "returned"),
        *((stranger, "stuck") for stranger in STRANGERS),
        *((MARKER.mark_redriven(stranger), "stuck") for stranger in STRANGERS[2:]),
        *((MARKER.mark_redriven(stranger), "returned") for stranger in STRANGERS[:2]),
    ],
)
@pytest.mark.parametrize("is_fifo", [False, True])
def test_dlq_message_is_classified_as_waiting_newly_dead_returned_or_stuck(
    each: Message, standing: str, *, is_fifo: bool
) -> None:
    found = classify([each], is_fifo=is_fifo)
    counts = {
        "returned": len(found.returned_messages),
        "stuck": len(found.staying_messages),
        "newly dead": found.newly_dead_count,
        "waits": len(found.sendable_messages) - found.newly_dead_count,
    }
    assert {name for name, number in counts.items() if number} == {standing}
    assert found.message_count == 1


def test_fifo_messages_behind_a_stuck_message_stay_and_other_groups_are_sendable() -> None:
    messages = [
        message("a1", group_id="a", source_arn=None),
        message("b1", group_id="b"),
        message("a2", group_id="a"),
        MARKER.mark_redriven(message("a3", group_id="a")),
    ]
    fifo = classify(messages, is_fifo=True)
    standard = classify(messages)
    assert [sendable_message.body for sendable_message in fifo.sendable_messages] == ["b1"]
    assert [staying_message.body for staying_message in fifo.staying_messages] == ["a1", "a2"]
    assert [returned_message.body for returned_message in fifo.returned_messages] == ["a3"]
    assert [sorted_message.body for sorted_message in standard.sendable_messages] == ["b1", "a2"]
    assert [sorted_message.body for sorted_message in standard.staying_messages] == ["a1"]


@pytest.mark.parametrize(
    "over",
    [
        *({"redrive_count": count} for count in ("1", True, -1, 1.0)),
        {"why": None},
        {"why": "x" * 9_000},
    ],
)
def test_quarantine_mark_with_invalid_fields_is_not_read(over: dict[str, object]) -> None:
    assert read_quarantine_mark(make_marked_message(QUARANTINE_MARK_NAME, MARK)) is not None
    assert read_quarantine_mark(make_marked_message(QUARANTINE_MARK_NAME, {**MARK, **over})) is None
