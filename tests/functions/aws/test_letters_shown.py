"""Each letter is shown once, and of a FIFO group as far as SQS can show it."""

from __future__ import annotations

from collections import Counter

from functions.healing.letters import Letter
from tests.functions.aws.conftest import Account
from tests.functions.aws.letters import (
    BOTH,
    Two,
    texts,
    timed,
    two,
)

__all__ = ["timed"]


@BOTH
def test_what_is_not_taken_is_visible_at_once_and_looked_at_once(
    timed: Account, *, fifo: bool
) -> None:
    queues = two(timed, fifo=fifo)
    for at, text in enumerate(texts(35)):
        queues.write(text, group=f"g{at % 9}")
    looked: Counter[str] = Counter()

    def takes(letter: Letter) -> bool:
        looked[letter.body] += 1
        return letter.body.endswith(("0", "5"))

    moved = queues.move(takes=takes)
    assert moved.moved == 7
    assert set(looked.values()) == {1}
    assert len(looked) == 35
    assert len(queues.left()) == 28
    assert len(queues.arrived()) == 7


def test_copies_that_the_hand_has_sent_are_not_taken_again(timed: Account) -> None:
    """Here and there are one queue: nothing would ever end otherwise."""
    queues = two(timed)
    circle = Two(timed, queues.here, queues.here)
    circle.write(*texts(12))
    assert circle.move().moved == 12
    assert [each.hops for each in circle.left()] == [1] * 12


def test_what_a_group_hides_behind_letters_that_stay_is_seen_up_to_ten(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for group in ("a", "b", "c"):
        queues.write(*(f"{group} {at:02}" for at in range(14)), group=group)
    looked: list[str] = []

    def takes(letter: Letter) -> bool:
        looked.append(letter.body)
        return letter.body.endswith(("b 03", "b 10"))

    moved = queues.move(takes=takes)
    assert len(looked) == len(set(looked))
    by_group = {group: [each for each in looked if each[0] == group] for group in "abc"}
    assert {group: len(each) for group, each in by_group.items()} == {"a": 10, "b": 12, "c": 10}
    assert all(each == sorted(each) for each in by_group.values())
    assert moved.moved == 2
    assert [each.body for each in queues.arrived()] == ["b 03", "b 10"]
    assert len(queues.left()) == 40


def test_no_more_are_given_than_asked_for(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for group in range(6):
        queues.write(*(f"{group} {at}" for at in range(6)), group=str(group))
    with queues.hand() as hand:
        given = [len(hand.take(4)) for _ in range(10)]
    assert given == [4] * 9 + [0]
    assert len(queues.left()) == 36
