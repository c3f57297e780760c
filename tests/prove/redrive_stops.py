"""At every minute of a redrive's life, something that has to stop it: it does at the next tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mendq.model.case import State
from tests.prove.memory_cloud import Cloud, cloud
from tests.prove.proof import Proving
from tests.prove.redrive_tally import IN_PARTS, LATE, Observation
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import MINUTE, RedrivenWorld

SEED = 7
FROZEN_MINUTES = 10
SCENES = (
    ("standard, at once", Mix(good=60, bounds=LATE, deletes_per_second=2)),
    ("standard, in parts", Mix(good=300, bounds=IN_PARTS, deletes_per_second=600)),
    ("FIFO", Mix(good=60, groups=5, bounds=LATE, deletes_per_second=2)),
)


def _forbid(world: RedrivenWorld) -> None:
    world.source.tags["mendq:redrive"] = "off"


def _release(world: RedrivenWorld) -> None:
    """No tag manages it any more."""
    world.dead.tags.clear()


def _taken_back(world: RedrivenWorld) -> None:
    outcome = world.tick(cancel=True)
    assert outcome is not None
    assert outcome.refusal is None, outcome.refusal


FOR_GOOD: tuple[tuple[str, Callable[[RedrivenWorld], None]], ...] = (
    ("cause_back", RedrivenWorld.cause_comes_back),
    ("forbidden_by_a_tag", _forbid),
    ("not_managed_any_more", _release),
    ("taken_back", _taken_back),
)


def _somebody_moves(world: RedrivenWorld) -> None:
    """A task of theirs that finds nothing which it may take."""
    world.sqs.somebody_moves(world.dead, (FROZEN_MINUTES + 1) * MINUTE, 0)


FOR_A_WHILE: tuple[
    tuple[str, Callable[[RedrivenWorld], None], Callable[[RedrivenWorld], None]], ...
] = (
    ("frozen", lambda world: world.cloud.freeze(), lambda world: world.cloud.thaw()),
    ("moved_by_somebody_else", _somebody_moves, RedrivenWorld.passes),
)


def stopped(proving: Proving, share: float = 1, scenes: Sequence[tuple[str, Mix]] = SCENES) -> None:
    """`share` of the minutes of each scene, evenly spread."""
    seen = Observation()
    with cloud() as here:
        for done, (name, mix) in enumerate(scenes):
            minutes = _minutes(RedrivenWorld(here, mix, SEED))
            proving.figure(f"{name}: minutes", minutes)
            for at in range(1, minutes, round(1 / share)):
                for what, act in FOR_GOOD:
                    _for_good(_at(here, mix, at), act, seen, f"{name}, {what} at minute {at}")
                for what, begin, end in FOR_A_WHILE:
                    world = _at(here, mix, at)
                    begin(world)
                    _for_a_while(world, end, seen, f"{name}, {what} at minute {at}")
                proving.progress((done + at / minutes) / len(scenes))
    seen.claim(proving)


def _minutes(world: RedrivenWorld) -> int:
    """How long it takes undisturbed."""
    *_, last = world.lives()
    assert world.ended, world.progress
    return last


def _at(here: Cloud, mix: Mix, minutes: int) -> RedrivenWorld:
    world = RedrivenWorld(here, mix, SEED)
    for _ in range(minutes):
        world.tick()
        world.passes()
    return world


def _for_good(
    world: RedrivenWorld, act: Callable[[RedrivenWorld], None], seen: Observation, announced: str
) -> None:
    act(world)
    sent = world.sent_back
    world.tick()
    if world.ended is not State.ESCALATED:
        seen.wrong.append(f"{announced}: {world.ended} after a tick")
    _judge(world, sent, seen, announced)


def _for_a_while(
    world: RedrivenWorld, end: Callable[[RedrivenWorld], None], seen: Observation, announced: str
) -> None:
    """It waits, and then goes on to its end."""
    sent = world.sent_back
    for _ in range(FROZEN_MINUTES):
        world.tick()
        world.passes()
    if world.sent_back != sent or world.ended or world.state() is not State.APPLIED:
        seen.wrong.append(f"{announced}: {world.ended}, {world.sent_back - sent} sent")
    end(world)
    _minutes(world)
    if world.ended is not State.VERIFIED or world.dead.messages:
        seen.wrong.append(f"{announced}: {world.ended} afterwards")
    _judge(world, world.sent_back, seen, announced)


def _judge(world: RedrivenWorld, sent: int, seen: Observation, announced: str) -> None:
    if world.sent_back != sent:
        seen.wrong.append(f"{announced}: {world.sent_back - sent} messages went after it")
    if not world.settle():
        seen.wrong.append(f"{announced}: not at rest")
    seen.add(world, announced)
