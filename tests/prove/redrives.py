"""Messages that go back: none is lost, whoever dies, comes in between or is handed out twice."""

from __future__ import annotations

from functools import partial
from random import Random

from mendq.model.limits import Bounds
from tests.prove.memory_cloud import cloud
from tests.prove.proof import Proof, Proving
from tests.prove.redrive_faults import struck_everywhere
from tests.prove.redrive_strangers import fifo_moves, strangers_stay
from tests.prove.redrive_tally import IN_PARTS, LATE, Observation
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import MOST_MINUTES, RedrivenWorld
from tests.prove.struck_calls import KINDS, Strike

SEED = 7
MESSAGES = 12_000
# Every eighth call; all of them take a quarter of an hour.
QUICK_SHARE_OF_CALLS = 1 / 8
# Nearly any call of a tick may be struck; the longest make more.
CALLS_OF_A_TICK = 60


def prove_conservation(proving: Proving, messages: int = MESSAGES) -> None:
    """Random mixes in bad weather, until there were so many messages."""
    seen = Observation()
    turn = 0
    seed = SEED + proving.seed
    with cloud() as here:
        while seen.counts["messages"] < messages:
            turn += 1
            drawn = Random(seed * 100_000 + turn)  # noqa: S311 - the same again
            world = RedrivenWorld(here, mix_of(drawn), turn)
            _through(world, drawn, seen, f"run {turn}")
            proving.progress(min(1.0, seen.counts["messages"] / messages))
        proving.note({"seed": seed, "faults": here.calls.struck.total()})
    happened = ("runs_killed", "ticks_beside_another", "delivered_twice_at_once", "tasks_of_others")
    proving.holds(
        "runs died and met, copies were handed out, others moved too, or nothing was tried",
        whether=all(seen.counts[event] for event in happened),
    )
    seen.claim(proving)


def mix_of(drawn: Random) -> Mix:
    """Mostly good, some poison, some slow; standard or FIFO."""
    messages = drawn.randint(10, 240)
    poison, slow = (round(messages * drawn.uniform(0, share)) for share in (0.2, 0.1))
    return Mix(
        good=messages - poison - slow,
        poison=poison,
        slow=slow,
        groups=drawn.choice((0, 0, 0, 1, 5, 40)),
        bounds=drawn.choice((LATE, IN_PARTS, IN_PARTS, Bounds())),
        deletes_per_second=drawn.choice((20, 100, 600)),
        needed_seconds=drawn.choice((10, 20, 30)),
        receives=drawn.randint(1, 4),
        unsteady=drawn.choice((0, 0.1, 0.3)),
    )


def _through(world: RedrivenWorld, drawn: Random, seen: Observation, announced: str) -> None:
    """To its end, with everything that may happen on the way."""
    for minute in range(MOST_MINUTES):
        if drawn.random() < 0.1:
            world.produce(f"{drawn.choice(('good', 'good', 'poison'))} new {minute}")
        if _person_acts(world, drawn) or world.ended:
            break
        if drawn.random() > 0.05:
            world.tick(_strikes(world, drawn))
        if world.lost_names:
            break
        world.passes()
    world.cloud.thaw()
    is_over = minute < MOST_MINUTES - 1 and world.settle()
    if not is_over:
        seen.wrong.append(f"{announced}: not over, {world.progress and world.progress.because}")
    seen.add(world, announced)


def _strikes(world: RedrivenWorld, drawn: Random) -> dict[int, Strike]:
    """Faults, and others who come in, by the call at which they do."""
    strikes: dict[int, Strike] = {}
    if drawn.random() < 0.3:
        strikes[drawn.randint(1, CALLS_OF_A_TICK)] = drawn.choice(KINDS)
    if drawn.random() < 0.2:
        strikes[drawn.randint(1, CALLS_OF_A_TICK)] = world.tick
    if drawn.random() < 0.2:
        strikes[drawn.randint(1, CALLS_OF_A_TICK)] = lambda: world.consumers.work(world.sqs.now)
    return strikes


def _person_acts(world: RedrivenWorld, drawn: Random) -> bool:
    """Whether the case was taken back: nothing goes on then."""
    chance = drawn.random()
    if chance < 0.04:
        world.cloud.freeze()
    elif chance < 0.2:
        world.cloud.thaw()
    elif chance < 0.202:
        world.cause_comes_back()
    elif chance > 0.98:
        world.sqs.somebody_moves(world.dead, drawn.choice((60, 300)), drawn.choice((1, 5)))
    elif chance < 0.206:
        outcome = world.tick(cancel=True)
        return outcome is not None and outcome.refusal is None
    return False


REDRIVES = (
    Proof(
        "redrive",
        "Every DLQ message is handled, in quarantine or still there, whatever happens on its way.",
        partial(prove_conservation, messages=5 * MESSAGES),
        prove_quickly=prove_conservation,
    ),
    Proof(
        "redrive_faults",
        "A fault at any call of a redrive loses no message, and copies few.",
        struck_everywhere,
        prove_quickly=partial(struck_everywhere, share=QUICK_SHARE_OF_CALLS),
    ),
    Proof(
        "redrive_fifo",
        "A FIFO DLQ of 3,000 groups moves within the Lambda's time, each group in its order.",
        fifo_moves,
    ),
    Proof(
        "redrive_strangers",
        "What an application parks is seen, others' messages stay, and no mark is inherited.",
        strangers_stay,
    ),
)
