"""What is known of a DLQ message, the marks that it bears, and what it is to a redrive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.machine import sampled, settled
from mendq.redrive.messages import (
    LONGEST_NUMBER,
    MOST_ATTRIBUTES,
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
from mendq.redrive.progress import DlqSample, RedriveProgress, RedriveQueues, sample_of
from tests.redrive.toy import DEAD, MOST_BYTES, NOW, SOURCE, message

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
    assert quarantine_reason(OLD) is None
    back = hopped(apart)
    assert (back.redrive_count, set(back.attributes)) == (3, {"kind", REDRIVE_COUNT})


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ("3", "String"),
        ("-3", "Number"),
        ("1e3", "Number"),
        ("٣", "Number"),
        ("9" * 5_000, "Number"),
        ("", "Number"),
        (b"3", "Binary"),
    ],
)
def test_a_senders_own_word_in_the_marks_place_is_no_count(
    value: str | bytes, data_type: str
) -> None:
    assert counted(value, data_type).redrive_count == 0
    assert counted("3").redrive_count == 3


def test_a_mark_has_room_where_sqs_takes_it() -> None:
    full = replace(OLD, attributes={f"a{n}": counted("1").attributes["kind"] for n in range(10)})
    assert len(full.attributes) == MOST_ATTRIBUTES
    assert full.fits(MOST_BYTES)
    assert not hopped(full).fits(MOST_BYTES)
    assert hopped(full.without("a0")).fits(MOST_BYTES)
    bare = message("größer")
    size = len("größer".encode()) + len(REDRIVE_COUNT) + len("Number") + len("1")
    assert hopped(bare).size_bytes == size
    assert (hopped(bare).fits(size), hopped(bare).fits(size - 1)) == (True, False)


@pytest.mark.parametrize(
    "other",
    [
        replace(OLD, body="another"),
        replace(OLD, group_id="g"),
        OLD.without("kind"),
        OLD.marked("kind", MessageAttribute("String", "x")),
    ],
)
def test_what_a_sender_said_makes_the_fingerprint_and_nothing_else(other: Message) -> None:
    assert other.fingerprint != OLD.fingerprint
    copy = replace(OLD, message_id="m-2", sent_at=NOW, receive_count=4)
    assert {copy.fingerprint, hopped(OLD).fingerprint} == {OLD.fingerprint}


@pytest.mark.parametrize(
    "over",
    [
        *({"redrive_count": each} for each in ("1", True, -1, 1.0)),
        {"why": 1},
        {"why": None},
        {"why": "x" * 9_000},
    ],
)
def test_a_mark_that_is_not_ours_says_nothing(over: dict[str, object]) -> None:
    assert quarantine_reason(forged(json.dumps(MARK))) is not None
    assert quarantine_reason(forged(json.dumps({**MARK, **over}))) is None


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", "{" * 2_000, b"{}", '{"redrives": ' + "9" * 5_000 + "}"]
)
def test_what_is_no_mark_is_taken_off_like_one(text: str | bytes) -> None:
    odd = forged(text, "Binary" if isinstance(text, bytes) else "String")
    assert quarantine_reason(odd) is None
    back = hopped(odd)
    assert (back.redrive_count, set(back.attributes)) == (1, {"kind", REDRIVE_COUNT})


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_no_text_raises(value: str) -> None:
    quarantine_reason(forged(value))
    hopped(forged(value))


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 40))
def test_what_is_written_is_read(why: str, redrive_count: int) -> None:
    found = quarantine_reason(retained(counted(str(redrive_count)), why))
    assert found is not None
    assert (found.why, found.redrive_count) == (why[:512], redrive_count)


@given(st.integers(0) | st.integers(MOST_REDRIVES - 1, MOST_REDRIVES + 1))
def test_no_count_grows_until_it_reads_as_none(redrive_count: int) -> None:
    """Whoever may send to the quarantine may write any number there."""
    mark = asdict(QuarantineMark("x", "x", SOURCE, "x", redrive_count))
    back = hopped(forged(json.dumps(mark)))
    assert len(str(back.attributes[REDRIVE_COUNT].value)) <= LONGEST_NUMBER
    assert back.redrive_count == min(redrive_count + 1, MOST_REDRIVES)
    assert hopped(counted(str(MOST_REDRIVES))).redrive_count == MOST_REDRIVES


def progress(**over: Any) -> RedriveProgress:
    made = RedriveProgress.begun("case", RedriveQueues(DEAD, SOURCE), size=5, now=NOW)
    return replace(made, **over)


def sample(messages: Iterable[Message], *, is_fifo: bool = False, **over: Any) -> DlqSample:
    return sample_of(
        messages, progress(**over), is_fifo=is_fifo, most_bytes=MOST_BYTES, is_whole=True
    )


LONG, LONGEST = message("x", body="x" * (MOST_BYTES + 1)), message("x", body="x" * MOST_BYTES)
STRANGERS = [message("stranger", source_arn=each) for each in (None, "", DEAD, f"{SOURCE}-2")]


@pytest.mark.parametrize(
    ("each", "fingerprints", "standing"),
    [
        (OLD, (), "waits"),
        (message("at once", sent_at=NOW), (), "waits"),
        (NEW, (), "newly dead"),
        (NEW, (NEW,), "returned"),
        (NEW, (OLD,), "newly dead"),
        (OLD, (OLD,), "waits"),
        (hopped(OLD), (), "returned"),
        (hopped(retained(hopped(OLD))), (), "returned"),
        (LONGEST, (), "waits"),
        (LONG, (), "stuck"),
        (hopped(LONG), (), "returned"),
        *((each, (), "stuck") for each in STRANGERS),
        *((hopped(each), (each,), "stuck") for each in STRANGERS),
    ],
)
@pytest.mark.parametrize("is_fifo", [False, True])
def test_what_a_message_is_to_a_redrive(
    each: Message, fingerprints: tuple[Message, ...], standing: str, *, is_fifo: bool
) -> None:
    known = tuple(one.fingerprint for one in fingerprints)
    found = sample([each], is_fifo=is_fifo, fingerprints=known)
    counts = {
        "returned": len(found.returned),
        "stuck": found.stuck,
        "newly dead": found.newly_dead,
        "waits": len(found.waiting) - found.newly_dead,
    }
    assert {name for name, number in counts.items() if number} == {standing}
    assert found.seen == 1


def test_no_more_are_back_by_a_fingerprint_than_went() -> None:
    same = [replace(NEW, message_id=f"copy {number}") for number in range(5)]
    fingerprints = (NEW.fingerprint, OLD.fingerprint, NEW.fingerprint)
    found = sample(same, fingerprints=fingerprints)
    assert (len(found.returned), found.newly_dead) == (2, 3)
    assert found.known == (NEW.fingerprint,) * 2
    opened = sampled(progress(fingerprints=fingerprints, is_opened=True), found)
    after = settled(opened, replace(found, quarantined=2), 3)
    assert after.fingerprints == (OLD.fingerprint,)
    assert settled(opened, replace(found, quarantined=1), 3).fingerprints == fingerprints


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
