"""Queues that are ill, and healthy ones that look alike: who sends to them and who reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import exp
from random import Random
from typing import Any

from tests.prove.simulated_queues import (
    CRASHES,
    DONE,
    FAILS,
    HOUR,
    MINUTE,
    REPEATED,
    TWICE,
    Consumer,
    SimulatedFunction,
    SimulatedMessage,
    SimulatedQueue,
    SimulatedWorld,
)

TOO_SHORT = "visibility_timeout_too_short"
FAILING = "consumer_failing"
ARRIVING = "dlq_messages_arriving"
BLOCKED = "fifo_group_blocked"
WASTES = "mapping_wastes_receives"
MISSING = "dlq_missing"
GROWS = "backlog_grows"
CONSUMER_CRASHES = "consumer_crashes"
ERRORS = "function_errors"
TIMES_OUT = "function_times_out"
EXPIRE = "messages_expire"
Rate = float | Callable[[float], float]


@dataclass
class SceneRun:
    """What a scene made, and the number that its seed chose."""

    world: SimulatedWorld
    queue: SimulatedQueue
    consumer: Consumer
    factor: float

    @property
    def dlq(self) -> SimulatedQueue:
        assert self.queue.dlq
        return self.queue.dlq


def between(least: float, most: float) -> Callable[[Random], float]:
    return lambda random: random.uniform(least, most)


def needs(seconds: int) -> dict[str, str]:
    """The tag that names the longest that a message may take."""
    return {"mendq:max-processing-seconds": f"{seconds}"}


QUICK = between(1, 5)


def long_tail(median: float, most: float) -> Callable[[Random], float]:
    """Log-normal: one in a hundred takes ten times what half of them take."""
    return lambda random: min(most, median * exp(random.gauss(0, 1)))


def now_and_then(every: float, lasts: float, high: float, low: float) -> Callable[[float], float]:
    """A rate or a number of workers that is high for a while, again and again."""
    return lambda seconds: high if seconds % every < lasts else low


@dataclass
class LookAlike:
    """A queue, who sends and who reads; `ill` names what a scan has to find, `also` what it may.

    `groups` of a FIFO queue, 0 for a standard one, which is fair and has `tenants`; `outcomes` are
    shares of receives; `dies_after` is maxReceiveCount, 0 for no DLQ, `timeout` the visibility
    timeout; `then` does the rest.
    """

    rate: Rate = 0.08
    work: Callable[[Random], float] = QUICK
    workers: Rate = 4
    ill: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    groups: int = 0
    tenants: int = 12
    outcomes: Mapping[str | float, float] = field(default_factory=dict)
    poison: float = 0
    dies_after: int = 4
    timeout: int = 60
    queue: Mapping[str, Any] = field(default_factory=dict)
    consumer: Mapping[str, Any] = field(default_factory=dict)
    function: Mapping[str, Any] | None = None
    then: Callable[[SceneRun], object] = lambda _: None
    hours: float = 8

    def play(self, name: str, seed: int) -> SimulatedWorld:
        world = SimulatedWorld(f"{name} {seed}", self.hours)
        random = world.random
        ending = ".fifo" * bool(self.groups)
        name = f"{name.replace(' ', '-').replace(',', '')}-{seed}"
        dlq = None
        if self.dies_after:
            dlq = SimulatedQueue(world, f"{name}-dlq{ending}", retention_seconds=1_209_600)
        given = {"receives": self.dies_after, "dlq": dlq, "is_fair": not ending, **self.queue}
        queue = SimulatedQueue(world, f"{name}{ending}", self.timeout, **given)
        function = None if self.function is None else SimulatedFunction(name, **self.function)
        batch = {"batch": function.batch} if function else {}
        shares = dict(self.outcomes)

        def outcome(message: SimulatedMessage) -> str | float:
            if message.is_poison:
                return FAILS
            others = 1 - sum(shares.values())
            (chosen,) = random.choices([*shares, DONE], [*shares.values(), others])
            return chosen

        workers = self.workers if callable(self.workers) else lambda _, most=self.workers: most
        consumer = Consumer(
            queue,
            lambda: self.work(random),
            workers,
            **{"outcome": outcome, "function": function, **batch, **self.consumer},
        )
        played = SceneRun(world, queue, consumer, random.uniform(0.7, 1.3))
        sends(played, self.rate, poison=self.poison, groups=self.groups or self.tenants)
        self.then(played)
        return world


def sends(
    played: SceneRun,
    rate: Rate,
    *,
    since: float = 0,
    poison: float = 0,
    groups: int | str = 0,
    work: float | None = None,
) -> None:
    """Messages at random, so many a second; of groups by number, or of one by its name."""
    world = played.world
    at = since
    random = world.random
    chosen = rate if callable(rate) else lambda _: rate
    minutes = max(24 * 60, int(world.end // MINUTE))
    most = played.factor * max(chosen(minute * MINUTE) for minute in range(minutes))
    while most and (at := at + random.expovariate(most)) < world.end:
        if random.random() * most > played.factor * chosen(at):
            continue
        group = groups if isinstance(groups, str) else f"{random.randrange(groups or 1)}"
        fails = random.random() < poison
        world.at(at, partial(played.queue.send, group, work, poison=fails))


def burst(played: SceneRun, messages: int, hours: float = 5, **how: Any) -> None:
    for n in range(messages):
        played.world.at(hours * HOUR + n / 100, lambda: played.queue.send(**how))


def for_three_hours(seconds: float) -> float:
    return 0.1 * (4 < seconds / HOUR < 7)


def full_batches(played: SceneRun) -> None:
    for n in range(12, 96):
        burst(played, 60, n / 12)


def empty_queue(queue: SimulatedQueue) -> None:
    for message in list(queue.present):
        queue.lose(message)


def redrive_dead_messages(played: SceneRun) -> None:
    """40 died long ago; for two hours they have been moved back."""
    played.dlq.moving = True
    for n in range(40):
        dead = SimulatedMessage(0, n)
        played.world.at(1, partial(played.dlq.arrive, dead))
        back = SimulatedMessage(0, n)
        moved_at = 6 * HOUR + n * 3 * MINUTE
        played.world.at(moved_at, partial(played.dlq.lose, dead))
        played.world.at(moved_at, partial(played.queue.arrive, back))


def handled_by_a_person(played: SceneRun) -> None:
    """Old messages of a DLQ are looked at, and then deleted."""
    for n in range(40):
        played.world.at(1, partial(played.dlq.arrive, SimulatedMessage(0, n)))
    for look in range(5):
        played.world.at((5 + look / 4) * HOUR, lambda: played.dlq.receive(10))

    def take() -> None:
        for message in played.dlq.receive(10):
            played.dlq.delete(*message)

    for n in range(4):
        played.world.at(7 * HOUR + n * MINUTE, take)


def deploy_at(*hours: float) -> Callable[[SceneRun], None]:
    def then(played: SceneRun) -> None:
        for hour in hours:
            played.consumer.deploy_at(hour * HOUR)

    return then


def three_producers(played: SceneRun) -> None:
    for rate in (0.02, now_and_then(900, 60, 0.5, 0)):
        sends(played, rate)


def old_dead(played: SceneRun) -> None:
    for n in range(1, 30):
        played.dlq.arrive(SimulatedMessage(0, -n))


def fails_between(first: float, last: float) -> Callable[[SceneRun], None]:
    """Each receive comes to nothing between two hours."""

    def then(played: SceneRun) -> None:
        world = played.world
        played.consumer.outcome = lambda _: FAILS if first < world.now / HOUR < last else DONE

    return then


def stuck_group(played: SceneRun) -> None:
    """One message of one group fails each time; others follow it."""
    played.world.at(2 * HOUR, lambda: played.queue.send("stuck", poison=True))
    sends(played, 0.01, since=2 * HOUR + 1, groups="stuck")


def bad_messages(how_many: int) -> Callable[[SceneRun], None]:
    """Send this many messages that always fail, all in the first two hours."""

    def then(played: SceneRun) -> None:
        for n in range(how_many):
            at = (0.5 + 1.5 * n / how_many) * HOUR
            played.world.at(at, partial(played.queue.send, f"{n}", poison=True))

    return then


def give_back(times: int, seconds: float) -> Callable[[SceneRun], None]:
    """The consumer returns each message this many times before it handles it, as frameworks do."""

    def then(played: SceneRun) -> None:
        played.consumer.outcome = lambda message: seconds if message.receives < times else DONE

    return then


def repeats(played: SceneRun) -> None:
    played.world.every(5 * MINUTE, lambda: played.queue.count(REPEATED))


# What several scenes have in common.
_of_20_groups = partial(LookAlike, groups=20, workers=10)
_fifo = partial(LookAlike, groups=8, workers=8)
_late = partial(LookAlike, work=between(20, 75), ill=(TOO_SHORT,), timeout=30, dies_after=50)
_dead = partial(_late, rate=for_three_hours, queue={"tags": needs(50)}, dies_after=3)
_stuck = partial(LookAlike, ill=(BLOCKED,), also=(FAILING, GROWS), dies_after=0, then=stuck_group)
_no_dlq = partial(LookAlike, dies_after=0)
_stays = partial(_no_dlq, ill=(MISSING,))
_extends = partial(LookAlike, work=between(20, 300), workers=20, queue={"tags": needs(300)})
_extends = partial(_extends, consumer={"heartbeats": True})

HEALTHY: dict[str, LookAlike] = {
    "steady": LookAlike(),
    "bursts": LookAlike(now_and_then(2 * HOUR, 300, 2, 0.02)),
    "deployments with messages in flight": LookAlike(
        workers=8, then=deploy_at(3, 4.5, 5, 6.5, 7.9)
    ),
    "retries with backoff": LookAlike(outcomes={5.0: 0.08, 40.0: 0.05, 200.0: 0.02}, dies_after=20),
    "hourly job that reads": LookAlike(0.05, workers=now_and_then(HOUR, 600, 10, 0)),
    "hourly job that sends": LookAlike(now_and_then(HOUR, 120, 3, 0)),
    "night without traffic": LookAlike(lambda at: 0.15 * (at > 9 * HOUR), hours=12),
    "readers choose their own timeout": LookAlike(
        work=between(40, 120), workers=12, consumer={"receive_seconds": 300}
    ),
    "heartbeats": _extends(),
    "slow start": LookAlike(workers=lambda at: max(0, at / HOUR - 1)),
    "long tail of work": LookAlike(work=long_tail(4, 280), workers=8, timeout=300),
    "FIFO burst of one group, in order": _of_20_groups(
        then=lambda p: burst(p, 600, 6, group="burst", work=8)
    ),
    "FIFO slow group among quick ones": _of_20_groups(
        then=lambda p: sends(p, 0.012, groups="slow", work=50)
    ),
    "FIFO group held for an hour": _of_20_groups(
        consumer={"heartbeats": True}, then=lambda p: burst(p, 3, 6.5, group="long", work=HOUR)
    ),
    "FIFO retries now and then": _fifo(outcomes={FAILS: 0.05}, dies_after=0),
    "FIFO poison that the DLQ takes": _fifo(also=(ARRIVING,), then=stuck_group),
    "FIFO deployments": _fifo(then=deploy_at(4, 5, 6, 7.95)),
    "purge": LookAlike(
        workers=0, then=lambda p: p.world.at(7 * HOUR, lambda: empty_queue(p.queue))
    ),
    "stale readings expire by intent": LookAlike(
        0.15, between(8, 16), 1, queue={"retention_seconds": 900}
    ),
    "delayed messages": LookAlike(queue={"delay_seconds": 900}),
    "redrive runs": LookAlike(0.03, then=redrive_dead_messages),
    "person empties the DLQ": LookAlike(then=handled_by_a_person),
    "autoscaling": LookAlike(
        now_and_then(3 * HOUR, HOUR, 0.3, 0.03), workers=lambda at: 2 + at % 11
    ),
    "fan-in of three producers": LookAlike(then=three_producers),
    "batches worked within the timeout": LookAlike(
        0.3, between(1, 4), 3, consumer={"batch": 10}, timeout=120
    ),
    "reader collects for five minutes": LookAlike(work=between(290, 310), workers=50, timeout=600),
    "partial batch failures": LookAlike(0.3, between(0.1, 1), outcomes={FAILS: 0.04}, function={}),
    "Lambda as AWS advises": LookAlike(work=long_tail(2, 25), function={}, timeout=180),
    "Lambda throttled in one burst": LookAlike(
        function={"throttled": now_and_then(8 * HOUR, HOUR, 0.3, 0)}, dies_after=10
    ),
    "Lambda that crashes once": LookAlike(
        function={"timeout_seconds": 600, "batch": 1},
        timeout=3_600,
        then=lambda p: p.world.at(6 * HOUR, lambda: p.queue.receive(1)),
    ),
    "Lambda that rarely fails a batch": LookAlike(
        outcomes={FAILS: 0.003}, function={"reports_items": False}, dies_after=20
    ),
    "quick Lambda with the default timeout": LookAlike(function={"batch": 1}, timeout=30),
    "timeout of hours, runs of half an hour": LookAlike(
        0.01,
        between(600, 2_000),
        workers=60,
        function={"timeout_seconds": 2_400, "batch": 1},
        timeout=4 * HOUR,
    ),
    "FIFO long work, nobody repeats": LookAlike(groups=8, timeout=900),
    "FIFO producers repeat, short work": LookAlike(groups=8, then=repeats),
    "spot instances that go": LookAlike(outcomes={CRASHES: 0.03}, workers=8),
    "deletes sent twice": LookAlike(outcomes={TWICE: 0.06}),
    "every delete sent twice": LookAlike(outcomes={TWICE: 0.95}),
    "dependency down for ten minutes": LookAlike(dies_after=50, then=fails_between(6, 6.17)),
    "catching up after an outage": LookAlike(0.15, workers=lambda at: 0 if at < 5 * HOUR else 12),
    "few messages, many long polls": LookAlike(0.002, workers=30),
    "short polls of a busy queue": LookAlike(
        0.2, between(0.1, 0.5), 2, consumer={"poll_seconds": 1}, queue={"wait_seconds": 0}
    ),
    "burst of one tenant, others first": LookAlike(
        0.3, workers=40, then=lambda p: burst(p, 5_000, 6, group="loud", work=20)
    ),
    "archive that nobody reads": LookAlike(0.05, workers=0, dies_after=0),
    "DLQ with old messages": LookAlike(then=old_dead),
    # Only if its seed sends one that fails, and from then on.
    "poison now and then, no DLQ": LookAlike(0.1, poison=0.0005, dies_after=0, also=(MISSING,)),
    "most receives fail, all are finished": LookAlike(
        outcomes={FAILS: 0.7}, dies_after=60, workers=8
    ),
    "workers crash often, all are finished": LookAlike(
        outcomes={CRASHES: 0.75}, workers=30, dies_after=99, also=(CONSUMER_CRASHES,)
    ),
    "given back twice by half": LookAlike(0.02, outcomes={30.0: 0.5}, dies_after=50),
    "given back eleven times": LookAlike(0.02, workers=30, dies_after=50, then=give_back(12, 5)),
    "given back twice by half, no DLQ": _no_dlq(0.02, outcomes={30.0: 0.5}),
    "given back eleven times, no DLQ": _no_dlq(0.004, workers=30, then=give_back(12, 20)),
    "some fail at first, no DLQ": _no_dlq(outcomes={FAILS: 0.1}),
    "a third fails at first, busy, no DLQ": _no_dlq(1.5, workers=20, outcomes={FAILS: 0.3}),
    "bursts, no DLQ": _no_dlq(now_and_then(2 * HOUR, 300, 2, 0.02)),
    "bursts that fail at first, no DLQ": _no_dlq(
        now_and_then(2 * HOUR, 300, 2, 0.02), outcomes={FAILS: 0.2}, workers=8
    ),
    "growing backlog, no DLQ": _no_dlq(0.5, workers=1, also=(GROWS,)),
    "growing backlog, given back at times, no DLQ": _no_dlq(
        1, workers=2, outcomes={5.0: 0.2}, also=(GROWS,)
    ),
    "slow work, no DLQ": _no_dlq(0.01, between(600, 2_000), 60, timeout=4 * HOUR),
    "long backoff, no DLQ": _no_dlq(0.02, outcomes={900.0: 0.05}),
    "deployments, no DLQ": _no_dlq(workers=8, then=deploy_at(3, 4.5, 5, 6.5, 7.9)),
    "dependency down for ten minutes, no DLQ": _no_dlq(then=fails_between(6, 6.17)),
    "batches one by one in time, tagged": LookAlike(
        work=between(2, 5), workers=3, consumer={"batch": 10}, queue={"tags": needs(5)}
    ),
    "queue browser left open": LookAlike(
        0.02,
        workers=0.0,
        dies_after=0,
        then=lambda p: p.world.every(20 * MINUTE, lambda: p.queue.receive(10), 3 * HOUR),
    ),
}
ILL: dict[str, LookAlike] = {
    "late deletes": _late(workers=30),
    "late deletes of half the messages": _late(work=between(15, 45), workers=30),
    "late deletes in bursts": _late(now_and_then(HOUR, 600, 0.5, 0.02), workers=40),
    "late deletes by batches": _late(
        now_and_then(600, 60, 1, 0.01), work=between(3, 8), workers=3, consumer={"batch": 10}
    ),
    "late deletes by batches, tagged": _late(
        now_and_then(600, 60, 1, 0.01),
        work=between(3, 8),
        workers=3,
        consumer={"batch": 10},
        queue={"tags": needs(8)},
    ),
    "late deletes after deployments": _late(workers=40, then=deploy_at(3, 5, 7)),
    "dead for want of time, work given up": _dead(
        workers=30, also=(ARRIVING, FAILING), timeout=20, outcomes={FAILS: 1}
    ),
    "dead for want of time, late deletes": _dead(
        work=between(35, 50), workers=60, also=(ARRIVING,), timeout=10
    ),
    "most messages are never finished": _no_dlq(
        poison=0.6, workers=8, ill=(FAILING,), also=(GROWS,)
    ),
    "nothing is finished, few messages": _no_dlq(
        0.003, outcomes={FAILS: 1}, ill=(FAILING,), also=(GROWS,)
    ),
    "nothing is finished after a deployment": _no_dlq(
        0.05, ill=(FAILING,), also=(GROWS,), then=fails_between(2.5, 9)
    ),
    "Lambda that always fails": LookAlike(
        function={"reports_items": False},
        outcomes={FAILS: 0.95},
        ill=(ERRORS,),
        also=(FAILING, ARRIVING, WASTES),
    ),
    "dependency down for hours": LookAlike(
        ill=(FAILING,), also=(GROWS,), dies_after=500, then=fails_between(4, 8)
    ),
    "workers that crash": LookAlike(
        outcomes={CRASHES: 0.9},
        workers=8,
        ill=(FAILING,),
        also=(CONSUMER_CRASHES, GROWS),
        dies_after=500,
    ),
    "poison": LookAlike(poison=0.03, ill=(ARRIVING,), also=(FAILING,), queue={"tags": needs(10)}),
    "poison, and a tag above the timeout": _extends(poison=0.08, ill=(ARRIVING,), also=(FAILING,)),
    "one poison message": LookAlike(
        ill=(ARRIVING,), then=lambda p: p.world.at(4 * HOUR, lambda: p.queue.send(poison=True))
    ),
    "mapping switched off": LookAlike(
        function={"enabled": False}, workers=0, ill=("consumer_stopped",), also=(GROWS,), rate=0.05
    ),
    "Lambda throttled": LookAlike(
        0.4,
        between(2, 4),
        workers=1,
        function={"throttled": lambda _: 0.5, "batch": 1},
        ill=("consumer_throttled",),
        also=(FAILING, GROWS),
        dies_after=100,
        timeout=180,
    ),
    "consumers fall behind": LookAlike(
        0.15,
        between(20, 24),
        1,
        ("messages_about_to_expire",),
        (GROWS, EXPIRE),
        queue={"retention_seconds": 4 * HOUR},
    ),
    "short polls for nothing": LookAlike(
        0.002,
        workers=12,
        ill=("empty_receives",),
        consumer={"poll_seconds": 0.5},
        queue={"wait_seconds": 0},
    ),
    "poison comes back for ever, no DLQ": LookAlike(
        0.004, poison=0.12, ill=(MISSING,), also=(FAILING, GROWS), dies_after=0
    ),
    "bad messages, nothing else": _stays(0, then=bad_messages(1)),
    "bad messages, few others": _stays(0.0006, then=bad_messages(2)),
    "bad messages, one other a minute": _stays(1 / 60, then=bad_messages(3)),
    "bad messages, one other a second": _stays(1, workers=20, then=bad_messages(3)),
    "bad messages, a thousand others a minute": _stays(
        17, between(0.5, 2), 60, timeout=30, then=bad_messages(5)
    ),
    "bad messages, busy by day": _stays(
        now_and_then(3 * HOUR, HOUR, 3, 0.2), workers=40, timeout=30, then=bad_messages(4)
    ),
    "bad messages, readers choose a longer timeout": _stays(
        0.05, timeout=30, consumer={"receive_seconds": 150}, then=bad_messages(3)
    ),
    "FIFO head of the only group fails": _stuck(0, groups=1, also=(MISSING, FAILING)),
    "FIFO one group stuck, others flow": _stuck(groups=5, workers=6),
    "FIFO one group stuck, DLQ far away": _stuck(groups=5, workers=6, dies_after=1_000),
    "Lambda that crashes, timeout of hours": LookAlike(
        work=between(1, 4),
        outcomes={FAILS: 0.02},
        function={"reports_items": False, "batch": 1},
        ill=("visibility_timeout_too_long",),
        # What crashes waits for hours, so the backlog grows.
        also=("backlog_grows",),
        timeout=4 * HOUR,
    ),
    "default timeout, slow Lambda": LookAlike(
        0.08, between(8, 26), ill=("visibility_timeout_default",), function={"batch": 1}, timeout=30
    ),
    "batches too large for the timeout": LookAlike(
        0.25,
        between(10, 14),
        workers=6,
        ill=("batch_outlasts_timeout",),
        also=(ARRIVING, TIMES_OUT, ERRORS),
        function={"timeout_seconds": 60},
    ),
    "one tenant holds every consumer": LookAlike(
        0.2,
        workers=40,
        ill=("noisy_message_groups",),
        also=(GROWS,),
        timeout=HOUR,
        then=lambda p: burst(p, 400, 5, group="loud", work=2_700),
    ),
    "FIFO producers repeat, long work": LookAlike(
        groups=8, ill=("dedup_interval_outlasted",), timeout=900, then=repeats
    ),
    "Lambda that gives whole batches back": LookAlike(
        0.01,
        between(0.1, 0.5),
        2,
        outcomes={FAILS: 0.04},
        function={"reports_items": False},
        dies_after=50,
        ill=(WASTES,),
        also=(ERRORS,),
        then=full_batches,
        timeout=180,
    ),
}
