"""DLQs that an application fills as well: what is seen, what stays, and that marks bind one queue.

Beside them a FIFO DLQ of thousands of groups, at what calls take at AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mendq.model.state import State
from mendq.redrive.messages import REDRIVE_MARK_NAME
from mendq.redrive.progress import RedriveProgress
from tests.prove.memory_cloud import Cloud, cloud
from tests.prove.memory_queue import Message
from tests.prove.proof import Proving
from tests.prove.redrive_tally import LATE
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import RedrivenWorld

SEED = 7
GROUPS = 3_000
PARKED = 3_000
FORWARDED = 500
STRANGERS = 40
SECONDS_OF_A_CALL = 0.02
_ANOTHER = "arn:aws:sqs:us-east-1:123456789012:billing"
# A mark that any sender can write.
_FORGED: Mapping[str, Any] = {REDRIVE_MARK_NAME: {"DataType": "Number", "StringValue": "1"}}


def fifo_moves(proving: Proving) -> None:
    """Thousands of groups of one message and a few of more; two messages in every group."""
    with cloud() as here:
        for name, good, tails in (("tails", GROUPS, 12), ("pairs", 2 * GROUPS, 0)):
            world = _world(here, good=good, groups=GROUPS, call_seconds=SECONDS_OF_A_CALL)
            _lie_there(world, (f"good {GROUPS * n}" for n in range(1, tails + 1)), group="group-0")
            _to_its_end(proving, name, world)
            happened = world.happened
            handled = set(world.consumers.processed) == world.names
            proving.holding(
                {
                    f"{name}: all move": world.ended is State.VERIFIED and handled,
                    f"{name}: no run ends before its work": not happened["runs_killed"],
                    f"{name}: once a look is each received": happened["most_receives"]
                    <= happened["ticks"],
                    f"{name}: each group keeps its order": _keeps_order(world),
                }
            )
            proving.progress(0.5 + 0.5 * (name == "pairs"))


def strangers_stay(proving: Proving) -> None:
    """Prove that parked messages count as returned, and that marks of other writers count not."""
    with cloud() as here:
        _prove_parked_messages(proving, here)
        _prove_inherited_marks(proving, here, _forward_marks(proving, here))
        _others(proving, here)


def _prove_parked_messages(proving: Proving, here: Cloud) -> None:
    """A consumer that sends everything to the DLQ itself, the attributes with it."""
    world = _world(here, good=0, parked=PARKED)
    progress = _to_its_end(proving, "parked", world)
    halts = world.ended is State.ESCALATED and "came back" in progress.because
    canary = progress.moved == world.mix.bounds.canary == len(world.quarantined_names)
    proving.holding(
        {
            "parked: the canary batch sees that all came back": halts and canary,
            "parked: none is lost": not world.lost_names,
        }
    )


def _forward_marks(proving: Proving, here: Cloud) -> list[Mapping[str, Any]]:
    """Redriven messages whose consumer sends each on with its attributes: those attributes."""
    world = _world(here, good=FORWARDED)
    _to_its_end(proving, "forwarded", world)
    marks = [message.attributes for message in world.consumers.forwarded]
    are_marked = len(marks) == FORWARDED and all(REDRIVE_MARK_NAME in mark for mark in marks)
    proving.holds("forwarded: each bears the first queue's mark", whether=are_marked)
    return marks


def _prove_inherited_marks(proving: Proving, here: Cloud, marks: list[Mapping[str, Any]]) -> None:
    """Good messages that died in another queue, under marks that were never put on them."""
    world = _world(here, good=20, bounds=LATE)
    world.tick()
    (own, *_) = (message.attributes for message in world.source.messages.values())
    kinds = {"forwarded": marks, "forged": [_FORGED] * FORWARDED, "own": [own] * FORWARDED}
    for kind, given in kinds.items():
        for n, attributes in enumerate(given):
            _lie_there(world, [f"good {kind} {n}"], attributes=attributes)
    _to_its_end(proving, "inherited", world)
    proving.holding(
        {
            "inherited: nothing good is in quarantine": not world.quarantined_names,
            "inherited: all are handled": set(world.consumers.processed) == world.names,
        }
    )


def _others(proving: Proving, here: Cloud) -> None:
    """Prove that messages of another queue or sent by hand stay in the DLQ."""
    world = _world(here, good=100)
    for source_arn in (_ANOTHER, ""):
        _lie_there(world, (f"other {n} {source_arn}" for n in range(STRANGERS)), source_arn)
    progress = _to_its_end(proving, "others", world)
    others = {name for name in world.names if name.startswith("other")}
    whose = f"in this source: {STRANGERS} of billing, {STRANGERS} sent there by hand"
    shown = (message.hidden_until <= world.sqs.now for message in world.dead.messages.values())
    proving.holding(
        {
            "others: the source's own alone move": world.dead.bodies == others,
            "others: the case says whose they are": progress.because.endswith(whose),
            "others: all of them can be seen": all(shown),
        }
    )


def _world(here: Cloud, **mix: Any) -> RedrivenWorld:
    quick = Mix(**mix, deletes_per_second=600, needed_seconds=10, receives=1)
    return RedrivenWorld(here, quick, SEED)


def _lie_there(
    world: RedrivenWorld, bodies: Iterable[str], source_arn: str | None = None, **over: Any
) -> None:
    """Messages in the DLQ since an hour, that died in the source unless told otherwise."""
    died_in = world.source.arn if source_arn is None else source_arn
    for body in bodies:
        world.lay(Message(body, world.sqs.now - 3_600, **over), died_in)


def _to_its_end(proving: Proving, name: str, world: RedrivenWorld) -> RedriveProgress:
    """Run a redrive to its end, note its figures and return its progress."""
    happened = world.happened
    for _ in world.lives():
        received = (message.receives for message in world.dead.messages.values())
        happened["most_receives"] = max(happened["most_receives"], *received, 0)
    world.settle()
    progress = world.progress
    assert progress is not None
    figures: dict[str, int | str] = {
        "moved": progress.moved,
        "quarantined": progress.quarantined,
        "lost": len(world.lost_names),
        "calls": len(world.calls),
        **{name: happened[name] for name in ("ticks", "most_receives", "runs_killed")},
        "ended": f"{world.ended or 'not at all'}",
    }
    proving.note({f"{name}: {figure}": value for figure, value in figures.items()})
    return progress


def _keeps_order(world: RedrivenWorld) -> bool:
    """Return True if each group was handled in the order of its numbers."""
    groups = world.mix.groups
    handled = [int(body.rpartition(" ")[2]) for body in world.consumers.processed]
    by_group = sorted(handled, key=lambda number: number % groups)
    return by_group == sorted(handled, key=lambda number: (number % groups, number))
