"""Queues of the consumer frameworks that people run: with a fault, and their healthy twins.

Each scene does what the framework does by its source and documentation, message by message: it
moves failures to an error queue, retries with copies, gives messages back, or sends its own
visibility timeout. `ill` are the right names of the fault: any of them may come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tests.prove.fault_score import FaultScore, ScannedQueue, list_names_by_scene
from tests.prove.hidden_faults import STOPPED, plain, works_until
from tests.prove.look_alikes import (
    CONSUMER_CRASHES,
    FAILING,
    TOO_SHORT,
    LookAlike,
    SceneRun,
    between,
    now_and_then,
)
from tests.prove.measured_account import MEASURED, scan_worlds
from tests.prove.simulated_queues import (
    DONE,
    FAILS,
    HOUR,
    MINUTE,
    SimulatedMessage,
    SimulatedQueue,
    chance,
)

ERROR_QUEUE = "error_queue_grows"
_JUDGED = frozenset({*MEASURED, ERROR_QUEUE})
_TWO_WEEKS_SECONDS = 1_209_600


def move_failures(
    ending: str, *, gives_back: int = 0, copies: int = 0
) -> Callable[[SceneRun], None]:
    """The framework sends messages that failed to an error queue, and deletes them.

    Before, it gives a message back `gives_back` times, and sends `copies` copies of it.
    """

    def then(played: SceneRun) -> None:
        error_queue = SimulatedQueue(
            played.world, f"{played.queue.name}{ending}", retention_seconds=_TWO_WEEKS_SECONDS
        )
        rounds_by_message = dict[int, int]()

        def finish(message: SimulatedMessage) -> str | float:
            if not message.is_poison:
                return DONE
            if message.receives <= gives_back:
                return 1.0
            rounds = rounds_by_message.pop(message.order, 0)
            if rounds == copies:
                error_queue.send()
                return DONE
            copy = SimulatedMessage(played.world.now, next(played.world.order), is_poison=True)
            rounds_by_message[copy.order] = rounds + 1

            def send_copy() -> None:
                played.queue.count("NumberOfMessagesSent")
                played.queue.arrive(copy)

            played.world.at(played.world.now + 10 * (rounds + 1), send_copy)
            return DONE

        played.consumer.outcome = finish

    return then


def retry_with_copies(share: float) -> Callable[[SceneRun], None]:
    """A try that fails is deleted, and a copy is sent a little later. In the end all succeed."""

    def then(played: SceneRun) -> None:
        def finish(_: SimulatedMessage) -> str | float:
            if played.world.random.random() < share:
                played.world.at(played.world.now + 20, played.queue.send)
            return DONE

        played.consumer.outcome = finish

    return then


def give_back_at_first(share: float, seconds: float) -> Callable[[SceneRun], None]:
    """Some messages are given back once or twice, and are finished then."""

    def then(played: SceneRun) -> None:
        def finish(message: SimulatedMessage) -> str | float:
            fails = message.receives < 3 and played.world.random.random() < share
            return seconds if fails else DONE

        played.consumer.outcome = finish

    return then


def keep_old_failures(ending: str, messages: int) -> Callable[[SceneRun], None]:
    """The error queue holds messages from before the measured time, and gets no more."""

    def then(played: SceneRun) -> None:
        error_queue = SimulatedQueue(
            played.world, f"{played.queue.name}{ending}", retention_seconds=_TWO_WEEKS_SECONDS
        )
        for _ in range(messages):
            error_queue.send()

    return then


def read_error_reports(played: SceneRun) -> None:
    """An ordinary queue whose name ends like an error queue's, with a healthy consumer."""
    played.queue.name += "-errors"
    played.queue.arn += "-errors"


def kill_workers(every_seconds: float) -> Callable[[SceneRun], None]:
    """Scaling in, or the kernel, ends all workers at once. They give nothing back."""

    def then(played: SceneRun) -> None:
        def kill() -> None:
            played.consumer.release += 1
            played.consumer.busy = 0

        played.world.every(every_seconds, kill, every_seconds)

    return then


def hold_until_due(share: float, seconds: float) -> Callable[[SceneRun], None]:
    """Celery keeps tasks with a countdown in flight until they are due."""

    def then(played: SceneRun) -> None:
        random = played.world.random
        played.consumer.work = lambda: seconds if random.random() < share else 2

    return then


def acknowledge_nothing(played: SceneRun) -> None:
    """The consumer finishes its work and does not delete the message."""
    played.consumer.outcome = lambda _: FAILS


_Scene = partial(LookAlike, queue=plain())
_OwnTimeout = partial(_Scene, timeout=30)

