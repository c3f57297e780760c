"""Marks on DLQ messages, and how a redrive classifies a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mendq.model.facts import Facts
from mendq.model.seal import SealKey
from mendq.redrive.messages import (
    MAXIMUM_COUNTED_REDRIVES,
    QUARANTINE_MARK_NAME,
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
    QuarantineMark,
    RedriveMarker,
    is_quarantine_mark_sealed,
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


SEAL_KEY = SealKey(b"the quarantine's")


def quarantine_message(of: Message, why: str = "it came back") -> Message:
    return RedriveMarker(SOURCE, "case-1", SealKey(b"")).mark_quarantined(of, why, NOW, SEAL_KEY)


def test_redrive_count_grows_with_every_redrive_even_out_of_quarantine() -> None:
    once = MARKER.mark_redriven(OLD)
    twice = MARKER.mark_redriven(once)
    out_of_quarantine = MARKER.mark_redriven(quarantine_message(twice))
    counts = [marked.redrive_count for marked in (OLD, once, twice, out_of_quarantine)]
    assert counts == [0, 1, 2, 3]


def test_quarantine_mark_replaces_the_redrive_mark_and_a_later_redrive_does_the_reverse() -> None:
    in_quarantine = quarantine_message(MARKER.mark_redriven(OLD))
    assert set(in_quarantine.attributes) == {"kind", QUARANTINE_MARK_NAME}
    back = MARKER.mark_redriven(in_quarantine)
    assert set(back.attributes) == {"kind", REDRIVE_MARK_NAME}


def test_quarantine_mark_names_reason_time_source_case_and_redrive_count() -> None:
    in_quarantine = quarantine_message(MARKER.mark_redriven(OLD))
    mark = read_quarantine_mark(in_quarantine)
    assert mark is not None
    assert replace(mark, seal="") == QuarantineMark(
        why="it came back", at=NOW.isoformat(), source=SOURCE, case="case-1", redrive_count=1
    )


def make_changed_mark(message: Message, **changes: object) -> Message:
    """Return a quarantined message with these fields of its mark changed, and the same seal."""
    mark = json.loads(str(message.attributes[QUARANTINE_MARK_NAME].value))
    attribute = MessageAttribute("String", json.dumps({**mark, **changes}))
    return replace(message, attributes={**message.attributes, QUARANTINE_MARK_NAME: attribute})


def test_seal_of_the_quarantine_holds_for_the_message_that_mendq_sent_there() -> None:
    sealed = quarantine_message(MARKER.mark_redriven(OLD))
    assert is_quarantine_mark_sealed(sealed, SEAL_KEY)
    received_again = replace(sealed, message_id="another", sent_at=NOW, receive_count=9)
    assert is_quarantine_mark_sealed(received_again, SEAL_KEY)
    assert not is_quarantine_mark_sealed(OLD, SEAL_KEY)


@pytest.mark.parametrize(
    "forge",
    [
        lambda sealed: replace(sealed, body="another"),
        lambda sealed: replace(sealed, group_id="another"),
        lambda sealed: replace(
            sealed, attributes={**sealed.attributes, "more": MessageAttribute("String", "x")}
        ),
        lambda sealed: replace(
            sealed, attributes={**sealed.attributes, "kind": MessageAttribute("Binary", b"order")}
        ),
        lambda sealed: replace(
            sealed,
            attributes={
                **sealed.attributes,
                REDRIVE_MARK_NAME: MessageAttribute("String", json.dumps(SENT)),
            },
        ),
        lambda sealed: make_changed_mark(sealed, source=OTHER),
        lambda sealed: make_changed_mark(sealed, redrive_count=0),
        lambda sealed: make_changed_mark(sealed, seal=""),
        lambda sealed: make_changed_mark(sealed, seal="\ud800é"),
    ],
)
def test_seal_of_the_quarantine_does_not_hold_for_a_message_that_differs(
    forge: Callable[[Message], Message],
) -> None:
    forged = forge(quarantine_message(MARKER.mark_redriven(OLD)))
    assert read_quarantine_mark(forged) is not None
    assert not is_quarantine_mark_sealed(forged, SEAL_KEY)


def test_seal_of_another_quarantine_does_not_hold() -> None:
    sealed = quarantine_message(MARKER.mark_redriven(OLD))
    assert not is_quarantine_mark_sealed(sealed, SealKey(b"another quarantine's"))


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


# Its consumer sent a new message with the same attributes to the DLQ. SQS names no source for it.
SENT_BY_CONSUMER = copy_attributes(RETURNED, OLD.body, message_id="parked", source_arn=None)


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(RETURNED, id="returned by SQS"),
        pytest.param(SENT_BY_CONSUMER, id="sent to the DLQ by its consumer"),
        pytest.param(MARKER.mark_redriven(RETURNED), id="redriven twice"),
    ],
)
def test_message_of_the_redrive_that_returned_to_the_dlq_is_recognized(returned: Message) -> None:
    assert MARKER.recognizes(returned)


FOREIGN_MARKS = {
    "died in another source": copy_attributes(RETURNED, OLD.body, source_arn=OTHER),
    "another body": copy_attributes(RETURNED),
    "another body without a source": copy_attributes(RETURNED, source_arn=None),
    "another key": RedriveMarker(SOURCE, "case", SealKey(b"no key of its")).mark_redriven(OLD),
    "another case": RedriveMarker(SOURCE, "another case", MARKER.seal_key).mark_redriven(OLD),
    "another source": RedriveMarker(OTHER, "case", MARKER.seal_key).mark_redriven(OLD),
    "empty seal": make_marked_message(REDRIVE_MARK_NAME, {**SENT, "seal": ""}),
    "seal not in ASCII": make_marked_message(REDRIVE_MARK_NAME, {**SENT, "seal": "é"}),
    "seal not in Unicode": make_marked_message(REDRIVE_MARK_NAME, {**SENT, "seal": "\ud800"}),
    "no seal": make_marked_message(REDRIVE_MARK_NAME, SENT),
    "no mark": OLD,
}


@pytest.mark.parametrize("name", FOREIGN_MARKS)
def test_message_with_a_forged_or_foreign_redrive_mark_does_not_count_as_returned(
    name: str,
) -> None:
    """Otherwise a sender that forges attributes could have good messages quarantined."""
    message_in_dlq = FOREIGN_MARKS[name]
    assert not MARKER.recognizes(message_in_dlq)
    assert classify([message_in_dlq]).returned_messages == ()


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


@given(st.text(st.characters(codec="utf-8")))
def test_quarantine_mark_keeps_the_first_512_characters_of_any_reason(why: str) -> None:
    mark = read_quarantine_mark(quarantine_message(OLD, why))
    assert mark is not None
    assert mark.why == why[:512]


@given(st.integers(0) | st.integers(MAXIMUM_COUNTED_REDRIVES - 1, MAXIMUM_COUNTED_REDRIVES + 1))
def test_redrive_count_grows_by_one_and_stops_at_its_maximum_for_any_marked_number(
    redrive_count: int,
) -> None:
    """Any sender to the quarantine can write any number there."""
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


QUEUE_TYPES = pytest.mark.parametrize("is_fifo", [False, True], ids=["standard", "FIFO"])


@QUEUE_TYPES
@pytest.mark.parametrize(
    "sendable",
    [
        OLD,
        message("as the redrive began", sent_at=NOW),
        pytest.param(LONGEST, id="as long as the mark allows"),
        message("nine attributes", attributes=NINE),
    ],
    ids=lambda sendable: sendable.message_id,
)
def test_message_in_the_dlq_before_the_redrive_with_room_for_its_mark_is_sendable(
    sendable: Message, *, is_fifo: bool
) -> None:
    sample = classify([sendable], is_fifo=is_fifo)
    assert sample == DlqSample(sendable_messages=(sendable,))


@QUEUE_TYPES
def test_message_that_reached_the_dlq_during_the_redrive_is_sendable_and_counts_as_newly_dead(
    *, is_fifo: bool
) -> None:
    sample = classify([NEW], is_fifo=is_fifo)
    assert sample == DlqSample(sendable_messages=(NEW,), newly_dead_count=1)


# Their own source is not known: a consumer can have sent them to the DLQ with their mark.
WITHOUT_SOURCE = STRANGERS[:2]
OF_OTHER_SOURCES = STRANGERS[2:]


@QUEUE_TYPES
@pytest.mark.parametrize(
    "returned",
    [
        RETURNED,
        MARKER.mark_redriven(quarantine_message(RETURNED)),
        pytest.param(
            MARKER.mark_redriven(message("x", body="x" * (MOST_BYTES + 1))), id="too long to send"
        ),
        *(MARKER.mark_redriven(stranger) for stranger in WITHOUT_SOURCE),
    ],
)
def test_message_with_the_mark_of_the_redrive_is_classified_as_returned(
    returned: Message, *, is_fifo: bool
) -> None:
    sample = classify([returned], is_fifo=is_fifo)
    assert sample == DlqSample(returned_messages=(returned,))


@QUEUE_TYPES
@pytest.mark.parametrize(
    "stays",
    [
        pytest.param(replace(LONGEST, body=f"{LONGEST.body}é"), id="too long for the mark"),
        pytest.param(message("full", attributes=TEN), id="ten attributes"),
        *STRANGERS,
        *(MARKER.mark_redriven(stranger) for stranger in OF_OTHER_SOURCES),
    ],
)
def test_message_without_room_for_the_mark_or_not_of_this_source_stays_in_the_dlq(
    stays: Message, *, is_fifo: bool
) -> None:
    """A redrive could not recognize a message without its mark if it returned."""
    sample = classify([stays], is_fifo=is_fifo)
    assert sample == DlqSample(staying_messages=(stays,))


@pytest.mark.parametrize(
    ("seconds_after_creation", "is_sendable"), [(-1, False), (0, True), (1, True)]
)
def test_message_that_is_older_than_the_source_stays_in_the_dlq(
    seconds_after_creation: int, *, is_sendable: bool
) -> None:
    """It died in an earlier queue of that name."""
    created_at = datetime.fromtimestamp(1_767_000_000, UTC)
    attributes = {**queue(SOURCE).attributes, "CreatedTimestamp": "1767000000"}
    source = Facts(SOURCE, attributes, {})
    dead = message("dead", sent_at=created_at + timedelta(seconds=seconds_after_creation))
    sample = classify_messages([dead], begin_progress(), source, MARKER)
    assert bool(sample.sendable_messages) == is_sendable
    assert bool(sample.staying_messages) != is_sendable


def test_messages_behind_one_that_stays_stay_in_its_fifo_group_but_not_in_a_standard_dlq() -> None:
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
