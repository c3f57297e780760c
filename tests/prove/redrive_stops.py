"""At every minute of a redrive's life, something that has to stop it: it does at the next tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functions.healing.states import State
from tests.prove.memory_cloud import Cloud, cloud
from tests.prove.memory_sqs import CANCEL_SECONDS
from tests.prove.proof import Proving
from tests.prove.redrive_tally import BY_TASK, LATE, MOST_MINUTES, Seen
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import STEP, RedrivenWorld

SEED = 7
FROZEN_MINUTES = 10
# A cancel takes its time; the tick after that ends the case.
TICKS_TO_END = 3
SCENES = (
    ("standard, by hand", Mix(good=60, bounds=LATE, deletes_per_second=2)),
    ("standard, by move tasks", Mix(good=300, bounds=BY_TASK, deletes_per_second=600)),
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


def stopped(proving: Proving, share: float = 1, scenes: Sequence[tuple[str, Mix]] = SCENES) -> None:
    """`share` of the minutes of each scene, evenly spread."""
    seen = Seen()
    with cloud() as here:
        for done, (name, mix) in enumerate(scenes):
            minutes = _minutes(RedrivenWorld(here, mix, SEED))
            proving.figure(f"{name}: minutes", minutes)
            for at in range(1, minutes, round(1 / share)):
                for what, act in FOR_GOOD:
                    _for_good(_at(here, mix, at), act, seen, f"{name}, {what} at minute {at}")
                _for_a_while(_at(here, mix, at), seen, f"{name}, frozen at minute {at}")
                proving.tell((done + at / minutes) / len(scenes))
    proving.holds(
        "tasks were running, and were cancelled, or nothing was tried",
        whether=seen.counts["tasks_running_when_stopped"] > 0,
    )
    seen.tell(proving)


def _minutes(world: RedrivenWorld) -> int:
    """How long it takes undisturbed."""
    for minute in range(MOST_MINUTES):
        world.tick()
        if world.ended:
            return minute
        world.passes()
    raise AssertionError(world.course)


def _at(here: Cloud, mix: Mix, minutes: int) -> RedrivenWorld:
    world = RedrivenWorld(here, mix, SEED)
    for _ in range(minutes):
        world.tick()
        world.passes()
    return world


def _for_good(
    world: RedrivenWorld, act: Callable[[RedrivenWorld], None], seen: Seen, told: str
) -> None:
    act(world)
    sent, runs = world.sent_by_hand, _stops_at_next_tick(world, seen, told)
    ticks = 1
    while not world.ended and ticks < TICKS_TO_END:
        world.passes()
        world.tick()
        ticks += 1
    if world.ended is not State.ESCALATED or (ticks > 1 and not runs):
        seen.wrong.append(f"{told}: {world.ended} after {ticks} ticks")
    _judge(world, sent, seen, told)


def _for_a_while(world: RedrivenWorld, seen: Seen, told: str) -> None:
    """Frozen, it waits; thawed, it goes on to its end."""
    world.freeze()
    sent = world.sent_by_hand
    _stops_at_next_tick(world, seen, told)
    for _ in range(FROZEN_MINUTES):
        world.passes()
        world.tick()
    if world.sent_by_hand != sent or world.ended or world.state() is not State.APPLIED:
        seen.wrong.append(f"{told}: {world.ended}, {world.sent_by_hand - sent} sent")
    world.thaw()
    _minutes(world)
    if world.ended is not State.VERIFIED or world.dead.messages:
        seen.wrong.append(f"{told}: {world.ended} after the thaw")
    _judge(world, world.sent_by_hand, seen, told)


def _stops_at_next_tick(world: RedrivenWorld, seen: Seen, told: str) -> bool:
    """Whether a move task was running; it is cancelled, and lets few letters more through."""
    task = world.sqs.task_of(world.dead)
    world.tick()
    if task is None:
        return False
    seen.counts["tasks_running_when_stopped"] += task.status == "CANCELLING"
    moved = task.moved
    if task.status == "RUNNING":
        seen.wrong.append(f"{told}: its task runs on")
    world.passes()
    if task.moved - moved > task.per_second * (CANCEL_SECONDS + STEP):
        seen.wrong.append(f"{told}: its task moved {task.moved - moved} more")
    return True


def _judge(world: RedrivenWorld, sent: int, seen: Seen, told: str) -> None:
    if world.sent_by_hand != sent:
        seen.wrong.append(f"{told}: {world.sent_by_hand - sent} letters went after it")
    if world.sqs.task_of(world.dead) or not world.settle():
        seen.wrong.append(f"{told}: not at rest")
    seen.add(world, told)
