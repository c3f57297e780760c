"""Every call of a redrive's life, struck: no message is lost, and it comes to the same end.

A run that dies is tried after each call that changes something, because until the next one nothing
is different; an answer is lost, or asked for again, where there is something to be done twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mendq.model.limits import Bounds
from mendq.model.state import State
from tests.account.faults import MEETS_OTHERS
from tests.prove.memory_cloud import cloud
from tests.prove.proof import Proving
from tests.prove.redrive_tally import IN_PARTS, LATE, Observation
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import MINUTE, MOST_MINUTES, RedrivenWorld
from tests.prove.struck_calls import BUSY_REASONS

SEED = 7
_QUICK = Mix(good=10, poison=2, bounds=LATE, needed_seconds=10, receives=1)
_PARTS = replace(IN_PARTS, growth=12)
# One poison message is in the canary. The second canary goes in three parts.
_SECOND_CANARY = replace(
    _QUICK, good=39, poison=1, leading_poison=1, groups=40, bounds=Bounds(mover_per_tick=10)
)
SCENES = (
    ("standard, at once", _QUICK),
    ("standard, in parts", replace(_QUICK, good=86, bounds=_PARTS, deletes_per_second=600)),
    ("FIFO", replace(_QUICK, groups=3)),
    ("halted by the shipped bounds", replace(_QUICK, poison=5, bounds=Bounds())),
    ("shared with another source", replace(_QUICK, others=25)),
    ("second canary", _SECOND_CANARY),
    ("halted in the second canary", replace(_SECOND_CANARY, good=38, poison=2)),
)
OF_ANY_CALL = ("refused",)
OF_A_CHANGE = ("killed_after", "answer_lost", "sent_twice")
_READS = ("Get", "List", "Query", "TransactGet")
# Both canaries, and a second copy of each message if a run died with it in hand.
_CANARIES = 2 * LATE.least_judged_messages
WANTED = frozenset(
    {
        "ChangeMessageVisibilityBatch",
        "CreateQueue",
        "DeleteMessageBatch",
        "ListMessageMoveTasks",
        "ReceiveMessage",
        "SendMessageBatch",
        "TransactWriteItems",
        "UpdateItem",
    }
)


def struck_everywhere(
    proving: Proving, share: float = 1, scenes: Sequence[tuple[str, Mix]] = SCENES
) -> None:
    """`share` of the calls of each scene, evenly spread."""
    seen = Observation()
    struck = 0
    every = set[str]()
    with cloud() as here:
        for done, (name, mix) in enumerate(scenes):
            world = RedrivenWorld(here, mix, SEED)
            strike_at(world, 0, "")
            calls = list(world.calls)
            every |= set(calls)
            proving.figure(f"{name}: calls", len(calls))
            for call_number, kind in list(_points(calls))[:: round(1 / share)]:
                world = RedrivenWorld(here, mix, SEED)
                strike_at(world, call_number, kind)
                struck += 1
                judge(
                    world, seen, f"{name}, {kind} at call {call_number}, {calls[call_number - 1]}"
                )
                proving.progress((done + call_number / len(calls)) / len(scenes))
    proving.note({"fault_points": struck, "operations": len(every)})
    proving.holds("each kind of call of mover and tick is among them", whether=every >= WANTED)
    seen.claim(proving)


def _points(calls: list[str]) -> Iterator[tuple[int, str]]:
    for number, operation in enumerate(calls, start=1):
        changes = not operation.startswith(_READS)
        for kind in (*OF_ANY_CALL, *(OF_A_CHANGE if changes else ())):
            yield number, kind
        if operation in MEETS_OTHERS:
            for kind in BUSY_REASONS:
                yield number, kind


def strike_at(world: RedrivenWorld, at: int, kind: str) -> None:
    """To its end, with this fault at the call of that number."""
    for _ in range(MOST_MINUTES):
        made = len(world.calls)
        world.tick({at - made: kind} if at > made else None)
        if world.lost_names or world.ended:
            break
        world.passes()


def judge(world: RedrivenWorld, seen: Observation, announced: str) -> None:
    """Verified, all are where they belong; halted, the canaries have gone and no more."""
    if not world.ended or not world.settle():
        seen.wrong.append(f"{announced}: not over")
    # A run that died hides messages for two minutes.
    world.passes(3 * MINUTE)
    poison = {name for name in world.names if name.startswith("poison")}
    others = {message.body for message in world.others.values()}
    is_whole = (
        set(world.consumers.processed) == world.names - poison - others
        and world.quarantined_names == poison
        and world.dead.bodies == others
    )
    if touched_others := world.touched_others:
        seen.wrong.append(f"{announced}: touched {sorted(touched_others)[:3]}")
    has_halted = world.ended is State.ESCALATED and world.sqs.into[world.source.name] <= _CANARIES
    if not (is_whole if world.ended is State.VERIFIED else has_halted):
        seen.wrong.append(
            f"{announced}: {world.ended}, {world.progress and world.progress.because}"
        )
    seen.add(world, announced)
