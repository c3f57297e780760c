"""A queue whose need grows for ever: how often is it written in a day, whatever happens?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from mendq.model.limits import Limits
from tests.account.account import make_settings
from tests.heal.operators import send_decision
from tests.prove.proof import Proof, Proving
from tests.prove.world import World, world

DAYS = 3
STEP = timedelta(minutes=10)
A_DAY = timedelta(days=1)
LIMITS = Limits(visibility_ceiling_seconds=43_200)


def budgets(proving: Proving, days: float = DAYS) -> None:
    """People approve, close and change their minds about the mode; the calls go on failing."""
    dice = random.Random(5)  # noqa: S311 - repeatable, no secret
    with world() as made, _writes(made) as written:
        made.account.settings = make_settings(limits=LIMITS)
        queue = made.account.queue(VisibilityTimeout="30")
        steps = int(timedelta(days=days) / STEP)
        for step in range(steps):
            _step(made, queue, step, dice)
            proving.progress(step / steps)
        timing = made.account.settings.timing
        states = {transition["to"] for transition in made.account.transitions()}
    most = max(_count_writes_of_last_day(written, until) for until in written)
    soonest = min(b - a for a, b in pairwise(written))
    proving.note(
        {
            "days": days,
            "batches_of_failed_calls": steps,
            "writes": len(written),
            "most_writes_within_24_hours": most,
            "least_minutes_between_two": soonest.total_seconds() / 60,
            "states_seen": ", ".join(sorted(states)),
        }
    )
    budget = LIMITS.writes_per_attribute_per_day
    cooldown = timing.cooldown_minutes
    rests = soonest >= timedelta(minutes=cooldown)
    proving.holding(
        {
            f"never more than {budget} writes within 24 hours": most <= budget,
            f"never two within {cooldown} minutes": rests,
            "the budget was spent, or nothing was tried": most == budget,
        }
    )


def _count_writes_of_last_day(written: list[datetime], until: datetime) -> int:
    return sum(timedelta() <= until - written_at < A_DAY for written_at in written)


def _step(made: World, queue: str, step: int, dice: random.Random) -> None:
    """The need outgrows every visibility timeout that Mendq can have written."""
    mode = dice.choice(("heal", "heal", "heal", "propose"))
    made.account.tag(queue, mendq=mode, **{"mendq:max-processing-seconds": str(60 + 20 * step)})
    ids = (f"{step}-{n}" for n in range(3))
    made.deliver(made.account.late_deletes(queue, *ids))
    made.account.later(minutes=1)
    made.minute()
    word = dice.choice(("approve", "approve", "close"))
    send_decision(made.account, word, made.case_id(queue))
    made.account.later(seconds=STEP.total_seconds() - 60)


@contextmanager
def _writes(made: World) -> Iterator[list[datetime]]:
    """When a queue was written, as it goes on."""
    written: list[datetime] = []

    def note(**_: Any) -> None:
        written.append(made.account.now)

    events: Any = made.account.clients.sqs_for_writing.meta.events
    events.register("before-call.sqs.SetQueueAttributes", note)
    yield written
    events.unregister("before-call.sqs.SetQueueAttributes", note)


BUDGETS = (
    Proof(
        "budgets",
        "Whatever fails and whoever approves, an attribute is written three times a day at most.",
        budgets,
    ),
)
