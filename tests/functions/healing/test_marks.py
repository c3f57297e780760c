"""The marks say what we wrote, and nothing that somebody else wrote makes them raise."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.healing.letters import (
    HOPS,
    LONGEST_NUMBER,
    MOST_HOPS,
    QUARANTINED,
    Letter,
    MessageAttribute,
)
from functions.healing.marks import Kept, hopped, kept_apart, kept_because

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
OTHERS = {"kind": MessageAttribute("String", "order")}


def letter(**attributes: MessageAttribute) -> Letter:
    return Letter("m-1", "body", AT, attributes=OTHERS | attributes)


def kept(of: Letter, why: str = "it came back") -> Letter:
    return kept_apart(of, why, at=AT, source_arn=SOURCE, case_id="case-1")


def text(value: str, data_type: str = "String") -> Letter:
    return letter(**{QUARANTINED: MessageAttribute(data_type, value)})


def test_every_way_back_is_a_hop() -> None:
    once = hopped(letter())
    assert once.hops == 1
    assert hopped(once).hops == 2
    assert once.attributes["kind"] == OTHERS["kind"]


def test_the_quarantine_stands_in_the_place_of_the_hops() -> None:
    apart = kept(hopped(hopped(letter())))
    assert set(apart.attributes) == {"kind", QUARANTINED}
    assert kept_because(apart) == Kept("it came back", AT.isoformat(), SOURCE, "case-1", 2)


def test_the_way_out_of_the_quarantine_counts_on() -> None:
    back = hopped(kept(hopped(hopped(letter()))))
    assert back.hops == 3
    assert set(back.attributes) == {"kind", HOPS}


def test_of_a_letter_that_was_not_kept_apart_nothing_is_said() -> None:
    assert kept_because(letter()) is None


def test_a_long_reason_is_cut_and_read_again() -> None:
    found = kept_because(kept(letter(), "é\u2028" * 5_000))
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
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "hops": "1"}),
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "hops": True}),
        json.dumps({"why": "x", "at": "x", "source": "x", "case": "x", "hops": -1}),
        json.dumps({"why": 1, "at": "x", "source": "x", "case": "x", "hops": 1}),
        json.dumps({"at": "x", "source": "x", "case": "x", "hops": 1}),
        json.dumps({"why": "x" * 9_000, "at": "x", "source": "x", "case": "x", "hops": 1}),
    ],
)
def test_a_mark_that_is_not_ours_says_nothing(forged: str) -> None:
    assert kept_because(text(forged)) is None
    assert hopped(text(forged)).hops == 1


def test_a_mark_of_bytes_says_nothing() -> None:
    forged = letter(**{QUARANTINED: MessageAttribute("Binary", b"{}")})
    assert kept_because(forged) is None
    assert set(hopped(forged).attributes) == {"kind", HOPS}


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_no_text_raises(value: str) -> None:
    kept_because(text(value))
    hopped(text(value))


@given(st.text(), st.integers(0, 40))
def test_what_is_written_is_read(why: str, hops: int) -> None:
    marked = letter(**{HOPS: MessageAttribute("Number", str(hops))})
    try:
        why.encode()
    except UnicodeEncodeError:
        return
    found = kept_because(kept(marked, why))
    assert found is not None
    assert (found.why, found.hops) == (why[:512], hops)


@given(st.integers(0) | st.integers(MOST_HOPS - 1, MOST_HOPS + 1))
def test_no_count_grows_until_it_reads_as_none(hops: int) -> None:
    """Whoever may send to the quarantine may write any number there."""
    mark = {"why": "x", "at": "x", "source": SOURCE, "case": "x", "hops": hops}
    forged = text(json.dumps(mark))
    assert (found := kept_because(forged)) is not None
    assert found.hops == min(hops, MOST_HOPS)
    back = hopped(forged)
    assert len(str(back.attributes[HOPS].value)) <= LONGEST_NUMBER
    assert back.hops == min(hops + 1, MOST_HOPS)


def test_the_largest_count_stays() -> None:
    most = letter(**{HOPS: MessageAttribute("Number", str(MOST_HOPS))})
    assert hopped(most).hops == MOST_HOPS
    assert hopped(kept(most)).hops == MOST_HOPS


def test_a_number_that_nobody_can_read_is_no_mark() -> None:
    mark = '{"why": "x", "at": "x", "source": "x", "case": "x", "hops": ' + "9" * 5_000 + "}"
    assert kept_because(text(mark)) is None
    assert hopped(text(mark)).hops == 1
