"""Which letters go back, which came back, and which are nobody's to send."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.healing.letters import HOPS, Letter, MessageAttribute
from functions.healing.marks import hopped, kept_apart
from functions.healing.redrive import counted, settled
from functions.healing.redrive_course import Course, begun
from functions.healing.redrive_letters import (
    Known,
    Standing,
    fingerprints_of,
    sorted_out,
    standing_of,
)
from tests.functions.healing.toy_redrive import DEAD, MOST_BYTES, NOW, SOURCE, letter

LATER = NOW + timedelta(minutes=10)
OLD = letter("old")
NEW = letter("new", sent_at=LATER)


def course(**over: Any) -> Course:
    made = begun("case", dead_letter_arn=DEAD, source_arn=SOURCE, canary=5, now=NOW)
    return replace(made, **over)


def standing(each: Letter, *, is_fifo: bool = False, **over: Any) -> Standing:
    of = course(**over)
    return standing_of(each, of, Known.of(of), is_fifo=is_fifo, most_bytes=MOST_BYTES)


@pytest.mark.parametrize("is_fifo", [False, True])
def test_what_died_before_waits_and_what_died_since_is_new(is_fifo: bool) -> None:
    assert standing(OLD, is_fifo=is_fifo) is Standing.WAITS
    assert standing(letter("at once", sent_at=NOW), is_fifo=is_fifo) is Standing.WAITS
    assert standing(NEW, is_fifo=is_fifo) is Standing.NEWLY_DEAD


def test_a_mark_tells_what_came_back_whenever_it_was_sent() -> None:
    assert standing(hopped(OLD)) is Standing.RETURNED
    assert standing(hopped(hopped(NEW))) is Standing.RETURNED


def test_a_sender_s_own_word_in_the_mark_s_place_is_no_hop() -> None:
    for kind, value in (("String", "1"), ("Number", "-1"), ("Number", "1e3"), ("Number", "0")):
        odd = OLD.marked(HOPS, MessageAttribute(kind, value))
        assert standing(odd) is Standing.WAITS


def test_a_fingerprint_tells_what_could_bear_no_mark() -> None:
    assert standing(NEW, fingerprints=(NEW.fingerprint,)) is Standing.RETURNED
    assert standing(NEW, fingerprints=(OLD.fingerprint,)) is Standing.NEWLY_DEAD


def test_one_with_the_same_text_that_was_there_before_did_not_come_back() -> None:
    assert standing(OLD, fingerprints=(OLD.fingerprint,)) is Standing.WAITS


def test_no_more_are_back_by_a_fingerprint_than_went() -> None:
    same = [letter("same", message_id=f"copy {number}", sent_at=LATER) for number in range(5)]
    known = course(fingerprints=(same[0].fingerprint, OLD.fingerprint, same[0].fingerprint))
    found = sorted_out(same, known, is_fifo=False, most_bytes=MOST_BYTES)
    assert (len(found.returned), found.newly_dead) == (2, 3)
    census = found.census(is_whole=True)
    assert census.fingerprints == (same[0].fingerprint,) * 2
    opened = replace(known, is_opened=True)
    after = settled(counted(opened, census), replace(census, quarantined=2), 3)
    assert after.fingerprints == (OLD.fingerprint,)
    unkept = settled(counted(opened, census), replace(census, quarantined=1), 3)
    assert unkept.fingerprints == known.fingerprints


def test_after_a_task_the_time_tells_but_of_a_fifo_queue_it_says_nothing() -> None:
    task_at = NOW + timedelta(minutes=5)
    assert standing(NEW, first_task_at=task_at) is Standing.RETURNED
    assert standing(letter("in time", sent_at=task_at), first_task_at=task_at) is Standing.RETURNED
    assert standing(OLD, first_task_at=task_at) is Standing.WAITS
    assert standing(NEW, first_task_at=task_at, is_fifo=True) is Standing.NEWLY_DEAD


@pytest.mark.parametrize("source_arn", [None, "", DEAD, f"{SOURCE}-2"])
def test_what_died_elsewhere_is_stuck_even_with_a_mark(source_arn: str | None) -> None:
    assert standing(letter("stranger", source_arn=source_arn)) is Standing.STUCK
    assert standing(hopped(letter("stranger", source_arn=source_arn))) is Standing.STUCK


def test_what_is_too_long_for_its_source_is_stuck() -> None:
    assert standing(letter("x", body="x" * MOST_BYTES)) is Standing.WAITS
    assert standing(letter("x", body="x" * (MOST_BYTES + 1))) is Standing.STUCK


def test_what_came_out_of_quarantine_by_hand_is_known_again() -> None:
    kept = kept_apart(hopped(OLD), "why", at=NOW, source_arn=SOURCE, case_id="case")
    assert standing(hopped(kept)) is Standing.RETURNED


def test_they_are_sorted_in_their_order_and_counted() -> None:
    letters = [hopped(letter("a")), letter("b"), NEW, letter("c", source_arn=None), letter("d")]
    found = sorted_out(letters, course(), is_fifo=False, most_bytes=MOST_BYTES)
    assert [each.body for each in found.waiting] == ["b", "new", "d"]
    assert [each.body for each in found.returned] == ["a"]
    census = found.census(is_whole=True)
    assert (census.seen, census.returned, census.newly_dead, census.stuck) == (5, 1, 1, 1)


def test_behind_a_stuck_letter_its_fifo_group_waits_and_others_do_not() -> None:
    letters = [
        letter("a1", group_id="a", source_arn=None),
        letter("b1", group_id="b"),
        letter("a2", group_id="a"),
        hopped(letter("a3", group_id="a")),
    ]
    fifo = sorted_out(letters, course(), is_fifo=True, most_bytes=MOST_BYTES)
    assert ([each.body for each in fifo.waiting], fifo.stuck) == (["b1"], 2)
    assert [each.body for each in fifo.returned] == ["a3"]
    standard = sorted_out(letters, course(), is_fifo=False, most_bytes=MOST_BYTES)
    assert ([each.body for each in standard.waiting], standard.stuck) == (["b1", "a2"], 1)


def test_of_each_that_goes_a_fingerprint_is_kept_and_the_newest_longest() -> None:
    many = [letter(f"letter {number}") for number in range(6)]
    known = course(fingerprints=fingerprints_of(many[:3], course(), 4))
    after = fingerprints_of([many[2], many[5]], known, 4)
    assert after == tuple(each.fingerprint for each in (many[1], many[2], many[2], many[5]))
