"""Queues whose faults one look misses, and their healthy twins.

A queue whose consumer fails fast, or whose DLQ takes everything, is empty in most minutes. Other
faults show only over days, or only in a fact about the consumer. Each fault here is simulated from
its cause, message by message; its traffic comes near to what was seen on such queues. `ill` are the
right names of the fault: any of them may come first. `also` are names that are true as well.

Each fault begins early enough that it is the same in four looks, the first of them 80 minutes
before the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random
from typing import Any

from tests.prove.look_alikes import (
    ARRIVING,
    CONSUMER_CRASHES,
    ERRORS,
    EXPIRE,
    FAILING,
    GROWS,
    MISSING,
    TIMES_OUT,
    TOO_SHORT,
    LookAlike,
    SceneRun,
    bad_messages,
    between,
    burst,
    deploy_at,
    fails_between,
    long_tail,
    now_and_then,
    old_dead,
)
from tests.prove.simulated_queues import (
    CRASHES,
    DONE,
    FAILS,
    HOUR,
    MINUTE,
    TWICE,
    Consumer,
    SimulatedFunction,
    SimulatedMessage,
)

STOPPED = "consumer_stopped"
THROTTLED = "consumer_throttled"
REDRIVE_LOOP = "redrive_loop"
HEARTBEAT = "heartbeat_ends_early"
IN_FLIGHT = "in_flight_limit"
ABOUT_TO_EXPIRE = "messages_about_to_expire"
DAYS = 24.0


def plain(**attributes: Any) -> dict[str, Any]:
    """Return the attributes of a standard queue whose messages name no group."""
    return {"is_fair": False, **attributes}


def at_times(share: float, long_seconds: float, seconds: float) -> Callable[[Random], float]:
    """Return a function that chooses how long the work on a message takes: seldom for long."""
    return lambda random: long_seconds if random.random() < share else seconds


def works_until(hour: float, workers: int = 4) -> Callable[[float], float]:
    """Return the number of workers: all of them up to this hour of the world, then none."""
    return lambda at: workers if at < hour * HOUR else 0


def works_after(hour: float, workers: int = 8) -> Callable[[float], float]:
    return lambda at: 0 if at < hour * HOUR else workers


def disable_mapping(hours_ago: float) -> Callable[[SceneRun], None]:
    """A person disables the event source mapping."""

    def then(played: SceneRun) -> None:
        function = played.consumer.function
        assert function
        disabled_at = played.world.end - hours_ago * HOUR

        def disable() -> None:
            function.enabled = False
            function.mapping_changed_at = disabled_at
            played.consumer.workers = lambda _: 0

        played.world.at(disabled_at, disable)

    return then


def delete_function(hours_ago: float) -> Callable[[SceneRun], None]:
    """The function is deleted. Its mapping stays, and receives nothing any more."""

    def then(played: SceneRun) -> None:
        function = played.consumer.function
        assert function

        def delete() -> None:
            function.is_deleted = True
            played.consumer.workers = lambda _: 0

        played.world.at(played.world.end - hours_ago * HOUR, delete)

    return then


def send_few(messages: int, hours_ago: float, **how: Any) -> Callable[[SceneRun], None]:
    """Some messages come within two seconds, and no others."""

    def then(played: SceneRun) -> None:
        burst(played, messages, played.world.end / HOUR - hours_ago, **how)

    return then


def resend_dead_messages(every_seconds: float) -> Callable[[SceneRun], None]:
    """A job takes the DLQ's messages and sends them to the source again, as new ones."""

    def then(played: SceneRun) -> None:
        bad_messages(20)(played)

        def resend() -> None:
            while taken := played.dlq.receive(10):
                for message, handle in taken:
                    played.queue.send(poison=True)
                    played.dlq.delete(message, handle)

        played.world.every(every_seconds, resend, every_seconds)

    return then


def redrive_dead_messages(every_seconds: float) -> Callable[[SceneRun], None]:
    """A schedule starts a message movement task again and again. SQS counts no send for it."""

    def then(played: SceneRun) -> None:
        bad_messages(20)(played)

        def redrive() -> None:
            played.dlq.note_move()
            for message in list(played.dlq.present):
                played.dlq.lose(message)
                back = SimulatedMessage(played.world.now, message.order, is_poison=True)
                played.queue.arrive(back)

        played.world.every(every_seconds, redrive, every_seconds)

    return then


