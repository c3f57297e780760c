"""DLQs that an application fills as well: what is seen, what stays, and that marks bind one queue.

Beside them a FIFO DLQ of thousands of groups, at what calls take at AWS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mendq.model.case import State
from tests.prove.memory_cloud import Cloud, cloud
from tests.prove.memory_queue import Message
from tests.prove.proof import Proving
from tests.prove.redrive_tally import LATE, MOST_MINUTES
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import RedrivenWorld

SEED = 7
GROUPS = 3_000
PARKED = 3_000
FORWARDED = 500
STRANGERS = 40
SECONDS_OF_A_CALL = 0.02
MARK = "mendq.redrive"
_QUICK: dict[str, Any] = {"deletes_per_second": 600, "needed_seconds": 10, "receives": 1}
_ANOTHER = "arn:aws:sqs:us-east-1:123456789012:billing"
# As anybody may write one.
_FORGED = {MARK: {"DataType": "Number", "StringValue": "1"}}


def fifo_moves(proving: Proving) -> None:
    """Thousands of groups of one message and a few of more; two messages in every group."""
    with cloud() as here:
        for name, good, tails in (("tails", GROUPS, 12), ("pairs", 2 * GROUPS, 0)):
            mix = Mix(good=good, groups=GROUPS, call_seconds=SECONDS_OF_A_CALL, **_QUICK)
            world = RedrivenWorld(here, mix, SEED)
            for n in range(tails):
                body = f"good {GROUPS * (n + 1)}"
                world.lay(Message(body, world.sqs.now, group="group-0"), world.source.arn)
            most_receives = _to_its_end(world)
            _note(proving, name, world, most_receives)
            handled = set(world.consumers.processed) == world.names
            proving.holding(
                {
                    f"{name}: all move": world.ended is State.VERIFIED and handled,
                    f"{name}: no run ends before its work": not world.happened["runs_killed"],
                    f"{name}: once a look is each received": most_receives
                    <= world.happened["ticks"],
                    f"{name}: each group keeps its order": _in_order(world),
                }
            )
            proving.progress(0.5 + 0.5 * (name == "pairs"))


def strangers_stay(proving: Proving) -> None:
    """What an application parks is seen to be back, and what others wrote is nobody's mark."""
    with cloud() as here:
        _parked(proving, here)
        marks = _forwarded(proving, here)
        _inherited(proving, here, marks)
        _others(proving, here)


def _parked(proving: Proving, here: Cloud) -> None:
    """A consumer that sends everything to the DLQ itself, the attributes with it."""
    world = RedrivenWorld(here, Mix(good=0, parked=PARKED, **_QUICK), SEED)
    _to_its_end(world)
    progress = world.progress
    assert progress is not None
    _note(proving, "parked", world)
    halts = world.ended is State.ESCALATED and "came back" in progress.because
    canary = progress.moved == world.mix.bounds.canary == len(world.quarantined)
    proving.holding(
        {
            "parked: the canary batch sees that all came back": halts and canary,
            "parked: none is lost": not world.lost,
        }
    )


def _forwarded(proving: Proving, here: Cloud) -> list[Mapping[str, Any]]:
    """Redriven messages whose consumer sends each on with its attributes: those attributes."""
    world = RedrivenWorld(here, Mix(good=FORWARDED, **_QUICK), SEED)
    _to_its_end(world)
    marks = [each.attributes for each in world.consumers.forwarded]
    proving.holds(
        "forwarded: each bears the first queue's mark",
        whether=len(marks) == FORWARDED and all(MARK in each for each in marks),
    )
    return marks


def _inherited(proving: Proving, here: Cloud, marks: list[Mapping[str, Any]]) -> None:
    """Good messages that died in another queue, under marks that were never put on them."""
    world = RedrivenWorld(here, Mix(good=20, bounds=LATE, **_QUICK), SEED)
    world.tick()
    (own, *_) = (each.attributes for each in world.source.messages.values())
    for kind, given in (
        ("forwarded", marks),
        ("forged", [_FORGED] * FORWARDED),
        ("its own on others", [own] * FORWARDED),
    ):
        for n, attributes in enumerate(given):
            world.lay(
                Message(f"good {kind} {n}", world.sqs.now - 3_600, attributes), world.source.arn
            )
    _to_its_end(world)
    _note(proving, "inherited", world)
    proving.holding(
        {
            "inherited: nothing good is in quarantine": not world.quarantined,
            "inherited: all are handled": set(world.consumers.processed) == world.names,
        }
    )


def _others(proving: Proving, here: Cloud) -> None:
    """Those of another queue, and those that somebody has sent, in the same DLQ."""
    world = RedrivenWorld(here, Mix(good=100, **_QUICK), SEED)
    for source_arn in (_ANOTHER, ""):
        for n in range(STRANGERS):
            world.lay(Message(f"other {n} {source_arn}", world.sqs.now - 3_600), source_arn)
    others = {each for each in world.names if each.startswith("other")}
    _to_its_end(world)
    progress = world.progress
    assert progress is not None
    _note(proving, "others", world)
    whose = f"stay: {STRANGERS} of billing, {STRANGERS} sent there by hand"
    proving.holding(
        {
            "others: the source's own alone move": world.dead.bodies == others,
            "others: the case says whose they are": progress.because.endswith(whose),
            "others: all of them can be seen": all(
                each.hidden_until <= world.sqs.now for each in world.dead.messages.values()
            ),
        }
    )


def _to_its_end(world: RedrivenWorld) -> int:
    """How often at most one message was received in the DLQ."""
    most_receives = 0
    for _ in range(MOST_MINUTES):
        world.tick()
        received = (each.receives for each in world.dead.messages.values())
        most_receives = max(most_receives, *received, 0)
        if world.ended:
            break
        world.passes()
    world.settle()
    return most_receives


def _note(proving: Proving, name: str, world: RedrivenWorld, most_receives: int = 0) -> None:
    progress = world.progress
    assert progress is not None
    figures: dict[str, int | str] = {
        "moved": progress.moved,
        "returned": progress.returned,
        "quarantined": progress.quarantined,
        "left": len(world.dead.bodies),
        "lost": len(world.lost),
        "ticks": world.happened["ticks"],
        "calls": len(world.calls),
    }
    if most_receives:
        figures |= {"most_receives": most_receives, "runs_killed": world.happened["runs_killed"]}
    figures["ended"] = f"{world.ended or 'not at all'}"
    proving.note({f"{name}: {each}": value for each, value in figures.items()})


def _in_order(world: RedrivenWorld) -> bool:
    """By the numbers of the messages, which stood in this order."""
    last = Counter[int]()
    for body in world.consumers.processed:
        number = int(body.rpartition(" ")[2])
        group = number % world.mix.groups
        if number < last[group]:
            return False
        last[group] = number
    return True
