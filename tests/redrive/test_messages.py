"""What is known of a DLQ message, the marks that it bears, and what it is to a redrive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from mendq.redrive.messages import (
    LONGEST_NUMBER,
    MOST_REDRIVES,
    QUARANTINED,
    REDRIVE_COUNT,
    Message,
    MessageAttribute,
    QuarantineMark,
    hopped,
    marked_quarantined,
    quarantine_reason,
)
from mendq.redrive.progress import DlqSample, sample_of
from tests.redrive.toy import DEAD, MOST_BYTES, NOW, SOURCE, begun, message, queue

OLD = message("old", attributes={"kind": MessageAttribute("String", "order")})
NEW = message("new", sent_at=NOW + timedelta(minutes=10))
MARK: dict[str, Any] = {"why": "x", "at": "x", "source": "x", "case": "x", "redrive_count": 1}


def counted(value: str | bytes, data_type: str = "Number") -> Message:
    return OLD.marked(REDRIVE_COUNT, MessageAttribute(data_type, value))


def retained(of: Message, why: str = "it came back") -> Message:
    return marked_quarantined(of, why, at=NOW, source_arn=SOURCE, case_id="case-1")


def forged(value: str | bytes, data_type: str = "String") -> Message:
    return OLD.marked(QUARANTINED, MessageAttribute(data_type, value))


def test_every_way_back_is_counted_even_out_of_the_quarantine() -> None:
    twice = hopped(hopped(OLD))
    assert (hopped(OLD).redrive_count, twice.redrive_count) == (1, 2)
    apart = retained(twice)
    assert set(apart.attributes) == {"kind", QUARANTINED}
    said = QuarantineMark("it came back", NOW.isoformat(), SOURCE, "case-1", 2)
    assert quarantine_reason(apart) == said
    back = hopped(apart)
    assert (back.redrive_count, set(back.attributes)) == (3, {"kind", REDRIVE_COUNT})


@pytest.mark.parametrize(
    ("value", "data_type"),
    [("3", "String"), ("-3", "Number"), ("٣", "Number"), ("9" * 5_000, "Number"), (b"3", "Binary")],
)
def test_a_senders_own_word_in_the_marks_place_is_no_count(
    value: str | bytes, data_type: str
) -> None:
    assert counted(value, data_type).redrive_count == 0
    assert counted("3").redrive_count == 3


@pytest.mark.parametrize(
    "over",
    [
        *({"redrive_count": each} for each in ("1", True, -1, 1.0)),
        {"why": None},
        {"why": "x" * 9_000},
    ],
)
def test_a_mark_that_is_not_ours_says_nothing(over: dict[str, object]) -> None:
    assert quarantine_reason(forged(json.dumps(MARK))) is not None
    assert quarantine_reason(forged(json.dumps({**MARK, **over}))) is None


@given(
    st.sampled_from(["", "null", "[]", "{" * 2_000, '{"redrive_count": ' + "9" * 5_000 + "}"])
    | st.text()
    | st.binary()
    | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps)
)
def test_what_is_no_mark_is_taken_off_like_one(text: str | bytes) -> None:
    odd = forged(text, "Binary" if isinstance(text, bytes) else "String")
    assert quarantine_reason(odd) is None
    back = hopped(odd)
    assert (back.redrive_count, set(back.attributes)) == (1, {"kind", REDRIVE_COUNT})


@given(
    st.text(st.characters(codec="utf-8")),
    st.integers(0) | st.integers(MOST_REDRIVES - 1, MOST_REDRIVES + 1),
)
def test_what_is_written_is_read_and_no_count_grows_until_it_reads_as_none(
    why: str, redrive_count: int
) -> None:
    """Whoever may send to the quarantine may write any number there."""
    found = quarantine_reason(retained(counted("3"), why))
    assert found is not None
    assert (found.why, found.redrive_count) == (why[:512], 3)
    mark = asdict(QuarantineMark("x", "x", SOURCE, "x", redrive_count))
    back = hopped(forged(json.dumps(mark)))
    assert len(str(back.attributes[REDRIVE_COUNT].value)) <= LONGEST_NUMBER
    assert back.redrive_count == min(redrive_count + 1, MOST_REDRIVES)
    assert hopped(counted(str(MOST_REDRIVES))).redrive_count == MOST_REDRIVES


def sample(messages: Iterable[Message], *, is_fifo: bool = False) -> DlqSample:
    source = queue(f"{SOURCE}{'.fifo' * is_fifo}")
    return sample_of(messages, begun(), source, is_whole=True)


ROOM = len(REDRIVE_COUNT) + len("Number") + len("1")
LONGEST = message("x", body="é" * ((MOST_BYTES - ROOM) // 2))
STRANGERS = [message("stranger", source_arn=each) for each in (None, "", DEAD, f"{SOURCE}-2")]
TEN = {f"a{n}": MessageAttribute("String", "x") for n in range(10)}


@pytest.mark.parametrize(
    ("each", "standing"),
    [
        (OLD, "waits"),
        (message("at once", sent_at=NOW), "waits"),
        (NEW, "newly dead"),
        (hopped(OLD), "returned"),
        (hopped(retained(hopped(OLD))), "returned"),
        (LONGEST, "waits"),
        # No mark fits: nobody could tell it from others when it came back.
        (replace(LONGEST, body=f"{LONGEST.body}é"), "stuck"),
        (message("full", attributes=TEN), "stuck"),
        (message("full", attributes={**TEN, "a0": TEN["a0"]}).without("a0"), "waits"),
        (hopped(message("x", body="x" * (MOST_BYTES + 1))), "returned"),
        *((each, "stuck") for each in STRANGERS),
        *((hopped(each), "stuck") for each in STRANGERS),
    ],
)
@pytest.mark.parametrize("is_fifo", [False, True])
def test_what_a_message_is_to_a_redrive(each: Message, standing: str, *, is_fifo: bool) -> None:
    found = sample([each], is_fifo=is_fifo)
    counts = {
        "returned": len(found.returned),
        "stuck": found.stuck,
        "newly dead": found.newly_dead,
        "waits": len(found.waiting) - found.newly_dead,
    }
    assert {name for name, number in counts.items() if number} == {standing}
    assert found.seen == 1


def test_behind_a_stuck_message_its_fifo_group_waits_and_others_do_not() -> None:
    messages = [
        message("a1", group_id="a", source_arn=None),
        message("b1", group_id="b"),
        message("a2", group_id="a"),
        hopped(message("a3", group_id="a")),
    ]
    fifo, standard = sample(messages, is_fifo=True), sample(messages)
    assert ([each.body for each in fifo.waiting], fifo.stuck) == (["b1"], 2)
    assert [each.body for each in fifo.returned] == ["a3"]
    assert ([each.body for each in standard.waiting], standard.stuck) == (["b1", "a2"], 1)