def redrive_once(hour: float) -> Callable[[SceneRun], None]:
    """All messages of an hour failed; a person moved them back when the fault was repaired."""

    def then(played: SceneRun) -> None:
        fails_between(hour - 1.5, hour - 0.5)(played)

        def redrive() -> None:
            played.dlq.note_move()
            for message in list(played.dlq.present):
                played.dlq.lose(message)
                played.queue.arrive(SimulatedMessage(played.world.now, message.order))

        played.world.at(hour * HOUR, redrive)

    return then


def redrive_after_each_repair(*hours: float) -> Callable[[SceneRun], None]:
    """Three times all messages of ten minutes fail; after each repair a person moves them back."""

    def then(played: SceneRun) -> None:
        world = played.world
        played.consumer.outcome = lambda _: (
            FAILS if any(0 < hour - world.now / HOUR < 1 / 6 for hour in hours) else DONE
        )

        def redrive() -> None:
            played.dlq.note_move()
            for message in list(played.dlq.present):
                played.dlq.lose(message)
                played.queue.arrive(SimulatedMessage(world.now, message.order))

        for hour in hours:
            world.at((hour + 0.1) * HOUR, redrive)

    return then


def bad_share(one_in: int) -> Callable[[SceneRun], None]:
    """One kind of message always fails; the others are finished at once."""

    def then(played: SceneRun) -> None:
        played.consumer.outcome = lambda message: FAILS if message.order % one_in == 0 else DONE

    return then


def archive_dead_messages(every_seconds: float) -> Callable[[SceneRun], None]:
    """A few messages fail all the time. A job stores what is in the DLQ elsewhere."""

    def then(played: SceneRun) -> None:
        def archive() -> None:
            while taken := played.dlq.receive(10):
                for message, handle in taken:
                    played.dlq.delete(message, handle)

        played.consumer.outcome = lambda message: FAILS if message.order % 12 == 0 else DONE
        played.world.every(every_seconds, archive, every_seconds)

    return then


def give_back_and_finish(seconds: float) -> Callable[[SceneRun], None]:
    """The consumer polls a slow partner: it gives each message back three or four times."""

    def then(played: SceneRun) -> None:
        def outcome(message: SimulatedMessage) -> str | float:
            polls = 4 + message.order % 2
            return seconds if message.receives < polls else DONE

        played.consumer.outcome = outcome

    return then


def look_in_console(*hours_ago: float) -> Callable[[SceneRun], None]:
    """Three messages have waited for a day; a person looks at them and deletes none."""

    def then(played: SceneRun) -> None:
        for message in range(3):
            played.world.at(message + 1, played.queue.send)
        for hours in hours_ago:
            played.world.at(played.world.end - hours * HOUR, lambda: played.queue.receive(10))

    return then


def park(messages: int) -> Callable[[SceneRun], None]:
    """Messages were put aside long ago, and wait until a person decides about them."""

    def then(played: SceneRun) -> None:
        burst(played, messages, 1)

    return then


def scale_to_zero(wake_at: int, start_seconds: float) -> Callable[[SceneRun], None]:
    """No consumer runs until `wake_at` messages wait. It stops when the queue is empty."""

    def then(played: SceneRun) -> None:
        running_since = inf

        def scale() -> None:
            nonlocal running_since
            waiting = played.queue.tally["visible"]
            if running_since == inf and waiting >= wake_at:
                running_since = played.world.now + start_seconds
            elif not played.queue.present:
                running_since = inf

        played.world.every(15, scale)
        played.consumer.workers = lambda at: 5 if at >= running_since else 0

    return then


def times_out_between(first: float, last: float) -> Callable[[SceneRun], None]:
    """A function waits for a dependency that is down, up to its own timeout."""

    def then(played: SceneRun) -> None:
        world = played.world
        random = world.random
        played.consumer.work = lambda: (
            60.0 if first < world.now / HOUR < last else random.uniform(0.1, 0.3)
        )

    return then


def times_out_while_busy(played: SceneRun) -> None:
    """Of the last hour's messages, most come while the dependency is down for ten minutes."""
    hour = played.world.end / HOUR - 2
    times_out_between(hour, hour + 1 / 6)(played)
    for minute in range(8):
        burst(played, 5, hour + 0.01 + minute / 60)


