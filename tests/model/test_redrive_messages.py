"""Which messages go back, which came back, and which are nobody's to send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.redrive.machine import sampled, settled
from mendq.redrive.messages import (
    REDRIVE_COUNT,
    Message,
    MessageAttribute,
    hopped,
    marked_quarantined,
)
from mendq.redrive.progress import DlqSample, DlqStanding, RedriveProgress, RedriveQueues, sample_of
from tests.model.toy_redrive import DEAD, MOST_BYTES, NOW, SOURCE, message

LATER = NOW + timedelta(minutes=10)
OLD = message("old")
NEW = message("new", sent_at=LATER)


def progress(**over: Any) -> RedriveProgress:
    made = RedriveProgress.begun("case", RedriveQueues(DEAD, SOURCE), size=5, now=NOW)
    return replace(made, **over)


def sample(messages: Iterable[Message], *, is_fifo: bool = False, **over: Any) -> DlqSample:
    return sample_of(
        messages, progress(**over), is_fifo=is_fifo, most_bytes=MOST_BYTES, is_whole=True
    )


def standing(each: Message, *, is_fifo: bool = False, **over: Any) -> DlqStanding:
    found = sample([each], is_fifo=is_fifo, **over)
    if found.returned:
        return DlqStanding.RETURNED
    if found.stuck:
        return DlqStanding.STUCK
    return DlqStanding.NEWLY_DEAD if found.newly_dead else DlqStanding.WAITS


@pytest.mark.parametrize("is_fifo", [False, True])
def test_what_died_before_waits_and_what_died_since_is_new(is_fifo: bool) -> None:
    assert standing(OLD, is_fifo=is_fifo) is DlqStanding.WAITS
    assert standing(message("at once", sent_at=NOW), is_fifo=is_fifo) is DlqStanding.WAITS
    assert standing(NEW, is_fifo=is_fifo) is DlqStanding.NEWLY_DEAD


def test_a_mark_tells_what_came_back_whenever_it_was_sent() -> None:
    assert standing(hopped(OLD)) is DlqStanding.RETURNED
    assert standing(hopped(hopped(NEW))) is DlqStanding.RETURNED


def test_a_sender_s_own_word_in_the_mark_s_place_is_no_hop() -> None:
    for kind, value in (("String", "1"), ("Number", "-1"), ("Number", "1e3"), ("Number", "0")):
        odd = OLD.marked(REDRIVE_COUNT, MessageAttribute(kind, value))
        assert standing(odd) is DlqStanding.WAITS


def test_a_fingerprint_tells_what_could_bear_no_mark() -> None:
    assert standing(NEW, fingerprints=(NEW.fingerprint,)) is DlqStanding.RETURNED
    assert standing(NEW, fingerprints=(OLD.fingerprint,)) is DlqStanding.NEWLY_DEAD


def test_one_with_the_same_text_that_was_there_before_did_not_come_back() -> None:
    assert standing(OLD, fingerprints=(OLD.fingerprint,)) is DlqStanding.WAITS


def test_no_more_are_back_by_a_fingerprint_than_went() -> None:
    same = [message("same", message_id=f"copy {number}", sent_at=LATER) for number in range(5)]
    fingerprints = (same[0].fingerprint, OLD.fingerprint, same[0].fingerprint)
    found = sample(same, fingerprints=fingerprints)
    assert (len(found.returned), found.newly_dead) == (2, 3)
    assert found.known == (same[0].fingerprint,) * 2
    opened = progress(fingerprints=fingerprints, is_opened=True)
    after = settled(sampled(opened, found), replace(found, quarantined=2), 3)
    assert after.fingerprints == (OLD.fingerprint,)
    unkept = settled(sampled(opened, found), replace(found, quarantined=1), 3)
    assert unkept.fingerprints == fingerprints


@pytest.mark.parametrize("source_arn", [None, "", DEAD, f"{SOURCE}-2"])
def test_what_died_elsewhere_is_stuck_even_with_a_mark(source_arn: str | None) -> None:
    assert standing(message("stranger", source_arn=source_arn)) is DlqStanding.STUCK
    assert standing(hopped(message("stranger", source_arn=source_arn))) is DlqStanding.STUCK


def test_what_is_too_long_for_its_source_is_stuck() -> None:
    assert standing(message("x", body="x" * MOST_BYTES)) is DlqStanding.WAITS
    assert standing(message("x", body="x" * (MOST_BYTES + 1))) is DlqStanding.STUCK


def test_what_came_out_of_quarantine_by_mover_is_known_again() -> None:
    retained = marked_quarantined(hopped(OLD), "why", at=NOW, source_arn=SOURCE, case_id="case")
    assert standing(hopped(retained)) is DlqStanding.RETURNED


def test_they_are_sorted_in_their_order_and_counted() -> None:
    messages = [
        hopped(message("a")),
        message("b"),
        NEW,
        message("c", source_arn=None),
        message("d"),
    ]
    found = sample(messages)
    assert [each.body for each in found.waiting] == ["b", "new", "d"]
    assert [each.body for each in found.returned] == ["a"]
    assert (found.seen, len(found.returned), found.newly_dead, found.stuck) == (5, 1, 1, 1)


def test_behind_a_stuck_message_its_fifo_group_waits_and_others_do_not() -> None:
    messages = [
        message("a1", group_id="a", source_arn=None),
        message("b1", group_id="b"),
        message("a2", group_id="a"),
        hopped(message("a3", group_id="a")),
    ]
    fifo = sample(messages, is_fifo=True)
    assert ([each.body for each in fifo.waiting], fifo.stuck) == (["b1"], 2)
    assert [each.body for each in fifo.returned] == ["a3"]
    standard = sample(messages)
    assert ([each.body for each in standard.waiting], standard.stuck) == (["b1", "a2"], 1)
