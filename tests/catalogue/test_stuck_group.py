"""Test the detection of one blocked FIFO group, with simulated blocked and healthy queues.

`make prove NAMES=false_alarms` simulates queues for the whole scan in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from mendq.catalogue.fifo.stuck_group import is_oldest_message_stuck
from mendq.model.metrics import Window, select_series, summarize_series
from tests.prove.look_alikes import LookAlike, SceneRun, between, burst, sends
from tests.prove.simulated_queues import FAILS, HOUR, MINUTE, NOW, SimulatedMessage

Scenario = Callable[[SceneRun], object]
NEVER = 1e9
SERIES = select_series(["every queue", "FIFO"])


def is_found(seed: int = 1, timeout: int = 30, every: float = 10, **scene: Any) -> bool:
    """Simulate five flowing groups that get a message every `every` seconds, and the scene."""
    given = {"work": between(0, 2), "workers": 80, "groups": 5, "dies_after": 0, **scene}
    made = LookAlike(rate=5 / every, timeout=timeout, **given)
    world = made.play("fifo", seed)
    world.run(world.end)
    (queue,) = world.queues
    points = {key: list(queue.series(series.metric)) for key, series in SERIES.items()}
    measured = summarize_series(points, Window(NOW - timedelta(hours=made.hours), NOW))
    assert measured is not None
    return is_oldest_message_stuck(measured, timeout)


def make_stuck_group(since: float) -> Scenario:
    """Make a scenario in which a group's first message always fails and others wait behind it."""

    def then(played: SceneRun) -> None:
        played.world.at(since, partial(played.queue.send, "stuck", poison=True))
        sends(played, 1 / 30, since=since + 1, groups="stuck")

    return then


@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(
            {"hours": 1.25, "then": make_stuck_group(600), "every": 60}, id="a message a minute"
        ),
        pytest.param(
            {"hours": 1.25, "then": make_stuck_group(600), "every": 2}, id="one in two seconds"
        ),
        pytest.param(
            {"hours": 6, "then": make_stuck_group(295 * MINUTE), "outcomes": {FAILS: 0.01}},
            id="a few failures, blocked for an hour",
        ),
    ],
)
def test_fifo_group_among_others_is_found_only_if_its_first_message_keeps_failing(
    scene: dict[str, Any],
) -> None:
    assert is_found(**scene)
    assert not is_found(**{**scene, "then": lambda _: None})


def _tried_twice(played: SceneRun) -> None:
    burst(played, 500, 0.175, group="batch", work=2)
    usual = played.consumer.outcome

    def outcome(message: SimulatedMessage) -> str | float:
        first = message.group == "batch" and message.receives == 1
        return FAILS if first else usual(message)

    played.consumer.outcome = outcome


def _two_bursts(played: SceneRun) -> None:
    for name, hours in (("batch", 1 / 6), ("more", played.world.end / HOUR - 0.025)):
        burst(played, 5_000, hours, group=name, work=2)


def _many_held(played: SceneRun) -> None:
    for n in range(60):
        burst(played, 1, 0.25 + n / 500, group=f"held-{n}", work=20_000)


HEALTHY: dict[str, Scenario] = {
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
def test_healthy_fifo_queue_that_only_looks_blocked_is_not_found(
    what: str, hours: float, timeout: int, every: float, fails: float
) -> None:
    shown: Any = {"consumer": {"heartbeats": True}, "outcomes": {FAILS: fails}}
    assert not is_found(1, timeout, every, hours=hours, then=HEALTHY[what], **shown)


@pytest.mark.parametrize(("groups", "found"), [(1, True), (2, False)])
def test_one_failing_fifo_group_counts_as_blocked_and_several_failing_groups_do_not(
    groups: int, *, found: bool
) -> None:
    """If several groups fail, the consumer fails at all messages."""

    def then(played: SceneRun) -> None:
        for n in range(groups):
            burst(played, 10, 1 / 6, group=f"{n}", poison=True)

    assert is_found(hours=1.25, every=NEVER, then=then) is found
