"""Where a redrive goes from each stage, by what it sees: one thing at a time, and two at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from functions.healing.redrive import called_off, decide
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_look import Census, Look, MoveTask, Source, TaskStatus
from mendq.model.limits import Bounds

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LONG_AGO = NOW - timedelta(hours=2)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
BOUNDS = Bounds()

# What is changed of a course, a look, a source and a census; census None: it was not taken.
Change = Mapping[str, Any]
Situation = tuple[Change, Change, Change, Change | None]
_NONE: Change = {}


def _of(course: Change = _NONE, look: Change = _NONE, source: Change = _NONE) -> Situation:
    return course, look, source, _NONE


def _counted(**census: Any) -> Situation:
    return _NONE, _NONE, _NONE, census


SITUATIONS: Mapping[str, Situation] = {
    "as it should be": _of(),
    "not counted yet": (_NONE, _NONE, _NONE, None),
    "frozen": _of(look={"frozen": "an incident"}),
    "forbidden": _of(look={"forbidden": "the cause is back"}),
    "blocked_for_now": _of(look={"blocked_for_now": "SQS does not answer"}),
    "blocked for now for long": _of(
        {"blocked_since": LONG_AGO}, {"blocked_for_now": "SQS does not answer"}
    ),
    "too old": _of({"began_at": NOW - timedelta(days=15)}),
    "a few are back": _counted(seen=50, returned=4, quarantined=4),
    "too many are back": _counted(seen=50, returned=6, quarantined=2),
    "few are newly dead": _counted(seen=50, newly_dead=9),
    "many are newly dead": _counted(seen=50, newly_dead=10),
    "nothing is left": (_NONE, {"waiting": 0}, _NONE, _NONE),
    "what is left is stuck": (_NONE, {"waiting": 7}, _NONE, {"seen": 7, "stuck": 7}),
    "more than there should be": _of(look={"waiting": 1_005}),
    "more than there should be, FIFO": _of(look={"waiting": 1_005, "is_fifo": True}),
    "FIFO": _of(look={"is_fifo": True}),
    "not soaked": _of({"soak_ends_at": NOW + MINUTE}),
    "unread": _of({"stood": 90}, source={"visible": 90, "deleted_since": 5}),
    "unread for long": _of(
        {"stood": 90, "waits_since": LONG_AGO}, source={"visible": 90, "deleted_since": 5}
    ),
    "nobody deletes": _of(source={"deletes_per_second": 0}),
    "deletes not measured": _of(source={"deletes_per_second": None}),
    "nobody deletes for long": _of({"waits_since": LONG_AGO}, source={"deletes_per_second": 0}),
    "slow consumers": _of(source={"deletes_per_second": 0.01}),
    "fast consumers": _of(source={"deletes_per_second": 900}),
    "stage is moved": _of({"moved_in_stage": 80, "size": 80}),
    "stage is half moved": _of({"moved_in_stage": 40, "size": 80}),
    "stage has had its time": _of({"moved_in_stage": 40, "size": 80, "stage_at": LONG_AGO}),
    "refused": _of({"refused_since": NOW - MINUTE, "is_refused": True, "because": "SQS says no"}),
    "refused for long": _of(
        {"refused_since": LONG_AGO, "is_refused": True, "because": "SQS says no"}
    ),
    "a run died with messages in hand": _of({"in_flight_here": 5, "moved_in_stage": 0, "size": 80}),
    "not opened": _of({"is_opened": False, "moved": 0, "moved_in_stage": 0}),
    "halts when it may": _of({"halts_for": "the cause is back"}),
}


def _task(status: TaskStatus, *, ours: bool = True, moved: int = 30, **over: Any) -> MoveTask:
    begun = NOW - MINUTE if ours else NOW - timedelta(days=1)
    handle = "ours" if ours else "theirs"
    return MoveTask(status, begun, moved=moved, handle=handle, per_second=5, **over)


_ASKED: Change = {
    "by_task": True,
    "intent_at": NOW - MINUTE,
    "task_handle": "ours",
    "moved_in_stage": 0,
    "size": 800,
    "rate_per_second": 5,
    "stage_at": NOW - MINUTE,
}
BY_MOVEMENT_TASK: Mapping[str, Situation] = {
    "somebody else's task runs": _of(look={"task": _task(TaskStatus.RUNNING, ours=False)}),
    "somebody else's task is over": _of(look={"task": _task(TaskStatus.COMPLETED, ours=False)}),
    "our task is asked for": _of({**_ASKED, "intent_at": None, "task_handle": ""}),
    "our task runs": _of(_ASKED, {"task": _task(TaskStatus.RUNNING)}),
    "our task did enough": _of(_ASKED, {"task": _task(TaskStatus.RUNNING, moved=800)}),
    "our task is cancelled": _of(_ASKED, {"task": _task(TaskStatus.CANCELLING)}),
    "our task was cancelled": _of(_ASKED, {"task": _task(TaskStatus.CANCELLED)}),
    "our task is over": _of(_ASKED, {"task": _task(TaskStatus.COMPLETED)}),
    "our task failed": _of(_ASKED, {"task": _task(TaskStatus.FAILED, failure="denied")}),
    "our task is not seen": _of(
        _ASKED, {"tasks_unseen": True, "blocked_for_now": "SQS does not answer"}
    ),
    "our task is cancelled in vain": _of(
        {**_ASKED, "stage_at": LONG_AGO}, {"task": _task(TaskStatus.RUNNING)}
    ),
}
# Of two at once, these have something to say at most stages.
_PAIRED = (
    "not counted yet",
    "frozen",
    "forbidden",
    "blocked_for_now",
    "blocked for now for long",
    "too old",
    "too many are back",
    "many are newly dead",
    "nothing is left",
    "not soaked",
    "unread",
    "unread for long",
    "nobody deletes",
    "nobody deletes for long",
    "stage is moved",
    "refused for long",
    "a run died with messages in hand",
)


def record() -> Any:
    """Each stage alone, by what it sees."""
    return {
        "alone": {str(stage): dict(_alone(stage, SITUATIONS)) for stage in Stage},
        "by_movement_task": {
            str(stage): dict(_alone(stage, BY_MOVEMENT_TASK))
            for stage in (Stage.RAMP, Stage.CANCELLING, Stage.CANARY)
        },
        "two_at_once": {str(stage): dict(_pairs(stage)) for stage in Stage},
        "called_off": {str(stage): _called_off(stage) for stage in Stage},
        "bounds": BOUNDS,
        "halts_at": {str(moved): BOUNDS.halts_at(moved) for moved in (0, 5, 20, 21, 100, 199, 999)},
        "rates": {str(each): BOUNDS.rate_per_second(each) for each in (0, 0.5, 10, 50, 9_000)},
        "soaks": {
            f"{receives} receives of {seconds} s": BOUNDS.soak(
                receives=receives, needed_seconds=seconds, delay_seconds=5, drain_seconds=10
            )
            for receives in (1, 3, 10)
            for seconds in (0, 30, 900)
        },
    }


def _course(stage: Stage, over: Change) -> Course:
    """One that has moved a hundred messages, and whose soak is over."""
    usual: Change = {
        "began_at": NOW - timedelta(hours=1),
        "stage_at": NOW - timedelta(minutes=5),
        "size": 80,
        "moved": 100,
        "moved_in_stage": 20,
        "number": 2,
        "is_opened": True,
        "soak_ends_at": NOW,
        "expected": 1_000,
        "because": "it said so" if stage in (Stage.DONE, Stage.HALTED) else "",
    }
    return Course("case", DEAD, SOURCE, stage, **{**usual, **over})


def _seen(look: Change, source: Change) -> Look:
    usual = Source(needed_seconds=30, receives=3, delay_seconds=5, deletes_per_second=50)
    return replace(Look(NOW, 1_000, replace(usual, **source)), **look)


def _census(over: Change | None) -> Census | None:
    return None if over is None else replace(Census(seen=50), **over)


def _next(stage: Stage, situation: Situation) -> tuple[Course, Any]:
    course, look, source, census = situation
    found = decide(_course(stage, course), _seen(look, source), _census(census), BOUNDS)
    return found.course, found.action


def _alone(stage: Stage, situations: Mapping[str, Situation]) -> Iterator[tuple[str, Any]]:
    for name, situation in situations.items():
        course, action = _next(stage, situation)
        yield (
            name,
            {
                "stage": course.stage,
                "does": _recommendation(action),
                "because": course.because or course.halts_for,
                "size": course.size,
                "moved": [course.moved, course.moved_in_stage, course.unsure_in_stage],
                "soaks_for": None
                if course.stage is not Stage.SOAK or course.soak_ends_at is None
                else course.soak_ends_at - NOW,
            },
        )


def _pairs(stage: Stage) -> Iterator[tuple[str, str]]:
    """Two at once; where both change the same, the second one holds."""
    for one, other in combinations(_PAIRED, 2):
        first, second = SITUATIONS[one], SITUATIONS[other]
        parts = [{**a, **b} for a, b in zip(first[:3], second[:3], strict=True)]
        censuses = (first[3], second[3])
        census = None if None in censuses else {**(censuses[0] or {}), **(censuses[1] or {})}
        course, action = _next(stage, (parts[0], parts[1], parts[2], census))
        yield f"{one} + {other}", f"{course.stage}: {_recommendation(action)}"


def _recommendation(action: Any) -> str:
    if action is None:
        return "is asked on"
    said = [str(each) for each in vars(action).values()]
    return " ".join([type(action).__name__, *said])


def _called_off(stage: Stage) -> dict[str, Any]:
    """As a person says who takes the case back."""
    wanted = ("as it should be", "our task runs", "our task is over", "frozen")
    every = {**SITUATIONS, **BY_MOVEMENT_TASK}
    found: dict[str, Any] = {}
    for name in wanted:
        course, look, source, _ = every[name]
        off = called_off(_course(stage, course), _seen(look, source), BOUNDS, "a person says so")
        found[name] = f"{off.course.stage}: {_recommendation(off.action)}; {off.course.because}"
    return found
