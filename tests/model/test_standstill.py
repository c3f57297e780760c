"""One FIFO group that stands still among others, and healthy queues that look like it, played
through second by second as SQS would count them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from mendq.model.metrics import Measured, Window, measured

SINCE = datetime(2026, 11, 16, 3, tzinfo=UTC)
NEVER = None


@dataclass
class Group:
    """Messages in order, each (sent at, seconds of work); the first is held until a second, and
    then deleted or not.
    """

    waiting: deque[tuple[int, int | None]] = field(default_factory=deque)
    held: tuple[int, bool] | None = None


@dataclass
class Traffic:
    """`sends` are (group, seconds of work) by the second; work that never ends well fails at once.

    `fails` is the share of receives that come to nothing by chance; work of less than 0 s fails the
    first time. Work that outlasts the
    visibility timeout is kept by a heartbeat.
    """

    minutes: int
    visibility_seconds: int = 30
    fails: float = 0
    seed: int = 1
    sends: dict[int, list[tuple[str, int | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def steady(self, group: str, every: int, work: int = 0, since: int = 0) -> None:
        for at in range(since, self.minutes * 60, every):
            self.sends[at].append((group, work))

    def burst(self, group: str, at: int, work: int | None, messages: int = 1) -> None:
        self.sends[at] += [(group, work)] * messages

    def measured(self) -> Measured:
        groups, chance = defaultdict[str, Group](Group), Random(self.seed)  # noqa: S311 - a game
        series = defaultdict[str, list[tuple[datetime, float]]](list)
        for minute in range(self.minutes):
            at = SINCE + timedelta(minutes=minute)
            for key, gauge in _gauges(groups, minute * 60).items():
                series[key].append((at, gauge))
            counts = dict.fromkeys(("sent", "received", "deleted"), 0)
            for now in range(minute * 60, minute * 60 + 60):
                for name, work in self.sends.get(now, ()):
                    groups[name].waiting.append((now, work))
                    counts["sent"] += 1
                for group in groups.values():
                    self._step(group, now, counts, chance.random)
            for key, count in counts.items():
                series[key].append((at, count))
        found = measured(series, Window(SINCE, SINCE + timedelta(minutes=self.minutes)))
        assert found is not None
        return found

    def _step(
        self, group: Group, now: int, counts: dict[str, int], chance: Callable[[], float]
    ) -> None:
        if group.held and group.held[0] <= now:
            if group.held[1]:
                group.waiting.popleft()
                counts["deleted"] += 1
            group.held = None
        if group.waiting and group.held is None:
            sent_at, work = group.waiting[0]
            if work is not NEVER and work < 0:
                group.waiting[0] = (sent_at, -work)
            if work is NEVER or work < 0 or chance() < self.fails:
                work = NEVER
            lasts = self.visibility_seconds if work is NEVER else max(work, 1)
            group.held = (now + lasts, work is not NEVER)
            counts["received"] += 1


def _gauges(groups: dict[str, Group], now: int) -> dict[str, int]:
    """As the queue stands at the beginning of a minute."""
    waiting = [each.waiting for each in groups.values() if each.waiting]
    held = sum(each.held is not None for each in groups.values())
    oldest = min((each[0][0] for each in waiting), default=now)
    visible = sum(map(len, waiting)) - held
    return {"age": now - oldest, "in_flight": held, "groups": held, "visible": visible}


def flowing(minutes: int, every: int = 10, seconds: int = 30, **over: float) -> Traffic:
    """Five groups that are worked off as they come."""
    traffic = Traffic(minutes, seconds, **over)  # type: ignore[arg-type]
    for n in range(5):
        traffic.steady(f"flows-{n}", every, work=n % 3, since=n)
    return traffic


def is_found(traffic: Traffic) -> bool:
    return traffic.measured().head_is_stuck(traffic.visibility_seconds)


@pytest.mark.parametrize(
    ("traffic", "since"),
    [
        (flowing(75), 600),
        (flowing(75, every=1), 600),
        (flowing(75, every=60), 600),
        (flowing(75, seconds=5), 600),
        (flowing(360, fails=0.01), 295 * 60),
        (flowing(360, seconds=120, fails=0.01), 295 * 60),
        (flowing(360, every=2), 295 * 60),
        (flowing(4, every=60, seconds=2), 3),
    ],
)
def test_a_head_that_fails_is_found_while_others_flow(traffic: Traffic, since: int) -> None:
    assert not is_found(traffic), "nothing is wrong yet"
    traffic.burst("stuck", since, NEVER)
    traffic.steady("stuck", 30, since=since + 1)
    assert is_found(traffic)


def _with(traffic: Traffic, *bursts: tuple[str, int, int | None, int]) -> Traffic:
    for group, at, work, messages in bursts:
        traffic.burst(group, at, work, messages)
    return traffic


def _overloaded(traffic: Traffic) -> Traffic:
    traffic.steady("slow", 1, work=60)
    return traffic


HEALTHY = {
    "a burst is worked off in order": lambda of: _with(of, ("batch", 600, 2, 5_000)),
    "a burst of slow work": lambda of: _with(of, ("batch", 600, 25, 300)),
    "each of a burst is tried twice": lambda of: _with(of, ("batch", 600, -2, 5_000)),
    "a burst, and another before it is done": lambda of: _with(
        of, ("batch", 600, 2, 5_000), ("more", of.minutes * 60 - 90, 2, 5_000)
    ),
    "one message is held by a heartbeat": lambda of: _with(of, ("held", 600, 20_000, 3)),
    "many are held": lambda of: _with(
        of, *((f"held-{n}", 900 + 7 * n, 20_000, 1) for n in range(60))
    ),
    "a group gets more than it can work off": _overloaded,
}


@pytest.mark.parametrize("fails", [0, 0.01, 0.1])
@pytest.mark.parametrize(("minutes", "seconds"), [(75, 30), (360, 30), (100, 5)])
@pytest.mark.parametrize("what", HEALTHY)
def test_what_only_looks_like_it_is_not_found(
    what: str, minutes: int, seconds: int, fails: float
) -> None:
    for seed in (1, 2):
        of = flowing(minutes, every=5, seconds=seconds, fails=fails, seed=seed)
        assert not is_found(HEALTHY[what](of))


def test_where_nothing_gets_through_one_group_alone_is_a_group_s_matter() -> None:
    one, two = Traffic(75), Traffic(75)
    for traffic, names in ((one, "a"), (two, "ab")):
        for name in names:
            traffic.burst(name, 600, NEVER, 10)
    assert is_found(one)
    assert not is_found(two), "the consumer fails with all"
