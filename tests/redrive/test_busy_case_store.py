"""A busy case store during a redrive loses no message and sends none twice."""

from __future__ import annotations

from collections import Counter

import pytest

from mendq.aws.errors import CaseStoreUnavailable
from mendq.model.state import State
from mendq.redrive.progress import Stage
from tests.account.faults import BUSY, BusyCaseStore
from tests.redrive.world import RedriveWorld, make_bodies, make_redrive_world

# How often a conflicting transaction is retried before the next tick.
CONFLICTS = 4
MESSAGES = 9


def run_redrive_with_busy_case_store(
    reason: str, strike_at: int, times: int
) -> tuple[str, Counter[str]]:
    """Run a redrive. Return the refused call (empty if there were fewer calls) and the arrivals."""
    with make_redrive_world() as world:
        world.begin(*make_bodies(MESSAGES))
        busy = BusyCaseStore(world.account, reason, strike_at, times=times)
        came = Counter[str]()
        failed = 0
        for _ in range(30):
            try:
                if world.tick().case is not None:
                    break
            except CaseStoreUnavailable:
                failed += 1
            world.account.later(minutes=2)
            came.update(message.body for message in world.take_messages(world.source))
        assert failed <= 1
        busy.leave()
        assert world.state is State.VERIFIED, world.progress
        assert world.read_bodies(world.dlq) == set()
        assert world.progress.quarantined == 0
        assert world.notifications == []
        return busy.call, came


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError"])
def test_redrive_delivers_each_message_once_if_dynamodb_refuses_any_one_call(reason: str) -> None:
    """Covers every call of the first ticks, which send the canary and wait for it."""
    times = CONFLICTS if reason == "TransactionConflict" else 1
    struck = set[str]()
    for strike_at in range(1, 10):
        call, came = run_redrive_with_busy_case_store(reason, strike_at, times)
        assert came == Counter(make_bodies(MESSAGES)), f"{reason} at {call}, number {strike_at}"
        struck.add(call)
    assert "" not in struck
    assert "dynamodb.UpdateItem" in struck


def test_redrive_tick_continues_after_a_brief_dynamodb_transaction_conflict(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(MESSAGES))
    for strike_at in (1, 2, 3):
        busy = BusyCaseStore(world.account, "TransactionConflict", strike_at)
        world.tick()
        busy.leave()
        assert busy.struck
        world.account.later(minutes=2)
        world.consume()
    assert world.progress.current.unsure == 0, "it is known of each message that it went"
    assert world.progress.moved > 0


@pytest.mark.parametrize("reason", BUSY)
def test_redrive_moves_no_message_while_the_case_store_takes_no_writes_and_finishes_afterwards(
    world: RedriveWorld, reason: str
) -> None:
    world.begin(*make_bodies(MESSAGES))
    busy = BusyCaseStore(world.account, reason, times=1_000)
    for _ in range(3):
        with pytest.raises(CaseStoreUnavailable):
            world.tick()
        world.account.later(minutes=2)
    busy.leave()
    assert world.read_bodies(world.dlq) == set(make_bodies(MESSAGES))
    assert world.read_bodies(world.source) == set()
    assert world.run_minutes(30).case is not None
    assert (world.state, world.progress.stage) == (State.VERIFIED, Stage.DONE)
