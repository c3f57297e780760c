"""Letters go on whole, in their order, and what is let go of is seen at once."""

from __future__ import annotations

import pytest

from functions.healing.letters import HOPS, MessageAttribute
from functions.healing.marks import hopped
from tests.functions.aws.conftest import Account
from tests.functions.aws.letters import (
    BOTH,
    LONGER_THAN_A_LEASE,
    texts,
    timed,
    two,
)

__all__ = ["timed"]


@BOTH
def test_a_letter_goes_whole_and_bears_the_mark(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    given = {
        "kind": {"DataType": "String", "StringValue": "é\u2028"},
        "weight": {"DataType": "Number.float", "StringValue": "1.50"},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    }
    queues.write("hello\r\n", group="g-7", MessageAttributes=given)
    assert queues.move().moved == 1
    (arrived,) = queues.arrived()
    assert arrived.body == "hello\r\n"
    assert arrived.attributes == {
        "kind": MessageAttribute("String", "é\u2028"),
        "weight": MessageAttribute("Number.float", "1.50"),
        "picture": MessageAttribute("Binary.png", b"\x00\xff"),
        HOPS: MessageAttribute("Number", "1"),
    }
    assert arrived.group_id == ("g-7" if fifo else "")
    assert queues.left() == []


def test_hops_count_up(timed: Account) -> None:
    queues = two(timed)
    hops = {HOPS: {"DataType": "Number", "StringValue": "2"}}
    queues.write("again", MessageAttributes=hops)
    queues.move()
    assert [each.hops for each in queues.arrived()] == [3]


def test_with_ten_attributes_it_goes_unmarked_and_its_fingerprint_is_told(
    timed: Account,
) -> None:
    queues = two(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    queues.write("full", MessageAttributes=ten)
    queues.write("bare")
    moved = queues.move()
    arrived = {each.body: each for each in queues.arrived()}
    assert set(arrived["full"].attributes) == set(ten)
    assert arrived["bare"].hops == 1
    assert moved.unmarked == (arrived["full"].fingerprint,)


def test_ten_attributes_with_the_mark_among_them_are_enough(timed: Account) -> None:
    queues = two(timed)
    nine = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(9)}
    queues.write(
        "full", MessageAttributes={**nine, HOPS: {"DataType": "Number", "StringValue": "1"}}
    )
    moved = queues.move()
    assert (moved.moved, moved.unmarked) == (1, ())
    assert [each.hops for each in queues.arrived()] == [2]


def test_the_largest_message_goes_without_the_mark(timed: Account) -> None:
    queues = two(timed)
    queues.write("x" * 1_048_576, "y" * (1_048_576 - 40))
    moved = queues.move()
    assert moved.moved == 2
    assert sorted((len(each.body), each.hops) for each in queues.arrived()) == [
        (1_048_536, 1),
        (1_048_576, 0),
    ]
    assert len(moved.unmarked) == 1


def test_no_batch_is_larger_than_sqs_takes(timed: Account) -> None:
    queues = two(timed)
    queues.write(*(letter * 400_000 for letter in "abcde"))
    assert queues.move().moved == 5
    assert sorted(each.body[0] for each in queues.arrived()) == list("abcde")


def test_at_most_so_many_are_moved_and_the_rest_is_visible_at_once(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(25))
    assert queues.move(most=13).moved == 13
    assert len(queues.left()) == 12


def test_an_end_in_the_middle_releases_what_is_in_hand(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(10))
    with queues.hand() as hand:
        letters = hand.take(10)
        puts = hand.put(letters[:3], queues.to())
        assert next(puts).moved == 3
        hand.release(letters[3:5])
        assert len(queues.read(queues.here)) == 2
    assert len(queues.left()) == 5
    assert len(queues.arrived()) == 3


def test_an_order_within_a_group_is_kept(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for text in texts(40):
        queues.write(text, group=f"g{int(text[-1]) % 3}")
    assert queues.move().moved == 40
    by_group: dict[str, list[str]] = {}
    for each in queues.arrived():
        by_group.setdefault(each.group_id, []).append(each.body)
    assert len(by_group) == 3
    assert all(bodies == sorted(bodies) for bodies in by_group.values())


def test_the_mark_is_what_it_was_told_to_be(timed: Account) -> None:
    queues = two(timed)
    queues.write("plain")
    moved = queues.move(queues.to(mark=lambda letter: letter))
    assert moved.unmarked == ()
    (arrived,) = queues.arrived()
    assert dict(arrived.attributes) == {}
    assert hopped(arrived).hops == 1


@BOTH
def test_what_is_let_go_of_is_told_ten_by_ten(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    for at, text in enumerate(texts(24)):
        queues.write(text, group=f"g{at % 4}")
    with queues.hand() as hand:
        hand.take(24)
        assert list(hand.let_go()) == [0, 10, 20, 24]
        assert (hand.in_hand, len(queues.left())) == (0, 24)


def test_whoever_cannot_wait_is_told_how_many_stay_hidden(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(24))
    with queues.hand() as hand:
        hand.take(24)
        releases = hand.let_go()
        assert [next(releases), next(releases)] == [0, 10]
        assert hand.abandon() == 14
    assert len(queues.left()) == 10
    timed.later(seconds=LONGER_THAN_A_LEASE)
    assert len(queues.left()) == 14


def test_a_release_that_is_cut_off_counts_as_not_done(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(12))

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with queues.hand() as hand:
        hand.take(12)
        releases = hand.let_go()
        next(releases)
        events = queues.sqs.meta.events
        events.register("before-call", cut, unique_id="cut")
        with pytest.raises(KeyboardInterrupt):
            next(releases)
        events.unregister("before-call", unique_id="cut")
        assert hand.abandon() == 12
