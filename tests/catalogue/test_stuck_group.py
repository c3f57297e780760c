"""One FIFO group that stands still among others, and healthy queues that look like it.

Played as `make prove NAMES=false_alarms` plays queues for the whole scan.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from mendq.catalogue.fifo.stuck_group import is_oldest_message_stuck
from mendq.model.metrics import Window, select_series, summarize_series
from tests.prove.look_alikes import Played, Scene, between, burst, sends
from tests.prove.simulated_queues import FAILS, HOUR, MINUTE, NOW, Message

Then = Callable[[Played], object]
NEVER = 1e9
ASKED = select_series(["every queue", "FIFO"])


def is_found(seed: int = 1, timeout: int = 30, every: float = 10, **scene: Any) -> bool:
    """Five groups flow, of which each gets a message `every` so many seconds."""
    given = {"work": between(0, 2), "workers": 80, "groups": 5, "dies_after": 0, **scene}
    made = Scene(rate=5 / every, timeout=timeout, **given)
    world = made.played("fifo", seed)
    world.run(world.end)
    (queue,) = world.queues
    series = {key: [*queue.series(asked.metric)] for key, asked in ASKED.items()}
    found = summarize_series(series, Window(NOW - timedelta(hours=made.hours), NOW))
    assert found is not None
    return is_oldest_message_stuck(found, timeout)


def stuck(since: float) -> Then:
    """A head that always fails, and others behind it."""

    def then(played: Played) -> None:
        played.world.at(since, partial(played.queue.send, "stuck", poison=True))
        sends(played, 1 / 30, since=since + 1, groups="stuck")

    return then


@pytest.mark.parametrize(
    "scene",
    [
        {"hours": 1.25, "then": stuck(600), "every": 60},
        {"hours": 1.25, "then": stuck(600), "every": 2},
        {"hours": 6, "then": stuck(295 * MINUTE), "outcomes": {FAILS: 0.01}},
    ],
)
def test_a_head_that_fails_is_found_while_others_flow(scene: dict[str, Any]) -> None:
    assert is_found(**scene)
    assert not is_found(**{**scene, "then": lambda _: None}), "nothing is wrong without it"


def _tried_twice(played: Played) -> None:
    burst(played, 500, 0.175, group="batch", work=2)
    usual = played.consumer.outcome

    def outcome(message: Message) -> str | float:
        first = message.group == "batch" and message.receives == 1
        return FAILS if first else usual(message)

    played.consumer.outcome = outcome


def _two_bursts(played: Played) -> None:
    for name, hours in (("batch", 1 / 6), ("more", played.world.end / HOUR - 0.025)):
        burst(played, 5_000, hours, group=name, work=2)


def _many_held(played: Played) -> None:
    for n in range(60):
        burst(played, 1, 0.25 + n / 500, group=f"held-{n}", work=20_000)


HEALTHY: dict[str, Then] = {
    "a burst is worked off in order": lambda p: burst(p, 5_000, 1 / 6, group="batch", work=2),
    "a burst of slow work": lambda p: burst(p, 300, 1 / 6, group="batch", work=25),
    "each of a burst is tried twice": _tried_twice,
    "a burst, and another before it is done": _two_bursts,
    "one message is held by a heartbeat": lambda p: burst(p, 3, 1 / 6, group="held", work=20_000),
    "many are held": _many_held,
    "a group gets more than it can work off": lambda p: sends(p, 1, groups="slow", work=60),
}


@pytest.mark.parametrize(
    ("hours", "timeout", "every", "fails"),
    [(1.25, 30, 10, 0.1), (1.75, 5, 10, 0), (1.25, 30, NEVER, 0), (1.75, 5, NEVER, 0.1)],
)
@pytest.mark.parametrize("what", HEALTHY)
def test_what_only_looks_like_it_is_not_found(
    what: str, hours: float, timeout: int, every: float, fails: float
) -> None:
    shown: Any = {"consumer": {"heartbeats": True}, "outcomes": {FAILS: fails}}
    assert not is_found(1, timeout, every, hours=hours, then=HEALTHY[what], **shown)


@pytest.mark.parametrize(("groups", "found"), [(1, True), (2, False)])
def test_where_nothing_gets_through_one_group_alone_is_a_group_s_matter(
    groups: int, *, found: bool
) -> None:
    """With several the consumer fails with all."""

    def then(played: Played) -> None:
        for n in range(groups):
            burst(played, 10, 1 / 6, group=f"{n}", poison=True)

    assert is_found(hours=1.25, every=NEVER, then=then) is found