FAULTS: dict[str, LookAlike] = {
    "MassTransit, every message fails": _Scene(
        0.05, ill=(ERROR_QUEUE,), poison=1, then=move_failures("_error"), dies_after=0
    ),
    "MassTransit, one in twenty fails": _Scene(
        0.1, ill=(ERROR_QUEUE,), poison=0.05, then=move_failures("_error")
    ),
    "MassTransit, messages of an unknown type": _Scene(
        0.05, ill=(ERROR_QUEUE,), poison=0.2, then=move_failures("_skipped"), dies_after=0
    ),
    "NServiceBus, one in ten fails": _Scene(
        0.05,
        ill=(ERROR_QUEUE,),
        poison=0.1,
        dies_after=10,
        then=move_failures("-error", gives_back=5, copies=3),
    ),
    "Rebus, one in fifteen fails": _Scene(
        0.05,
        ill=(ERROR_QUEUE,),
        poison=0.07,
        timeout=300,
        dies_after=0,
        then=move_failures("-error", gives_back=4),
    ),
    "dramatiq, one in ten fails for good": _Scene(
        0.05,
        ill=(ERROR_QUEUE,),
        poison=0.1,
        dies_after=0,
        consumer={"receive_seconds": 43_200},
        then=move_failures("_dlq", copies=4),
    ),
    "KEDA, scaling in kills workers": _Scene(
        0.05,
        between(60, 240),
        30,
        ill=(CONSUMER_CRASHES,),
        timeout=600,
        dies_after=10,
        then=kill_workers(900),
    ),
    "Celery, a countdown above the timeout": _Scene(
        0.02,
        workers=200,
        ill=(TOO_SHORT,),
        timeout=300,
        dies_after=0,
        then=hold_until_due(0.5, 900),
    ),
    "Auto Loader, its stream has stopped": _Scene(
        0.01,
        between(1, 2),
        works_until(20),
        ill=(STOPPED,),
        dies_after=0,
        hours=30,
    ),
    "Shoryuken without auto_delete": _Scene(
        0.05, between(1, 4), ill=(FAILING,), also=("dlq_messages_arriving",),
        then=acknowledge_nothing,
    ),
}  # fmt: skip

TWINS: dict[str, LookAlike] = {
    "MassTransit, all succeeds": _Scene(0.05, then=move_failures("_error"), dies_after=0),
    "MassTransit, failures of last week": _Scene(
        0.05, then=keep_old_failures("_error", 40), dies_after=0, hours=30
    ),
    "NServiceBus, retries that help": _Scene(
        0.05, dies_after=20, then=give_back_at_first(0.1, 0.1)
    ),
    "Rebus, all succeeds": _Scene(
        0.05, timeout=300, then=move_failures("-error"), dies_after=0
    ),
    "Laravel, some are released": _Scene(
        0.05, dies_after=10, then=give_back_at_first(0.15, 5)
    ),
    "Celery, retries with copies": _Scene(
        0.05, timeout=1_800, dies_after=0, then=retry_with_copies(0.2)
    ),
    "Symfony, retries with copies": _Scene(0.05, timeout=60, then=retry_with_copies(0.1)),
    "Filebeat with its own timeout": _OwnTimeout(
        0.02, between(20, 90), consumer={"receive_seconds": 300, "heartbeats": True}
    ),
    "Vector with its own timeout": _OwnTimeout(
        0.05, between(10, 60), 10, consumer={"receive_seconds": 300}
    ),
    "Celery, tasks with a countdown": _Scene(
        0.02, workers=200, timeout=7_200, dies_after=0, then=hold_until_due(0.5, 3_000)
    ),
    "KEDA, workers end when they are done": _Scene(
        0.05, between(60, 240), 30, timeout=600, dies_after=10
    ),
    "dramatiq, nobody is killed": _Scene(
        0.04,
        between(20, 60),
        12,
        timeout=30,
        dies_after=0,
        queue=plain(tags={"mendq:consumer": "dramatiq"}),
        consumer={"receive_seconds": 43_200},
    ),
    "Auto Loader, once an hour": _Scene(
        0.01,
        between(0.5, 1),
        now_and_then(HOUR, 600, 4, 0),
        dies_after=0,
        hours=30,
    ),
    "a queue of error reports": _Scene(0.08, dies_after=0, then=read_error_reports),
}  # fmt: skip


def score_frameworks(seeds: Iterable[int]) -> FaultScore:
    """Scan all scenes once for each seed."""
    scenes = {**FAULTS, **TWINS}
    queues = list[ScannedQueue]()
    for seed in seeds:
        worlds = {name: scene.play(name, seed) for name, scene in scenes.items()}
        seconds_ago = chance(f"framework looks {seed}").uniform(MINUTE, 20 * MINUTE)
        result = scan_worlds(tuple(worlds.values()), seconds_ago, _JUDGED)
        names_by_scene = list_names_by_scene(result.findings, worlds)
        queues += [
            ScannedQueue(name, scene.ill, scene.also, (names_by_scene[name],))
            for name, scene in scenes.items()
        ]
    return FaultScore(queues)