def second_mapping_disabled(played: SceneRun) -> None:
    """An old version's mapping is disabled; the new version reads the queue."""
    old = SimulatedFunction(f"{played.queue.name}-old", enabled=False, mapping_changed_at=0)
    Consumer(played.queue, lambda: 1, lambda _: 0, function=old)


def batches_of_ten(played: SceneRun) -> None:
    for tenth in range(5, 10 * int(played.world.end // HOUR), 2):
        burst(played, 12, tenth / 10)


def leak_until_limit(played: SceneRun) -> None:
    """The consumer receives at once and deletes next to nothing: it stores what it has received."""
    played.consumer.outcome = lambda _: FAILS if played.world.random.random() > 0.007 else DONE


_Scene = partial(LookAlike, queue=plain())
_NoDlq = partial(_Scene, dies_after=0)
_Lambda = partial(_Scene, timeout=30, workers=10)

FAULTS: dict[str, LookAlike] = {
    "fails at once, DLQ takes all": _Scene(
        0.0864,
        between(0.05, 0.3),
        10,
        (FAILING,),
        (ARRIVING,),
        outcomes={0.0: 1},
        dies_after=5,
        timeout=10,
    ),
    "fails in bursts, DLQ takes all": _Scene(
        now_and_then(15 * MINUTE, 150, 0.16, 0),
        workers=20,
        ill=(FAILING,),
        also=(ARRIVING,),
        outcomes={FAILS: 1},
        timeout=30,
    ),
    "one message in eight fails, DLQ takes it": _Scene(
        0.05, ill=(FAILING,), also=(ARRIVING,), dies_after=3, timeout=10, then=bad_share(8)
    ),
    "one message in thirty fails, DLQ takes it": _Scene(
        0.3, ill=(FAILING,), also=(ARRIVING,), dies_after=4, timeout=20, then=bad_share(30)
    ),
    "fails since a deployment, DLQ takes all": _Scene(
        0.03,
        ill=(FAILING,),
        also=(ARRIVING,),
        dies_after=3,
        timeout=10,
        then=fails_between(4.5, 9),
    ),
    "fails for a day, DLQ takes all": _Scene(
        0.01,
        ill=(FAILING,),
        also=(ARRIVING,),
        dies_after=2,
        timeout=5,
        hours=3 * DAYS,
        then=fails_between(2 * DAYS, 3 * DAYS),
    ),
    "FIFO, each message fails, DLQ takes all": LookAlike(
        0.01,
        between(0.1, 0.5),
        ill=(FAILING,),
        also=(ARRIVING,),
        groups=8,
        outcomes={FAILS: 1},
        dies_after=3,
        timeout=10,
    ),
    "late deletes, queue often empty": _Scene(
        0.11, between(1.5, 9.5), 30, (TOO_SHORT,), dies_after=50, timeout=6
    ),
    "late deletes, five minutes an hour": _Scene(
        now_and_then(HOUR, 300, 0.5, 0), between(4, 14), 60, (TOO_SHORT,), dies_after=50, timeout=8
    ),
    "late deletes of a few messages": _Scene(
        0.004, between(14, 34.5), 30, (TOO_SHORT,), dies_after=50, timeout=30
    ),
    "late deletes of one message in fifty": _Scene(
        0.25, at_times(1 / 50, 45, 3), 60, (TOO_SHORT,), dies_after=50, timeout=30
    ),
    "function fails": _Lambda(
        0.016,
        between(0.2, 2),
        ill=(ERRORS,),
        also=(FAILING, ARRIVING),
        outcomes={FAILS: 0.96},
        function={"reports_items": False, "batch": 1, "timeout_seconds": 5},
        dies_after=2,
    ),
    "function fails for two minutes of messages": _Lambda(
        0,
        between(0.2, 2),
        workers=20,
        ill=(ERRORS,),
        also=(FAILING, ARRIVING),
        outcomes={FAILS: 1},
        function={"reports_items": False, "batch": 1, "timeout_seconds": 5},
        then=send_few(17, 3.4),
    ),
    "function fails in a third of its runs": _Lambda(
        0.04,
        between(0.2, 2),
        ill=(ERRORS,),
        also=(ARRIVING,),
        outcomes={FAILS: 0.33},
        function={"reports_items": False, "batch": 1, "timeout_seconds": 5},
        dies_after=3,
    ),
    "function times out for two minutes of messages": _Lambda(
        0,
        between(20, 40),
        workers=20,
        ill=(TIMES_OUT,),
        also=(ERRORS, FAILING, ARRIVING),
        function={"batch": 1, "timeout_seconds": 15},
        dies_after=3,
        then=send_few(18, 3.4),
    ),
    "function times out in a third of its runs": _Lambda(
        0.03,
        between(3, 13.5),
        ill=(TIMES_OUT,),
        also=(ERRORS,),
        function={"batch": 1, "timeout_seconds": 10},
        dies_after=20,
        timeout=60,
    ),
    "function times out on full batches": _Lambda(
        0,
        between(2, 4),
        workers=2,
        ill=(TIMES_OUT,),
        also=(ERRORS, ARRIVING),
        function={"timeout_seconds": 15},
        dies_after=5,
        timeout=90,
        then=batches_of_ten,
    ),
    "reserved concurrency of 0, DLQ takes all": _Lambda(
        0.02,
        ill=(THROTTLED,),
        also=(STOPPED, FAILING, ARRIVING, GROWS),
        function={"reserved": 0},
        dies_after=3,
        timeout=60,
    ),
    "reserved concurrency of 0, messages wait": _Lambda(
        0.02,
        ill=(THROTTLED,),
        also=(STOPPED, FAILING, GROWS),
        function={"reserved": 0},
        dies_after=0,
        timeout=180,
    ),
    "reserved concurrency of 1, DLQ takes what is throttled": _Lambda(
        0.4,
        between(2, 4),
        ill=(THROTTLED,),
        also=(ARRIVING, FAILING, GROWS),
        function={"reserved": 1, "batch": 1},
        dies_after=3,
        timeout=60,
    ),
    "function fails to start": _Lambda(
        0.02,
        ill=(ERRORS,),
        also=(FAILING, ARRIVING),
        function={"starts": lambda _: False, "timeout_seconds": 20},
        dies_after=3,
        timeout=120,
    ),
    "function fails to start since a deployment": _Lambda(
        0.05,
        ill=(ERRORS,),
        also=(FAILING, ARRIVING),
        function={"starts": lambda at: at < 6 * HOUR, "timeout_seconds": 20},
        dies_after=3,
        timeout=120,
    ),
    "mapping disabled, messages wait": _Lambda(
        0.08, ill=(STOPPED,), also=(GROWS,), function={}, timeout=180, then=disable_mapping(3.9)
    ),
    "mapping of a deleted function, messages wait": _Lambda(
        0.0026, ill=(STOPPED,), also=(GROWS,), function={}, timeout=180, then=delete_function(3.9)
    ),
    "in-flight limit": _Scene(
        7.5,
        lambda _: 0.05,
        works_after(2),
        (IN_FLIGHT,),
        (FAILING, GROWS),
        consumer={"batch": 10},
        timeout=12 * HOUR,
        then=leak_until_limit,
    ),
    "consumer stopped, no Lambda": _Scene(
        0.19, ill=(STOPPED,), also=(GROWS,), workers=works_until(1.2)
    ),
    "consumer stopped after four days": _Scene(
        0.01,
        ill=(STOPPED,),
        also=(GROWS,),
        workers=works_until(4 * DAYS - 7),
        hours=4 * DAYS,
    ),
    "backlog grows": _Scene(1.5, between(2.2, 3.2), 1, (GROWS,), also=(ABOUT_TO_EXPIRE,)),
    "crash loop": _Scene(
        0.0415, ill=(CONSUMER_CRASHES,), outcomes={CRASHES: 0.46}, dies_after=50, timeout=600
    ),
    "one message in ten crashes the consumer once": _Scene(
        0.08, workers=8, ill=(CONSUMER_CRASHES,), outcomes={CRASHES: 0.1}, timeout=900
    ),
    "six poison messages, no DLQ": _NoDlq(0.06, ill=(MISSING,), timeout=150, then=bad_messages(6)),
    "two poison messages, no DLQ, bursts": _NoDlq(
        now_and_then(HOUR, 300, 0.6, 0), ill=(MISSING,), timeout=120, then=bad_messages(2)
    ),
    "fails in part, cannot keep up": _Scene(
        0.68,
        between(2.2, 4.3),
        1,
        (FAILING, GROWS),
        outcomes={FAILS: 0.19},
        dies_after=50,
        timeout=30,
    ),
    "job sends dead messages back": _Scene(
        0.02,
        ill=(REDRIVE_LOOP,),
        also=(ARRIVING,),
        dies_after=3,
        timeout=30,
        then=resend_dead_messages(10 * MINUTE),
    ),
    "schedule redrives the DLQ": _Scene(
        0.02,
        ill=(REDRIVE_LOOP,),
        also=(ARRIVING,),
        dies_after=3,
        timeout=30,
        then=redrive_dead_messages(30 * MINUTE),
    ),
    "messages expire, nobody reads": _NoDlq(
        0.04,
        workers=0,
        ill=(EXPIRE, STOPPED),
        also=(ABOUT_TO_EXPIRE,),
        queue=plain(retention_seconds=4 * HOUR),
        hours=30,
    ),
    "messages expire, consumer is too slow": _Scene(
        0.15,
        between(20, 24),
        1,
        (EXPIRE,),
        (ABOUT_TO_EXPIRE, GROWS),
        queue=plain(retention_seconds=2 * HOUR),
        hours=11,
    ),
    "heartbeat ends after four minutes": _Scene(
        0.03,
        between(100, 500),
        30,
        (HEARTBEAT,),
        consumer={"heartbeats": True, "heartbeat_limit_seconds": 240},
        dies_after=50,
    ),
    "heartbeat ends before the longest work": _Scene(
        0.03,
        long_tail(60, 1_200),
        30,
        (HEARTBEAT,),
        consumer={"heartbeats": True, "heartbeat_limit_seconds": 240},
        dies_after=50,
    ),
}

TWINS: dict[str, LookAlike] = {
    "gives back on purpose, no DLQ": _NoDlq(
        0.19, between(0.1, 0.5), 20, then=give_back_and_finish(4.0)
    ),
    "gives back on purpose, far DLQ": _Scene(
        0.1, between(0.1, 0.5), 20, dies_after=30, then=give_back_and_finish(10.0)
    ),
    "gives back by chance, no DLQ": _NoDlq(
        0.19, between(0.1, 0.5), 20, outcomes={7.0: 0.77}, timeout=60
    ),
    "half fail at first, all are finished": _Scene(
        0.08, outcomes={FAILS: 0.5}, workers=10, dies_after=30, timeout=10
    ),
    "work ends just before the timeout": _Scene(0.11, between(1, 5.5), 30, timeout=6),
    "work on a few messages ends just before the timeout": _Scene(
        0.004, between(14, 29), 30, timeout=30
    ),
    "few messages, a fifth deleted twice at once": _Scene(0.004, outcomes={TWICE: 0.2}, timeout=30),
    "few messages, a fifth fails at first": _Scene(
        0.004, workers=10, outcomes={FAILS: 0.2}, dies_after=30, timeout=30
    ),
    "one message in fifty deleted twice at once": _Scene(
        0.25, outcomes={TWICE: 0.02}, workers=10, timeout=30
    ),
    "one message in fifty fails at first": _Scene(
        0.25, outcomes={FAILS: 0.02}, workers=10, dies_after=30, timeout=30
    ),
    "a burst of work each hour, one message in fifty fails at first": _Scene(
        now_and_then(HOUR, 300, 4, 0), outcomes={FAILS: 0.02}, workers=10, dies_after=30, timeout=30
    ),
    "function fails at times, all are finished": _Lambda(
        0.05,
        between(0.2, 2),
        outcomes={FAILS: 0.02},
        function={"reports_items": False, "batch": 1, "timeout_seconds": 5},
        dies_after=10,
    ),
    "function times out for ten minutes": _Lambda(
        0,
        workers=4,
        also=(TIMES_OUT, ERRORS),
        function={"timeout_seconds": 15},
        dies_after=20,
        then=times_out_while_busy,
    ),
    "reserved concurrency of 5 is enough": _Lambda(
        0.2, between(1, 3), workers=5, function={"reserved": 5, "batch": 1}, timeout=60
    ),
    "reserved concurrency of 2, a few runs are throttled": _Lambda(
        0.05, between(0.5, 1.5), workers=5, function={"reserved": 2, "batch": 1}, dies_after=10
    ),
    "reserved concurrency of 0, queue unused": _Lambda(
        0, workers=0, function={"reserved": 0}, timeout=180
    ),
    "function failed to start for ten minutes": _Lambda(
        0.05,
        also=(ERRORS,),
        function={"starts": lambda at: not 4 * HOUR < at < 4 * HOUR + 600, "timeout_seconds": 20},
        dies_after=20,
        timeout=120,
    ),
    "mapping disabled, queue unused": _Lambda(
        0, function={"enabled": False, "mapping_changed_at": 0.0}, workers=0, timeout=180
    ),
    "old mapping disabled, new one reads": _Lambda(
        0.05, function={}, timeout=180, then=second_mapping_disabled
    ),
    "thousands in flight, in work": _Scene(
        0.8, between(2_500, 3_500), 9_000, consumer={"heartbeats": True}, timeout=600
    ),
    "daily drain": _Scene(
        0.01, workers=now_and_then(DAYS * HOUR, 0.5 * HOUR, 30, 0), hours=4 * DAYS + 9
    ),
    "hourly drain": _Scene(0.03, workers=now_and_then(HOUR, 300, 20, 0), hours=2 * DAYS),
    "drain every four hours": _Scene(
        0.02, workers=now_and_then(4 * HOUR, 600, 20, 0), hours=2 * DAYS
    ),
    "scale to zero, starts at a hundred": _Scene(
        0.02, hours=DAYS, then=scale_to_zero(100, start_seconds=90)
    ),
    "scale to zero, slow start": _Scene(
        now_and_then(2 * HOUR, 600, 0.1, 0), hours=DAYS, then=scale_to_zero(1, start_seconds=240)
    ),
    "burst each hour, worked off in time": _Scene(
        now_and_then(HOUR, 120, 2.5, 0), between(4, 8), 2, timeout=60
    ),
    "deployments, timeout of ten minutes": _Scene(
        0.08, workers=8, timeout=600, then=deploy_at(2.5, 4, 5.5, 6.9)
    ),
    "consumer away for fifteen minutes": _Scene(
        0.08, then=lambda played: played.consumer.deploy_at(5.6 * HOUR, 15 * MINUTE)
    ),
    "redriven once after the repair": _Scene(
        0.03, dies_after=2, timeout=10, hours=9, then=redrive_once(4)
    ),
    "redriven after each of three repairs": _Scene(
        0.05,
        also=(ARRIVING, FAILING),
        dies_after=2,
        timeout=10,
        then=redrive_after_each_repair(4, 5.5, 7),
    ),
    "job archives dead messages": _Scene(
        0.05,
        also=(ARRIVING, FAILING),
        dies_after=3,
        timeout=30,
        then=archive_dead_messages(20 * MINUTE),
    ),
    "heartbeat outlasts the work": _Scene(
        0.03,
        between(100, 500),
        30,
        consumer={"heartbeats": True, "heartbeat_limit_seconds": 3_600},
    ),
    "catches up after a stop": _Scene(0.05, workers=works_after(5.5, 12), dies_after=4),
    "person looks at three old messages": _NoDlq(
        0, workers=0, hours=30, then=look_in_console(4.5, 4.4)
    ),
    "archive": _NoDlq(0.01, workers=0, queue=plain(retention_seconds=1_209_600), hours=4 * DAYS),
    "parked queue": _NoDlq(
        0, workers=0, queue=plain(retention_seconds=1_209_600), hours=2 * DAYS, then=park(300)
    ),
    "old DLQ that nobody empties": _Scene(0.05, then=old_dead),
    "short retention on purpose": _Scene(
        0.15, between(8, 16), 1, queue=plain(retention_seconds=600)
    ),
}
# Healthy queues of which people may disagree. A finding that is mere hygiene may name them.
DEBATABLE = frozenset(
    {
        "person looks at three old messages",
        "archive",
        "parked queue",
        "old DLQ that nobody empties",
        "short retention on purpose",
    }
)
