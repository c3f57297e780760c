"""The case store is busy while messages go back: none is lost, and none is sent twice."""

from __future__ import annotations

from collections import Counter

import pytest

from mendq.aws.errors import CaseStoreUnavailable
from mendq.model.state import State
from mendq.redrive.progress import Stage
from tests.account.faults import BUSY, BusyCaseStore
from tests.redrive.world import Redriving, redriving, texts

# As often as a conflict is tried at once before it is left for the next tick.
CONFLICTS = 4
MESSAGES = 9


def lived(reason: str, strike_at: int, times: int) -> tuple[str, Counter[str]]:
    """The call that was refused, empty if there are fewer; and how often each message came."""
    with redriving() as here:
        here.begun(*texts(MESSAGES))
        busy = BusyCaseStore(here.account, reason, strike_at, times=times)
        came = Counter[str]()
        failed = 0
        for _ in range(30):
            try:
                if here.tick().case is not None:
                    break
            except CaseStoreUnavailable:
                failed += 1
            here.account.later(minutes=2)
            came.update(message.body for message in here.taken_away(here.source))
        assert failed <= 1
        busy.leave()
        assert here.state is State.VERIFIED, here.progress
        assert here.bodies(here.dlq) == set()
        assert here.progress.quarantined == 0
        assert here.pages == []
        return busy.call, came


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError"])
def test_redrive_delivers_each_message_once_if_dynamodb_refuses_any_one_call(reason: str) -> None:
    """All calls of a redrive's first ticks, in which it sends its canary and waits for it."""
    times = CONFLICTS if reason == "TransactionConflict" else 1
    struck = set[str]()
    for strike_at in range(1, 10):
        call, came = lived(reason, strike_at, times)
        assert came == Counter(texts(MESSAGES)), f"{reason} at {call}, number {strike_at}"
        struck.add(call)
    assert "" not in struck
    assert "dynamodb.UpdateItem" in struck


def test_redrive_tick_continues_after_a_brief_dynamodb_transaction_conflict(
    here: Redriving,
) -> None:
    here.begun(*texts(MESSAGES))
    for strike_at in (1, 2, 3):
        busy = BusyCaseStore(here.account, "TransactionConflict", strike_at)
        here.tick()
        busy.leave()
        assert busy.struck
        here.account.later(minutes=2)
        here.consume()
    assert here.progress.current.unsure == 0, "it is known of each message that it went"
    assert here.progress.moved > 0


@pytest.mark.parametrize("reason", BUSY)
def test_redrive_moves_no_message_while_the_case_store_takes_no_writes(
    here: Redriving, reason: str
) -> None:
    here.begun(*texts(MESSAGES))
    busy = BusyCaseStore(here.account, reason, times=1_000)
    for _ in range(3):
        with pytest.raises(CaseStoreUnavailable):
            here.tick()
        here.account.later(minutes=2)
    busy.leave()
    assert here.bodies(here.dlq) == set(texts(MESSAGES))
    assert here.bodies(here.source) == set()
    assert here.minutes(30).case is not None
    assert (here.state, here.progress.stage) == (State.VERIFIED, Stage.DONE)
