"""Where a redrive goes from each stage, by what it sees: one thing at a time, and two at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from mendq.model.limits import Bounds
from mendq.redrive.machine import Blocked, RedriveSituation, SourceState, decide
from mendq.redrive.messages import Message
from mendq.redrive.progress import (
    DlqSample,
    RedriveProgress,
    RedriveQueues,
    Stage,
    StageProgress,
    Waits,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MESSAGE = Message("one", "hello", NOW)
MINUTE = timedelta(minutes=1)
LONG_AGO = NOW - timedelta(hours=2)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
BOUNDS = Bounds()
_OWN = {each.name for each in fields(RedriveProgress)}
_STAGE = {each.name for each in fields(StageProgress)}
_WAITS = {each.name for each in fields(Waits)}

# What is changed of a progress, of what is seen beside it, of the source and of a sample; None for
# the sample: none was taken.
Change = Mapping[str, Any]
Case = tuple[Change, Change, Change, Change | None]
_NONE: Change = {}


def _of(progress: Change = _NONE, seen: Change = _NONE, source: Change = _NONE) -> Case:
    return progress, seen, source, _NONE


def _counted(**sample: int) -> Case:
    return _NONE, _NONE, _NONE, sample


SITUATIONS: Mapping[str, Case] = {
    "as it should be": _of(),
    "not counted yet": (_NONE, _NONE, _NONE, None),
    "frozen": _of(seen={"frozen": "an incident"}),
    "forbidden": _of(seen={"blocked": Blocked("the cause is back", for_good=True)}),
    "blocked_for_now": _of(seen={"blocked": Blocked("SQS does not answer")}),
    "blocked_for_now for long": _of(
        {"blocked_since": LONG_AGO}, {"blocked": Blocked("SQS does not answer")}
    ),
    "too old": _of({"began_at": NOW - timedelta(days=15)}),
    "a few are back": _counted(returned=4, waiting=46, quarantined=4),
    "too many are back": _counted(returned=6, waiting=44, quarantined=2),
    "few are newly dead": _counted(waiting=50, newly_dead=9),
    "many are newly dead": _counted(waiting=50, newly_dead=10),
    "nothing is left": _of(seen={"waiting": 0}),
    "what is left is stuck": (_NONE, {"waiting": 7}, _NONE, {"waiting": 0, "stuck": 7}),
    "more than there should be": _of(seen={"waiting": 1_005}),
    "more than there should be, FIFO": _of(seen={"waiting": 1_005, "is_fifo": True}),
    "FIFO": _of(seen={"is_fifo": True}),
    "not soaked": _of({"soak_ends_at": NOW + MINUTE}),
    "unread": _of({"stood": 90}, source={"visible": 90, "deleted_since": 5}),
    "unread for long": _of(
        {"stood": 90, "consumers_since": LONG_AGO}, source={"visible": 90, "deleted_since": 5}
    ),
    "nobody deletes": _of(source={"deletes_per_second": 0}),
    "deletes not measured": _of(source={"deletes_per_second": None}),
    "nobody deletes for long": _of({"consumers_since": LONG_AGO}, source={"deletes_per_second": 0}),
    "slow consumers": _of(source={"deletes_per_second": 0.01}),
    "fast consumers": _of(source={"deletes_per_second": 900}),
    "stage is moved": _of({"moved_in_stage": 80, "size": 80}),
    "stage is half moved": _of({"moved_in_stage": 40, "size": 80}),
    "stage has had its time": _of({"moved_in_stage": 40, "size": 80, "stage_at": LONG_AGO}),
    "refused": _of({"refused_since": NOW - MINUTE, "is_refused": True, "because": "SQS says no"}),
    "refused for long": _of(
        {"refused_since": LONG_AGO, "is_refused": True, "because": "SQS says no"}
    ),
    "a run died with messages in hand": _of({"in_flight": 5, "moved_in_stage": 0, "size": 80}),
    "not opened": _of({"is_opened": False, "moved": 0, "moved_in_stage": 0}),
}
# A redrive starts no message movement task any more: all it knows of one is that it is foreign.
BY_MOVEMENT_TASK: Mapping[str, Case] = {
    "somebody else's task runs": _of(seen={"has_foreign_task": True}),
    "somebody else's task is over": _of(),
}
# Of two at once, these have something to say at most stages.
_PAIRED = (
    "not counted yet",
    "frozen",
    "forbidden",
    "blocked_for_now",
    "blocked_for_now for long",
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
            for stage in (Stage.RAMP, Stage.CANARY)
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


def _progress(stage: Stage, over: Change) -> RedriveProgress:
    """One that has moved a hundred messages, and whose soak is over."""
    stage_of = {"stage_at": "began_at", "moved_in_stage": "moved"}
    current, waits = StageProgress(NOW, 80), Waits()
    usual: Change = {
        "began_at": NOW - timedelta(hours=1),
        "stage_at": NOW - timedelta(minutes=5),
        "moved": 100,
        "moved_in_stage": 20,
        "number": 2,
        "is_opened": True,
        "soak_ends_at": NOW,
        "expected": 1_000,
        "because": "it said so" if stage in (Stage.DONE, Stage.HALTED) else "",
    }
    own: dict[str, Any] = {}
    for name, value in {**usual, **over}.items():
        if name in stage_of or (name in _STAGE and name not in _OWN):
            current = replace(current, **{stage_of.get(name, name): value})
        elif name in _WAITS:
            waits = replace(waits, **{name: value})
        else:
            own[name] = value
    return RedriveProgress(
        "case", RedriveQueues(DEAD, SOURCE), stage, current=current, waits=waits, **own
    )


def _sample(over: Change | None) -> DlqSample | None:
    if over is None:
        return None
    counts = {"returned": 0, "waiting": 50, **over}
    messages = {name: (MESSAGE,) * counts[name] for name in ("returned", "waiting")}
    return DlqSample(**{**counts, **messages})


def _next(stage: Stage, case: Case) -> tuple[RedriveProgress, Any]:
    progress, seen, source, sample = case
    usual = SourceState(visibility_timeout=30, receives=3, delay_seconds=5, deletes_per_second=50)
    situation = RedriveSituation(
        _progress(stage, progress), NOW, 1_000, replace(usual, **source), BOUNDS, _sample(sample)
    )
    found = decide(replace(situation, **seen))
    return found.progress, found.action


def _alone(stage: Stage, cases: Mapping[str, Case]) -> Iterator[tuple[str, Any]]:
    for name, case in cases.items():
        progress, action = _next(stage, case)
        current = progress.current
        yield (
            name,
            {
                "stage": progress.stage,
                "does": _named(action),
                "because": progress.because,
                "size": current.size,
                "moved": [progress.moved, current.moved, current.unsure],
                "soaks_for": None
                if progress.stage is not Stage.SOAK or current.soak_ends_at is None
                else current.soak_ends_at - NOW,
            },
        )


def _pairs(stage: Stage) -> Iterator[tuple[str, str]]:
    """Two at once; where both change the same, the second one holds."""
    for one, other in combinations(_PAIRED, 2):
        first, second = SITUATIONS[one], SITUATIONS[other]
        parts = [{**a, **b} for a, b in zip(first[:3], second[:3], strict=True)]
        samples = (first[3], second[3])
        sample = None if None in samples else {**(samples[0] or {}), **(samples[1] or {})}
        progress, action = _next(stage, (parts[0], parts[1], parts[2], sample))
        yield f"{one} + {other}", f"{progress.stage}: {_named(action)}"


def _named(action: Any) -> str:
    if action is None:
        return "is asked on"
    said = [str(each) for each in vars(action).values()]
    return " ".join([type(action).__name__, *said])


def _called_off(stage: Stage) -> str:
    """As a person says who takes the case back."""
    off = _progress(stage, _NONE).halted(NOW, "a person says so")
    return f"{off.stage}; {off.because}"
