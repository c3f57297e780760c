"""The marks say what we wrote, and nothing that somebody else wrote makes them raise."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.messages import (
    LONGEST_NUMBER,
    MOST_REDRIVES,
    QUARANTINED,
    REDRIVE_COUNT,
    Message,
    MessageAttribute,
    Resources,
    hopped,
    marked_quarantined,
    quarantine_reason,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
OTHERS = {"kind": MessageAttribute("String", "order")}


def message(**attributes: MessageAttribute) -> Message:
    return Message("m-1", "body", AT, attributes=OTHERS | attributes)


def retained(of: Message, why: str = "it came back") -> Message:
    return marked_quarantined(of, why, at=AT, source_arn=SOURCE, case_id="case-1")


def text(value: str, data_type: str = "String") -> Message:
    return message(**{QUARANTINED: MessageAttribute(data_type, value)})


def test_every_way_back_is_a_hop() -> None:
    once = hopped(message())
    assert once.redrive_count == 1
    assert hopped(once).redrive_count == 2
    assert once.attributes["kind"] == OTHERS["kind"]


def test_the_quarantine_stands_in_the_place_of_the_redrive_count() -> None:
    apart = retained(hopped(hopped(message())))
    assert set(apart.attributes) == {"kind", QUARANTINED}
    assert quarantine_reason(apart) == Resources(
        "it came back", AT.isoformat(), SOURCE, "case-1", 2
    )


def test_the_way_out_of_the_quarantine_counts_on() -> None:
    back = hopped(retained(hopped(hopped(message()))))
    assert back.redrive_count == 3
    assert set(back.attributes) == {"kind", REDRIVE_COUNT}


def test_of_a_message_that_was_not_retained_apart_nothing_is_said() -> None:
    assert quarantine_reason(message()) is None


def test_a_long_reason_is_cut_and_read_again() -> None:
    found = quarantine_reason(retained(message(), "é\u2028" * 5_000))
    assert found is not None
    assert found.why == ("é\u2028" * 256)


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "null",
        "[]",
        "{}",
        "{" * 2_000,
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "redrive_count": "1"}),
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "redrive_count": True}),
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "redrive_count": -1}),
        json.dumps({"why": 1, "at": "x", "source": "x", "case": "x", "redrive_count": 1}),
        json.dumps({"at": "x", "source": "x", "case": "x", "redrive_count": 1}),
        json.dumps({"why": "x" * 9_000, "at": "x", "source": "x", "case": "x", "redrive_count": 1}),
    ],
)
def test_a_mark_that_is_not_ours_says_nothing(forged: str) -> None:
    assert quarantine_reason(text(forged)) is None
    assert hopped(text(forged)).redrive_count == 1


def test_a_mark_of_bytes_says_nothing() -> None:
    forged = message(**{QUARANTINED: MessageAttribute("Binary", b"{}")})
    assert quarantine_reason(forged) is None
    assert set(hopped(forged).attributes) == {"kind", REDRIVE_COUNT}


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_no_text_raises(value: str) -> None:
    quarantine_reason(text(value))
    hopped(text(value))


@given(st.text(), st.integers(0, 40))
def test_what_is_written_is_read(why: str, redrive_count: int) -> None:
    marked = message(**{REDRIVE_COUNT: MessageAttribute("Number", str(redrive_count))})
    try:
        why.encode()
    except UnicodeEncodeError:
        return
    found = quarantine_reason(retained(marked, why))
    assert found is not None
    assert (found.why, found.redrive_count) == (why[:512], redrive_count)


@given(st.integers(0) | st.integers(MOST_REDRIVES - 1, MOST_REDRIVES + 1))
def test_no_count_grows_until_it_reads_as_none(redrive_count: int) -> None:
    """Whoever may send to the quarantine may write any number there."""
    mark = {"why": "x", "at": "x", "source": SOURCE, "case": "x", "redrive_count": redrive_count}
    forged = text(json.dumps(mark))
    assert (found := quarantine_reason(forged)) is not None
    assert found.redrive_count == min(redrive_count, MOST_REDRIVES)
    back = hopped(forged)
    assert len(str(back.attributes[REDRIVE_COUNT].value)) <= LONGEST_NUMBER
    assert back.redrive_count == min(redrive_count + 1, MOST_REDRIVES)


def test_the_largest_count_stays() -> None:
    most = message(**{REDRIVE_COUNT: MessageAttribute("Number", str(MOST_REDRIVES))})
    assert hopped(most).redrive_count == MOST_REDRIVES
    assert hopped(retained(most)).redrive_count == MOST_REDRIVES


def test_a_number_that_nobody_can_read_is_no_mark() -> None:
    mark = '{"why": "x", "at": "x", "source": "x", "case": "x", "redrives": ' + "9" * 5_000 + "}"
    assert quarantine_reason(text(mark)) is None
    assert hopped(text(mark)).redrive_count == 1
