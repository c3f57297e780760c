"""Kills at random calls: the redrive Lambda, `mendq redrive` and `mendq quarantine return`.

The seed chooses what is killed and where. After a kill the same command, or the next tick, goes on,
until each message is where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import boto3
import pytest

from mendq.cli import account as cli_account
from tests.account.account import moto_account
from tests.cli.builders import FakeDeployedAccount, Operator
from tests.cli.redrive.builders import OrdersQueues
from tests.cli.redrive.kills import (
    EVENTS,
    QUARANTINE_RETURN,
    REDRIVE,
    find_faults,
    make_full_dlq,
    make_full_quarantine,
    run_killed,
)
from tests.prove.memory_cloud import cloud
from tests.prove.proof import Proof, Proving
from tests.prove.redrive_faults import SCENES, SEED, judge, strike_at
from tests.prove.redrive_tally import Observation
from tests.prove.redriven_world import RedrivenWorld
from tests.waiting import replace_sleep

KILLS = 100
QUICK_KILLS = 9
# The commands make fewer calls than this with the messages of these tests.
MOST_CALLS = 24


def prove_kills(proving: Proving, kills: int = KILLS) -> None:
    """Kill each of the three in turn, at a call that the seed chooses."""
    drawn = Random(proving.seed)  # noqa: S311 - repeatable, no secret
    seen = Observation()
    faults: list[str] = []
    killed_count = 0
    for number in range(kills):
        if number % 3 == 0:
            _kill_tick(drawn, seen)
            killed_count += 1
        else:
            make_queues, command = (
                (make_full_dlq, REDRIVE)
                if number % 3 == 1
                else (make_full_quarantine, QUARANTINE_RETURN)
            )
            event, call_number = drawn.choice(EVENTS), drawn.randint(1, MOST_CALLS)
            found, was_killed = _kill_command(make_queues, command, event, call_number)
            killed_count += was_killed
            faults += [
                f"{' '.join(command[:2])}, {event} {call_number}: {fault}" for fault in found
            ]
        proving.progress((number + 1) / kills)
    proving.note({"runs": kills, "kills": killed_count})
    for fault in faults[:1]:
        proving.figure("wrong command", fault)
    proving.holds(
        "each message is in the source once, or twice if its batch was on its way",
        whether=not faults,
    )
    proving.holds("most runs were killed", whether=killed_count > kills / 2)
    seen.claim(proving)


def _kill_tick(drawn: Random, seen: Observation) -> None:
    """Kill one tick of Mendq's redrive after a random AWS call, then run ticks until it ends."""
    name, mix = drawn.choice(SCENES)
    with cloud() as here:
        world = RedrivenWorld(here, mix, SEED)
        strike_at(world, 0, "")
        call_number = drawn.randint(1, len(world.calls))
        call = world.calls[call_number - 1]
        world = RedrivenWorld(here, mix, SEED)
        strike_at(world, call_number, "killed_after")
        judge(world, seen, f"{name}, killed after call {call_number}, {call}")


def _kill_command(
    make_queues: Callable[[Operator], OrdersQueues],
    command: Sequence[str],
    event: str,
    call_number: int,
) -> tuple[list[str], bool]:
    """Kill a command and run it again. Return what is wrong, and if it lived until that call."""
    with moto_account() as moto, pytest.MonkeyPatch.context() as monkeypatch:
        replace_sleep(monkeypatch)
        session = boto3.Session(region_name="us-east-1")
        account = FakeDeployedAccount(session, "Mendq", moto.settings)
        monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
        queues = make_queues(Operator(moto, account))
        kill = run_killed(queues, command, event, call_number)
        if queues.count_visible_messages(queues.messages):
            queues.operator.run_json(*command[:-1])
        return find_faults(queues, kill), bool(kill.killed_call)


KILLED = (
    Proof(
        "kills",
        "A redrive, by Mendq or by a person, that dies at any call loses no message.",
        prove_kills,
        prove_quickly=partial(prove_kills, kills=QUICK_KILLS),
    ),
)
