"""What is held is lost when its time is over, and never extended beyond twelve hours."""

from __future__ import annotations

import pytest

from mendq.consumer.holds import LONGEST_SECONDS, Hold, Holds

SECONDS = 60


def holds(*message_ids: str, received_at: float = 0) -> Holds:
    held = Holds(SECONDS)
    for each in message_ids:
        held.add(each, f"handle-{each}", received_at)
    return held


def only(held: Holds) -> Hold:
    (found,) = held.every
    return found


@pytest.mark.parametrize(("now", "is_due"), [(0, False), (29.9, False), (30, True), (59, True)])
def test_it_is_due_past_the_half_of_its_time(now: float, *, is_due: bool) -> None:
    assert bool(holds("a").due(now)) is is_due


@pytest.mark.parametrize(("left", "is_due"), [(0.9, False), (1, True)])
def test_what_an_extension_would_hold_for_less_than_a_second_longer_is_not_due(
    left: float, *, is_due: bool
) -> None:
    held = holds("a")
    only(held).until = LONGEST_SECONDS - left
    assert bool(held.due(LONGEST_SECONDS - left - 0.5)) is is_due


def test_what_ran_out_is_lost_to_the_second() -> None:
    held = holds("a")
    hold = only(held)
    assert held.has(hold, 59.9)
    assert not held.has(hold, 60)
    held.lose_what_ran_out(59.9)
    assert held.held == {"a"}
    assert held.lost == frozenset()
    held.lose_what_ran_out(60)
    assert held.held == frozenset()
    assert held.lost == {"a"}
    assert held.among(["a"]) == []


def test_what_is_dropped_is_not_lost() -> None:
    held = holds("a", "b")
    held.drop(held.among(["a"]))
    held.lose_what_ran_out(60)
    assert held.lost == {"b"}


def test_received_again_the_older_handle_is_held_no_more() -> None:
    held = holds("a")
    older = only(held)
    held.add("a", "newer", 30)
    assert only(held).handle == "newer"
    assert not held.has(older, 31)


def test_what_was_lost_and_comes_again_is_held() -> None:
    held = holds("a")
    held.lose(held.every)
    held.add("a", "newer", 90)
    assert held.held == {"a"}
    assert held.lost == frozenset()


def test_they_are_said_as_they_were_asked_for_and_all_as_they_came() -> None:
    held = holds(*"cab")
    assert [each.message_id for each in held.every] == list("cab")
    assert [each.message_id for each in held.among(["b", "nobody's", "c"])] == ["b", "c"]
