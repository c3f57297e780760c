"""Whoever holds letters dies at any call, or is not answered: none is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functions.aws.conftest import Account
from tests.functions.aws.faults import KINDS, Fault, Killed
from tests.functions.aws.letters import (
    BOTH,
    LONGER_THAN_A_LEASE,
    Two,
    texts,
    timed,
    two,
)

__all__ = ["timed"]


class Death(Fault):
    """From the call on that it strikes, the process makes none any more."""

    def _come_by(self, event_name: str, **more: Any) -> None:
        if self.struck:
            raise Killed
        super()._come_by(event_name, **more)


def _die_and_go_on(queues: Two, kind: str, strike_at: int) -> bool:
    """Whether the first run came through alive."""
    death = Death(queues.account, kind, strike_at)
    try:
        queues.move()
    except Killed:
        pass
    finally:
        death.leave()
    _go_on(queues)
    return not death.struck


def _go_on(queues: Two) -> None:
    """moto shows a FIFO group whose lease ran out bit by bit, hence so often."""
    for _ in range(4):
        queues.account.later(seconds=LONGER_THAN_A_LEASE)
        if queues.is_empty():
            return
        queues.move()


@BOTH
@pytest.mark.parametrize("kind", [each for each in KINDS if each.startswith("killed")])
def test_a_death_at_any_call_loses_nothing(timed: Account, kind: str, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    written = texts(13)
    copies, strike_at, is_alive = 0, 0, False
    while not is_alive:
        strike_at += 1
        for text in written:
            queues.write(text, group=f"g{int(text[-1]) % 2}")
        is_alive = _die_and_go_on(queues, kind, strike_at)
        arrived = [each.body for each in queues.arrived()]
        assert set(arrived) == set(written), strike_at
        assert queues.left() == [], strike_at
        copies = max(copies, len(arrived) - len(written))
        timed.later(minutes=6)
    assert strike_at > 6
    # A FIFO queue knows the second copy by its deduplication id.
    assert copies == (0 if fifo else 10)


@BOTH
def test_an_answer_that_is_lost_anywhere_loses_nothing(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    written = texts(12)
    for strike_at in range(1, 8):
        queues.write(*written)
        fault = Fault(timed, "answer_lost", strike_at)
        queues.move()
        fault.leave()
        _go_on(queues)
        assert {each.body for each in queues.arrived()} == set(written)
        assert queues.left() == []
        timed.later(minutes=6)
